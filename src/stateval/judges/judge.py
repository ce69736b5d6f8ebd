"""A judge in its place in a suite, and what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stateval.graders.judging import ModelJudge
from stateval.records.protocols import GradeRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample

GradedTurns = Sequence[tuple[int, str | None]]
"""(turn counted from 0, its truth) of each turn that is graded alone."""


@dataclass(frozen=True, slots=True)
class MetricJudge:
    """The judge of one metric.

    `view` is the sample as this metric sees it; `graded_turns` says of such a view which turns are graded alone, None
    where the sample is graded as a whole.
    """

    key: str
    grader: ModelJudge
    view: Callable[[Sample], Sample]
    graded_turns: Callable[[Sample], GradedTurns | None]

    @property
    def criteria(self) -> tuple[str, ...]:
        """The names of its criteria; none where it has a rubric."""
        return tuple(self.grader.settings.criteria)

    def turns_of(self, sample: Sample) -> tuple[int, ...] | None:
        """The turns of a sample that are graded alone; None where it is graded as a whole."""
        graded = self.graded_turns(self.view(sample))
        return None if graded is None else tuple(turn for turn, _ in graded)

    def request(self, sample: Sample, submission: str, *, turn: int | None = None, run: int = 1) -> GradeRequest:
        """What the judge is asked of a submission; of one graded turn alone where `turn` names it."""
        view = self.view(sample)
        if turn is not None:
            truths = dict(self.graded_turns(view) or ())
            alone = {"input": view.user_turns[turn].user, "ground_truth": truths[turn]}
            view = view.model_copy(update=alone)
        return GradeRequest(
            sample=view,
            submission=submission,
            rollout=Rollout(),
            ground_truth=view.ground_truth if isinstance(view.ground_truth, str) else None,
            expected=view.expected,
            turn=turn,
            run=run,
        )
