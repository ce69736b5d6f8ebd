"""What reward composers are handed and return."""

from __future__ import annotations

from typing import Any

from stateval.compat.letta_evals.models import GradeResult, RewardOutput
from stateval.loading.calling import scored
from stateval.records.protocols import RewardContext
from stateval.records.sample import Sample
from stateval.records.usage import Timing, Usage

__all__ = ["GradeResult", "RewardContext", "RewardOutput", "Sample", "Timing", "Usage", "coerce_reward_output"]


def coerce_reward_output(value: RewardOutput | float | dict[str, Any]) -> RewardOutput:
    """The reward that a number, a dict with a `score` or a `RewardOutput` stands for. Raises ValueError."""
    fields = scored(value)
    return RewardOutput(score=fields["score"], metadata=fields.get("metadata") or None)
