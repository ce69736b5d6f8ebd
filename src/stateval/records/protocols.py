"""What a dataset, a target, an extractor, a grader and a reward composer are, as the runner sees them.

Each has a `fingerprint`: a JSON value that holds all that its outcome depends on apart from what it is handed
(settings, the source of a user's function, a prompt). Stage keys are hashed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, Protocol, runtime_checkable

from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.message import Trajectory
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.records.state import AgentState
from stateval.records.usage import Timing, Usage


class Dataset(Protocol):
    """Rows as samples. Iterating again reads the rows again; nothing is kept but what the source itself keeps.

    `checked`: how many samples a check has found.
    """

    checked: int | None

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the rows came from: paths, hashes, revisions."""

    def __iter__(self) -> Iterator[Sample]:
        """The samples in order. Raises DatasetError at a bad row, naming file and line."""

    def unfinished(self, is_done: Callable[[str], bool]) -> Iterator[Sample]:
        """The samples whose ids are not done, in order."""

    @property
    def digest(self) -> str | None:
        """A hash of the rows that is known without reading them; None where there is none."""


class Snapshots(StrEnum):
    """Which of the agent's states a rollout keeps beside the last one."""

    NONE = "none"
    ENDS = "ends"
    EVERY_TURN = "every_turn"


def _ignore_turn(turn: int, turns: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """What the runner wants of a target for one sample in one run (counted from 1).

    `state`: the final `agent_state` is needed. `timeout` is in seconds for the whole conversation. `on_turn` is
    called with (turns finished, turns in all) after each user turn.
    """

    run: int = 1
    state: bool = False
    snapshots: Snapshots = Snapshots.NONE
    timeout: float = 300.0
    cleanup: bool = False
    on_turn: Callable[[int, int], None] = _ignore_turn


@runtime_checkable
class Target(Protocol):
    """Something that can be talked to: it makes a fresh agent for a sample and leads the conversation."""

    @property
    def kind(self) -> str:
        """The word that a suite file uses."""

    @property
    def model_handle(self) -> str | None:
        """The model that runs, where the target knows it."""

    @property
    def fingerprint(self) -> Any: ...

    async def prepare(self) -> None:
        """Called once before the first sample: fetches and loads what every sample needs.

        Raises ModelUnavailable where it cannot be had.
        """

    async def run(self, sample: Sample, request: RolloutRequest) -> Rollout:
        """The conversation of this sample, led within `request.timeout` (use `stateval.deadline`).

        Raises TargetError, with what was finished in its `rollout`; TargetTimeout where time ran out; ModelUnavailable
        where no sample can run at all.
        """

    async def close(self) -> None:
        """Gives back whatever the target holds (clients, models)."""


class Needs(IntEnum):
    """How much of an agent's state an extractor looks at; a greater value includes the smaller ones."""

    NOTHING = 0
    STATE = 1
    ENDS = 2
    EVERY_TURN = 3


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor found. `metadata` tells apart what the text alone cannot (missing from empty)."""

    submission: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Extractor(Protocol):
    """Takes out of a rollout what is to be judged."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> Needs: ...

    @property
    def fingerprint(self) -> Any: ...

    async def extract(self, rollout: Rollout) -> Extraction:
        """The submission. Raises ExtractionError where there is nothing to extract from."""


@dataclass(frozen=True, slots=True)
class GradeRequest:
    """What a grader is handed: the sample, the submission, the truth to compare with, and what it came from.

    `sample` is the one-turn view of the sample where a turn is graded alone (`turn` counts from 0). `ground_truth`
    and `expected` are already those of this grader and this turn. `run` counts from 1: a repeat of a sample is judged
    anew, never answered from another.
    """

    sample: Sample
    submission: str
    rollout: Rollout
    ground_truth: str | None = None
    expected: Any = None
    turn: int | None = None
    run: int = 1


class Grader(Protocol):
    """Judges a submission."""

    @property
    def kind(self) -> str: ...

    @property
    def needs(self) -> Needs: ...

    @property
    def fingerprint(self) -> Any: ...

    async def grade(self, request: GradeRequest) -> GradeResult:
        """The grade. Raises GradingError."""

    def check(self, sample: Sample) -> str | None:
        """What this sample lacks for this grader (a truth, a placeholder's value), or None. Called before any model."""


@runtime_checkable
class ModelGrader(Grader, Protocol):
    """A grader that asks models."""

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are asked, as the suite names them."""

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """Those of them of which no price is known."""

    @property
    def spent(self) -> Spent:
        """What its calls have taken since it was made, those of failed grades included."""

    async def close(self) -> None:
        """Gives back connections."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Questions to models, how many of them were `cached` and cost nothing, and the usage of the others.

    A question that was asked again, after a failure or an answer that was none, counts once; its usage is that of all
    tries.
    """

    calls: int = 0
    cached: int = 0
    usage: Usage = field(default_factory=lambda: Usage(cost=0.0))

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.calls + other.calls, self.cached + other.cached, self.usage + other.usage)

    def since(self, before: Spent) -> Spent:
        """What was added; its cost is not known where not all is."""
        now, then = self.usage, before.usage
        counts = {name: getattr(now, name) - getattr(then, name) for name in Usage.model_fields if name != "cost"}
        cost = None if now.cost is None or then.cost is None else max(0.0, now.cost - then.cost)
        return Spent(self.calls - before.calls, self.cached - before.cached, Usage(**counts, cost=cost))


@dataclass(frozen=True, slots=True)
class RewardContext:
    """All that a reward composer may look at; users know it as `ctx`."""

    sample: Sample
    grades: Mapping[str, GradeResult]
    submissions: Mapping[str, str]
    trajectory: Trajectory
    agent_id: str | None
    model_handle: str | None
    agent_state: AgentState | None
    usage: Usage | None
    timing: Timing
    context: Mapping[str, Any] | None = None


class RewardComposer(Protocol):
    """Makes one number of a sample's grades."""

    @property
    def needs(self) -> Needs: ...

    @property
    def metrics(self) -> tuple[str, ...] | None:
        """The metrics it stands on, or None where it may look at all of them."""

    @property
    def fingerprint(self) -> Any: ...

    async def compose(self, ctx: RewardContext) -> RewardOutput:
        """The reward. Raises RewardError."""
