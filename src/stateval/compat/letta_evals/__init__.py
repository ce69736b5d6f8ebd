"""What users' files import from `letta_evals`, of releases 0.2 to 0.26 and of its guides, made of stateval's own parts.

Files that stateval loads get this package when they import `letta_evals`; nobody else in the process does.
"""

from stateval.api.results import EvalObservation, EvalResults
from stateval.api.suite import AgentEvalTarget, EvalGate, EvalSuite
from stateval.compat.letta_evals import decorators, extractors, graders, models, rewards, types
from stateval.compat.letta_evals.decorators import agent_factory, extractor, grader, reward_composer, suite_setup
from stateval.compat.letta_evals.models import (
    AgentState,
    GradeResult,
    PerTurnGrade,
    RewardContext,
    RewardOutput,
    Sample,
    SampleId,
    SampleResult,
    Timing,
    TurnTokenData,
    Usage,
)
from stateval.compat.letta_evals.types import ErrorCategory, GraderKind, LLMProvider, RewardKind
from stateval.errors import GateFailed, GateInconclusive, TargetError

__all__ = [
    "AgentEvalTarget",
    "AgentState",
    "ErrorCategory",
    "EvalGate",
    "EvalObservation",
    "EvalResults",
    "EvalSuite",
    "GateFailed",
    "GateInconclusive",
    "GradeResult",
    "GraderKind",
    "LLMProvider",
    "PerTurnGrade",
    "RewardContext",
    "RewardKind",
    "RewardOutput",
    "Sample",
    "SampleId",
    "SampleResult",
    "TargetError",
    "Timing",
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
