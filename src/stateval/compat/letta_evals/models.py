"""The records that users' functions are handed and return."""

from stateval.records.grade import GradeResult, PerTurnGrade, RewardOutput
from stateval.records.message import Message as LettaMessageUnion
from stateval.records.protocols import RewardContext
from stateval.records.result import SampleError as Error
from stateval.records.result import SampleResult
from stateval.records.rollout import Rollout as TargetResult
from stateval.records.rollout import TurnTokenData
from stateval.records.sample import Sample, SampleId
from stateval.records.state import AgentState
from stateval.records.summary import ErrorSummary, ModelSummary, PerRunSummary, Summary
from stateval.records.usage import Timing, TimingStats, Usage

__all__ = [
    "AgentState",
    "Error",
    "ErrorSummary",
    "GradeResult",
    "LettaMessageUnion",
    "ModelSummary",
    "PerRunSummary",
    "PerTurnGrade",
    "RewardContext",
    "RewardOutput",
    "Sample",
    "SampleId",
    "SampleResult",
    "Summary",
    "TargetResult",
    "Timing",
    "TimingStats",
    "TurnTokenData",
    "Usage",
]
