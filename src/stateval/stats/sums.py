"""What a run used, added up as its observations come in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stateval.records.result import Observation
from stateval.records.usage import Usage


@dataclass(slots=True)
class RunSums:
    """What one run used, summed up: tokens, US dollars where known, and seconds by stage.

    `cost_missing` counts observations with tokens but no known price; where it is not 0, the cost is a part of the
    whole. A stage's seconds are pairs of sum and count.
    """

    observations: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    costs: int = 0
    cost: float = 0.0
    cost_missing: int = 0
    target: tuple[float, int] = (0.0, 0)
    extraction: tuple[float, int] = (0.0, 0)
    graders: dict[str, tuple[float, int]] = field(default_factory=dict)

    def add(self, observation: Observation) -> None:
        """Counts one observation in."""
        self.observations += 1
        self.errors += observation.error is not None
        timing = observation.timing
        if not math.isnan(timing.target):  # other tools' results may lack it
            self.target = _plus(self.target, (timing.target, 1))
        if timing.extraction is not None:
            self.extraction = _plus(self.extraction, (timing.extraction, 1))
        for key, seconds in (timing.per_grader or {}).items():
            self.graders[key] = _plus(self.graders.get(key, (0.0, 0)), (seconds, 1))
        if observation.usage is not None:
            self._add_usage(observation.usage)

    def _add_usage(self, usage: Usage) -> None:
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.cached_input_tokens += usage.cached_input_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        if usage.cost is not None:
            self.costs += 1
            self.cost += usage.cost
        elif usage.total_tokens:
            self.cost_missing += 1

    def __add__(self, other: RunSums) -> RunSums:
        """The sums of both runs."""
        keys = {**self.graders, **other.graders}
        nothing = (0.0, 0)
        return RunSums(
            observations=self.observations + other.observations,
            errors=self.errors + other.errors,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            costs=self.costs + other.costs,
            cost=self.cost + other.cost,
            cost_missing=self.cost_missing + other.cost_missing,
            target=_plus(self.target, other.target),
            extraction=_plus(self.extraction, other.extraction),
            graders={k: _plus(self.graders.get(k, nothing), other.graders.get(k, nothing)) for k in keys},
        )

    @property
    def usage(self) -> Usage:
        """Tokens and dollars; the cost is the sum of the known ones, None where none is known."""
        return Usage(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cached_input_tokens=self.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens,
            cost=self.cost if self.costs else None,
        )


def _plus(one: tuple[float, int], other: tuple[float, int]) -> tuple[float, int]:
    return one[0] + other[0], one[1] + other[1]
