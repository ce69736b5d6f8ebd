"""The result of one sample: one line of a results file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import Field

from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.message import Trajectory
from stateval.records.record import Record
from stateval.records.rollout import Rollout, TurnTokenData
from stateval.records.sample import SampleId
from stateval.records.state import AgentState, Snapshot
from stateval.records.usage import Timing, Usage


class ErrorCategory(StrEnum):
    """The stage that failed."""

    TARGET = "target"
    EXTRACTION = "extraction"
    GRADING = "grading"
    REWARD = "reward"
    UNKNOWN = "unknown"


class SampleError(Record):
    """Why a sample, or one grade of it, is missing. `timed_out` is set for the target's time-out alone."""

    category: ErrorCategory
    exception_type: str
    message: str
    timed_out: bool | None = None


class StageKeys(Record):
    """Hashes of all that each stage depended on; equal keys mean that the stage need not be computed again.

    `row` is the hash of the sample alone, whole: equal hashes mean the same data, whatever agent ran on it. `input` is
    that of the part of it that the agent sees.
    """

    target: str
    row: str | None = None
    input: str | None = None
    grades: dict[str, str] = Field(default_factory=dict)
    reward: str | None = None


class SampleResult(Record):
    """All that is kept of one sample, under the names of letta-evals' results, and ours after them.

    `error` is the first failure; `grade_errors` says for each metric that has no grade why it has none. `reward` is
    None where there was an error or no reward is composed.
    """

    sample_id: SampleId = Field(union_mode="left_to_right")
    agent_id: str | None = None
    model_handle: str | None = None
    trajectory: Trajectory = Field(default_factory=list)
    agent_state: AgentState | None = None
    agent_usage: list[dict[str, Any]] | None = None
    token_data: list[TurnTokenData] | None = None
    submissions: dict[str, str] = Field(default_factory=dict)
    grades: dict[str, GradeResult] = Field(default_factory=dict)
    reward: RewardOutput | None = None
    usage: Usage | None = None
    timing: Timing
    error: SampleError | None = None
    context: dict[str, Any] | None = None
    local_backend_dir: str | None = None

    run: int = 1
    snapshots: list[Snapshot] | None = None
    conversations: list[int] | None = None
    grade_errors: dict[str, SampleError] | None = None
    stage_keys: StageKeys | None = None
    tags: tuple[str, ...] | None = None
    cluster: str | None = None

    def rollout(self) -> Rollout:
        """The part of the result that the target produced."""
        return Rollout.model_construct(**{name: getattr(self, name) for name in Rollout.model_fields})


@dataclass(frozen=True, slots=True)
class Observation:
    """What statistics and gates need of one result, a few numbers, so that millions can be looked at.

    `scores` holds the metrics that have a grade; `errors` the category by metric for those that have none.
    """

    sample_id: str
    run: int
    scores: dict[str, float]
    timing: Timing
    reward: float | None = None
    error: ErrorCategory | None = None
    exception_type: str | None = None
    timed_out: bool = False
    errors: dict[str, ErrorCategory] = field(default_factory=dict)
    usage: Usage | None = None
    tags: tuple[str, ...] = ()
    cluster: str | None = None

    @classmethod
    def of(cls, result: SampleResult) -> Observation:
        """The numbers of a result."""
        error = result.error
        return cls(
            sample_id=str(result.sample_id),
            run=result.run,
            scores={metric: grade.score for metric, grade in result.grades.items()},
            timing=result.timing,
            reward=result.reward.score if result.reward else None,
            error=error.category if error else None,
            exception_type=error.exception_type if error else None,
            timed_out=bool(error and error.timed_out),
            errors={metric: e.category for metric, e in (result.grade_errors or {}).items()},
            usage=result.usage,
            tags=result.tags or (),
            cluster=result.cluster,
        )
