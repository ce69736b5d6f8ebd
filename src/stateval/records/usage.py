"""What a run cost, in tokens, money and seconds."""

from __future__ import annotations

from pydantic import Field

from stateval.records.record import Record


class Usage(Record):
    """Tokens and US dollars. `cost` is None where the price is not known: never a guess, never 0."""

    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    cached_input_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    reasoning_tokens: int = Field(default=0, ge=0)
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def total_tokens(self) -> int:
        """Prompt and completion; cached and reasoning tokens are parts of these."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """The sum; its cost is known only where both are known."""
        costs = (self.cost, other.cost)
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost=None if costs[0] is None or costs[1] is None else costs[0] + costs[1],
        )


class Timing(Record):
    """Seconds that one sample took; `target` are those of its agent alone.

    Neither waiting for a model that other samples use, nor a `wait` of the sample, is in them.
    """

    total: float
    target: float
    extraction: float | None = None
    per_grader: dict[str, float] | None = None


class TimingStats(Record):
    """Seconds over many samples; percentiles are linear between order statistics."""

    mean_total: float
    mean_target: float
    mean_extraction: float | None = None
    p50_total: float
    p95_total: float
    per_grader_mean: dict[str, float] | None = None
