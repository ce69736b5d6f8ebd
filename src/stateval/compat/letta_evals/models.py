"""The records that users' functions are handed and return.

The classes of messages and `AgentState` are those of `letta_client` where it is installed, as in what users' functions
are handed; they are imported when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

from stateval.compat.letta_evals.types import (
    Aggregation,
    ErrorCategory,
    GateKind,
    GraderKind,
    LLMProvider,
    LogicalOp,
    MetricOp,
    RewardKind,
    TargetKind,
)
from stateval.letta.messages import MESSAGE_NAMES, classes_by_name
from stateval.records import grade
from stateval.records.grade import PerTurnGrade
from stateval.records.protocols import RewardContext
from stateval.records.result import SampleError as Error
from stateval.records.result import SampleResult
from stateval.records.rollout import Rollout as TargetResult
from stateval.records.rollout import TurnTokenData
from stateval.records.sample import Sample, SampleId
from stateval.records.summary import ErrorSummary, ModelSummary, PerRunSummary, Summary
from stateval.records.usage import Timing, TimingStats, Usage

if TYPE_CHECKING:
    AgentState: Any
    LettaMessageUnion: Any

__all__ = [
    "AgentState",
    "Aggregation",
    "Error",
    "ErrorCategory",
    "ErrorSummary",
    "GateKind",
    "GradeResult",
    "GraderKind",
    "LLMProvider",
    "LettaMessageUnion",
    "LogicalOp",
    "MetricOp",
    "ModelSummary",
    "PerRunSummary",
    "PerTurnGrade",
    "RewardContext",
    "RewardKind",
    "RewardOutput",
    "Sample",
    "SampleId",
    "SampleResult",
    "Summary",
    "TargetKind",
    "TargetResult",
    "Timing",
    "TimingStats",
    "TurnTokenData",
    "Usage",
    *MESSAGE_NAMES,
]


class GradeResult(grade.GradeResult):
    """A grade whose fields may be set, as users' functions do."""

    model_config = ConfigDict(frozen=False, validate_assignment=True)


class RewardOutput(grade.RewardOutput):
    """A reward whose fields may be set."""

    model_config = ConfigDict(frozen=False, validate_assignment=True)


def __getattr__(name: str) -> Any:
    if name in ("AgentState", "LettaMessageUnion", *MESSAGE_NAMES):
        return classes_by_name()[name]
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
