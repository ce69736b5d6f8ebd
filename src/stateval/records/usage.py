"""What a run cost, in tokens, money and seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, field_serializer, field_validator

from stateval.records.record import Record

Tokens = Annotated[int, Field(ge=0, le=10**15)]
"""A count of tokens; more than 10^15 in one sample is a mistake of whoever counted."""

_SPELLINGS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
    "cached_input_tokens": ("cached_input_tokens", "cache_read_input_tokens"),
    "cache_write_tokens": ("cache_write_tokens", "cache_creation_input_tokens"),
    "reasoning_tokens": ("reasoning_tokens",),
    "cost": ("cost", "total_cost"),
}
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details")
_IN_DETAILS = {"cached_tokens": "cached_input_tokens", "reasoning_tokens": "reasoning_tokens"}


class Usage(Record):
    """Tokens and US dollars. `cost` is None where the price is not known: never a guess, never 0."""

    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    cached_input_tokens: Tokens = 0
    cache_write_tokens: Tokens = 0
    reasoning_tokens: Tokens = 0
    cost: float | None = Field(default=None, ge=0, le=1e12, allow_inf_nan=False)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Usage | None:
        """The usage in a record of an API, under the names that OpenAI, Anthropic and Letta use.

        None where the record counts nothing that is known here: unknown is not 0. Raises ValueError for counts that
        are none.
        """
        details = {
            ours: part[theirs]
            for part in (record.get(name) for name in _DETAILS)
            if isinstance(part, Mapping)
            for theirs, ours in _IN_DETAILS.items()
            if part.get(theirs) is not None
        }
        direct = {
            ours: record[name]
            for ours, names in _SPELLINGS.items()
            for name in reversed(names)
            if record.get(name) is not None
        }
        known = {**details, **direct}
        return cls.model_validate(known) if known else None

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

    Neither waiting for a model that other samples use, nor a `wait` of the sample, is in them. NaN, in JSON null, is
    what is not known: some tools keep no times.
    """

    total: float = math.nan
    target: float = math.nan
    extraction: float | None = None
    per_grader: dict[str, float] | None = None

    @field_validator("total", "target", mode="before")
    @classmethod
    def _not_known(cls, seconds: Any) -> Any:
        return math.nan if seconds is None else seconds

    @field_serializer("total", "target")
    def _known(self, seconds: float) -> float | None:
        return None if math.isnan(seconds) else seconds


class TimingStats(Record):
    """Seconds over many samples; percentiles are linear between order statistics."""

    mean_total: float
    mean_target: float
    mean_extraction: float | None = None
    p50_total: float
    p95_total: float
    per_grader_mean: dict[str, float] | None = None
