"""From a finished conversation to grades and a reward."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from stateval.deadline import is_cancelled
from stateval.errors import ExtractionError, GradingError, ModelUnavailable, RewardError, StageError
from stateval.records.grade import GradeResult, Judging, PerTurnGrade, RewardOutput
from stateval.records.protocols import GradeRequest, RewardComposer, RewardContext
from stateval.records.result import ErrorCategory, SampleError
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.records.usage import Timing
from stateval.running.plan import GraderBinding


@dataclass(slots=True)
class Grading:
    """What all graders said of one sample. `seconds` is the time of each grader, its extraction included.

    `unavailable` is the error of a judge that cannot be had at all, which no other sample can be graded by either.
    """

    submissions: dict[str, str] = field(default_factory=dict)
    grades: dict[str, GradeResult] = field(default_factory=dict)
    errors: dict[str, SampleError] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    extraction_seconds: float = 0.0
    unavailable: ModelUnavailable | None = None

    @property
    def first_error(self) -> SampleError | None:
        """The first metric's error, with the metric's name in its message; the others are in `errors`."""
        for key, error in self.errors.items():
            return error.model_copy(update={"message": f"metric `{key}`: {error.message}"})
        return None

    def in_order(self, metrics: Iterable[str]) -> Grading:
        """The same with everything in the order of these metrics."""
        keys = list(metrics)
        return replace(
            self,
            submissions={key: self.submissions[key] for key in keys if key in self.submissions},
            grades={key: self.grades[key] for key in keys if key in self.grades},
            errors={key: self.errors[key] for key in keys if key in self.errors},
            seconds={key: self.seconds[key] for key in keys if key in self.seconds},
        )


async def grade_rollout(
    sample: Sample,
    rollout: Rollout,
    bindings: Sequence[GraderBinding],
    *,
    run: int = 1,
    begun: Grading | None = None,
) -> Grading:
    """Grades one conversation by every metric. A metric that fails has an error; the others' grades stand.

    What was `begun` holds grades that are there already.
    """
    grading = begun or Grading()
    for binding in bindings:
        started = time.perf_counter()
        try:
            await _grade_metric(binding, sample, rollout, grading, run)
        except ModelUnavailable as error:
            grading.unavailable = error
            grading.errors[binding.key] = error_record(error, GradingError.category)
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            cancelled = GradingError(f"it cancelled itself: {_told(error)}", cause_type=type(error).__name__)
            grading.errors[binding.key] = error_record(cancelled, GradingError.category)
        except Exception as error:  # noqa: BLE001 - graders are users' code too
            grading.errors[binding.key] = error_record(error, GradingError.category)
        grading.seconds[binding.key] = time.perf_counter() - started
    return grading


async def compose_reward(composer: RewardComposer, context: RewardContext) -> RewardOutput:
    """The reward. Raises RewardError."""
    try:
        return await composer.compose(context)
    except (StageError, ModelUnavailable):
        raise
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise RewardError(f"the reward composer raised {_told(error)}", cause_type=type(error).__name__) from error


def reward_context(sample: Sample, rollout: Rollout, grading: Grading, timing: Timing) -> RewardContext:
    """What a reward composer is shown."""
    return RewardContext(
        sample=sample,
        grades=grading.grades,
        submissions=grading.submissions,
        trajectory=rollout.trajectory,
        agent_id=rollout.agent_id,
        model_handle=rollout.model_handle,
        agent_state=rollout.agent_state,
        usage=rollout.usage,
        timing=timing,
        context=rollout.context,
    )


def error_record(error: Exception, category: str) -> SampleError:
    """How a failure is stored; `category` is that of a failure that has none of its own."""
    if isinstance(error, StageError):
        return SampleError(
            category=ErrorCategory(error.category), exception_type=error.cause_type or "", message=str(error)
        )
    return SampleError(category=ErrorCategory(category), exception_type=type(error).__name__, message=_told(error))


def graded_turns(sample: Sample, metric: str) -> list[tuple[int, str | None]] | None:
    """(turn, its truth) for each user turn that this metric grades alone; None: the sample is graded as a whole."""
    if not isinstance(sample.input, list):
        return None
    if isinstance(sample.ground_truth, list):
        return [(number, truth) for number, truth in enumerate(sample.ground_truth) if truth is not None] or None
    turns = [
        (number, turn.ground_truth)
        for number, turn in enumerate(sample.user_turns)
        if (metric in turn.graders if turn.graders is not None else turn.ground_truth is not None)
    ]
    return turns or None


async def _grade_metric(binding: GraderBinding, sample: Sample, rollout: Rollout, grading: Grading, run: int) -> None:
    view = binding.view(sample)
    turns = graded_turns(view, binding.key)
    if turns is None:
        submission, grade = await _grade(binding, view, rollout, grading, run, turn=None)
        grading.submissions[binding.key] = submission
        grading.grades[binding.key] = grade
        return
    graded: list[PerTurnGrade] = []
    judged: list[Judging] = []
    for number, truth in turns:
        alone = view.model_copy(update={"input": view.user_turns[number].user, "ground_truth": truth})
        try:
            submission, grade = await _grade(binding, alone, rollout.only_turn(number), grading, run, turn=number)
        except StageError as error:
            error.args = (f"turn {number}: {error}",)
            raise
        if grade.judging is not None:
            judged.append(grade.judging)
        graded.append(
            PerTurnGrade(
                turn=number,
                score=grade.score,
                rationale=grade.rationale,
                submission=submission,
                metadata=grade.metadata,
            )
        )
    grading.submissions[binding.key] = " | ".join(f"[Turn {turn.turn}] {turn.submission}" for turn in graded)
    grading.grades[binding.key] = _mean_of_turns(graded, Judging.of_all(judged))


async def _grade(
    binding: GraderBinding, sample: Sample, rollout: Rollout, grading: Grading, run: int, *, turn: int | None
) -> tuple[str, GradeResult]:
    started = time.perf_counter()
    try:
        extraction = await binding.extractor.extract(rollout)
    except (StageError, ModelUnavailable):
        raise
    except Exception as error:
        message = f"extractor `{binding.extractor.name}` raised {_told(error)}"
        raise ExtractionError(message, cause_type=type(error).__name__) from error
    finally:
        grading.extraction_seconds += time.perf_counter() - started
    request = GradeRequest(
        sample=sample,
        submission=extraction.submission,
        rollout=rollout,
        ground_truth=sample.ground_truth if isinstance(sample.ground_truth, str) else None,
        expected=sample.expected,
        turn=turn,
        run=run,
    )
    grade = await binding.grader.grade(request)
    if extraction.metadata:
        grade = grade.model_copy(update={"metadata": {**grade.metadata, "extraction": dict(extraction.metadata)}})
    return extraction.submission, grade


def _mean_of_turns(turns: list[PerTurnGrade], judging: Judging | None) -> GradeResult:
    scores = [turn.score for turn in turns]
    return GradeResult(
        score=math.fsum(scores) / len(scores),
        rationale="; ".join(f"turn {turn.turn}: {turn.score:g}" for turn in turns),
        metadata={"turns_passed": sum(score >= 1.0 for score in scores), "turns_total": len(scores)},
        per_turn_grades=turns,
        judging=judging,
    )


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
