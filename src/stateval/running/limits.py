"""Limits of a run: how much it may cost and how long it may take before it is stopped, cleanly."""

from __future__ import annotations

from dataclasses import dataclass, field

from stateval.records.result import ErrorCategory, Observation
from stateval.records.usage import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call of `run` may use: US dollars, tokens, minutes of wall time, observations with an error.

    None is no limit. A run that goes on later has all of it again.
    """

    cost_usd: float | None = None
    tokens: int | None = None
    minutes: float | None = None
    errors: int | None = None


NO_LIMITS = Limits()


@dataclass(slots=True)
class Meter:
    """What has been used by now, beside the limits. `judged` is what all judges have used, which counts too."""

    limits: Limits
    cost: float = 0.0
    tokens: int = 0
    errors: int = 0
    judged: Usage = field(default_factory=lambda: Usage(cost=0.0))
    _unknown: str | None = field(default=None, init=False)

    def add(self, seen: Observation, *, has_run: bool = True) -> str | None:
        """Counts one observation in; a sentence that says which limit is reached, or None.

        What a kept conversation has cost was paid by an earlier run: one that has not run costs nothing.
        """
        self.errors += seen.error is not None
        if has_run:
            self.tokens += seen.usage.total_tokens if seen.usage else 0
            self.cost += (seen.usage.cost or 0.0) if seen.usage else 0.0
            self._unknown = self._unknown or self._not_known(seen)
        return self._reached()

    def _reached(self) -> str | None:
        limits = self.limits
        cost, tokens = self.cost + (self.judged.cost or 0.0), self.tokens + self.judged.total_tokens
        if limits.cost_usd is not None and cost >= limits.cost_usd:
            return f"the limit of {limits.cost_usd:g} USD is reached ({cost:.4f} USD were used)"
        if limits.tokens is not None and tokens >= limits.tokens:
            return f"the limit of {limits.tokens:,} tokens is reached ({tokens:,} were used)"
        if limits.cost_usd is not None and self.judged.cost is None:
            return "`limits.cost_usd` cannot be kept: what a judge's answer cost is not known"
        if limits.errors is not None and self.errors >= limits.errors:
            return f"the limit of {limits.errors:,} errors is reached"
        return self._unknown

    def _not_known(self, seen: Observation) -> str | None:
        """A limit that cannot be kept ends the run, too: what is not known is not nothing."""
        if seen.error is ErrorCategory.TARGET:
            return None
        if self.limits.cost_usd is not None and (seen.usage is None or seen.usage.cost is None):
            return f"`limits.cost_usd` cannot be kept: sample {seen.sample_id} does not say what it cost"
        if self.limits.tokens is not None and seen.usage is None:
            return f"`limits.tokens` cannot be kept: sample {seen.sample_id} does not say how many tokens it took"
        return None
