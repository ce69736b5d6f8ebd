"""What users' files import from `letta_evals`, of its releases and of its guides, made of stateval's own parts.

Files that stateval loads get this package when they import `letta_evals`; nobody else in the process does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateval import __version__ as __version__
from stateval.api.results import EvalObservation, EvalResults
from stateval.api.suite import AgentEvalTarget, EvalGate, EvalSuite
from stateval.compat.letta_evals import decorators, extractors, graders, models, rewards, types
from stateval.compat.letta_evals.decorators import agent_factory, extractor, grader, reward_composer, suite_setup
from stateval.compat.letta_evals.models import (
    Error,
    ErrorSummary,
    GradeResult,
    ModelSummary,
    PerRunSummary,
    PerTurnGrade,
    RewardContext,
    RewardOutput,
    Sample,
    SampleId,
    SampleResult,
    Summary,
    TargetResult,
    Timing,
    TimingStats,
    TurnTokenData,
    Usage,
)
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
from stateval.errors import GateFailed, GateInconclusive, TargetError

if TYPE_CHECKING:
    AgentState: Any
    LettaMessageUnion: Any

__all__ = [
    "AgentEvalTarget",
    "AgentState",
    "Aggregation",
    "Error",
    "ErrorCategory",
    "ErrorSummary",
    "EvalGate",
    "EvalObservation",
    "EvalResults",
    "EvalSuite",
    "GateFailed",
    "GateInconclusive",
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
    "TargetError",
    "TargetKind",
    "TargetResult",
    "Timing",
    "TimingStats",
    "TurnTokenData",
    "Usage",
    "agent_factory",
    "decorators",
    "extractor",
    "extractors",
    "grader",
    "graders",
    "models",
    "reward_composer",
    "rewards",
    "suite_setup",
    "types",
]


def __getattr__(name: str) -> Any:
    if name in ("AgentState", "LettaMessageUnion"):
        return getattr(models, name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
