"""How well a judge agrees with people, with itself when it is asked again, and with itself in the opposite order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stateval.errors import StageError
from stateval.judges.asking import Meter, OnAnswer, Question, ask_all, score_of
from stateval.judges.judge import MetricJudge
from stateval.judges.placing import LabelledAnswer
from stateval.judges.reported import Reported
from stateval.records.digest import hash_of
from stateval.records.grade import GradeResult
from stateval.records.judge_check import Agreement, MetricCheck, Rate
from stateval.stats.agreement import agreement, rate

_TOLERANCE = 1e-9

Grade = GradeResult | StageError


@dataclass(frozen=True, slots=True)
class CheckWish:
    """How a judge is checked. Passed is a score of at least `threshold`, for the judge and for people.

    Each answer is judged `repeats` times, and once in the opposite order where there is one.
    """

    threshold: float = 0.5
    confidence: float = 0.95
    repeats: int = 3
    max_concurrent: int = 15


def calls_of_check(judge: MetricJudge, answers: Sequence[LabelledAnswer], wish: CheckWish) -> int:
    """How many grades a check asks for."""
    return len(answers) * (wish.repeats + (judge.grader.reordered() is not None))


def _nothing() -> None:
    return None


async def check_judge(
    judge: MetricJudge,
    answers: Sequence[LabelledAnswer],
    wish: CheckWish,
    *,
    reported: Reported | None = None,
    on_answer: OnAnswer = _nothing,
) -> MetricCheck:
    """The judge beside people on these answers.

    The tables are those of the first time that an answer is judged. An answer whose grading failed is in `errors` and
    in no table. `reported` is what the judge says of all answers of the run that these are a sample of.

    Raises ModelUnavailable where a model cannot be had at all.
    """
    reordered = judge.grader.reordered()
    graders = [judge.grader] * wish.repeats + ([reordered] if reordered is not None else [])
    runs = [*range(wish.repeats), *([0] if reordered is not None else [])]
    questions = [
        Question(grader, replace(answer.request, run=_run(answer, again)))
        for grader, again in zip(graders, runs, strict=True)
        for answer in answers
    ]
    meter = Meter(judge.grader, *([reordered] if reordered is not None else []))
    grades = await ask_all(questions, wish.max_concurrent, on_answer)
    rounds = [grades[at : at + len(answers)] for at in range(0, len(grades), len(answers))] if answers else []
    measured = _Measured(judge, answers, wish, reported or Reported()).check(
        rounds[: wish.repeats], rounds[wish.repeats] if reordered is not None and rounds else None
    )
    return measured.model_copy(update={"took": meter.summary()})


def _run(answer: LabelledAnswer, again: int) -> int:
    """A repeat is another run: by the run's number an answer that is kept is told from one that is wanted anew."""
    return answer.request.run + again


@dataclass(frozen=True, slots=True)
class _Measured:
    judge: MetricJudge
    answers: Sequence[LabelledAnswer]
    wish: CheckWish
    reported: Reported

    def check(self, rounds: Sequence[Sequence[Grade]], opposite: Sequence[Grade] | None) -> MetricCheck:
        first = rounds[0] if rounds else []
        given = [grade for one in (*rounds, opposite or ()) for grade in one if isinstance(grade, GradeResult)]
        answered = {name for grade in given if grade.judging for name in grade.judging.answered}
        criteria = {name: self._agreement(first, name) for name in self.judge.criteria}
        return MetricCheck(
            metric=self.judge.key,
            fingerprint=hash_of(self.judge.grader.fingerprint),
            models=self.judge.grader.models,
            answered=tuple(sorted(answered)),
            threshold=self.wish.threshold,
            confidence=self.wish.confidence,
            repeats=self.wish.repeats,
            overall=self._agreement(first, ""),
            criteria={name: found for name, found in criteria.items() if found is not None},
            flip_rate=self._flips(rounds),
            order_swap_rate=self._swaps(first, opposite),
            n_errors=sum(isinstance(grade, StageError) for grade in first),
            errors=self._errors(rounds, opposite),
            notes=tuple(self._notes()),
        )

    def _agreement(self, grades: Sequence[Grade], criterion: str) -> Agreement | None:
        """None where people labelled nothing of it."""
        labelled = [
            (grade, answer.labels[criterion])
            for grade, answer in zip(grades, self.answers, strict=True)
            if criterion in answer.labels
        ]
        if not labelled:
            return None
        pairs = [
            (score, label)
            for grade, label in labelled
            if isinstance(grade, GradeResult) and (score := score_of(grade, criterion)) is not None
        ]
        return agreement(
            [score for score, _ in pairs],
            [label for _, label in pairs],
            self.wish.threshold,
            confidence=self.wish.confidence,
            reported=self.reported.counts.get(criterion),
        )

    def _flips(self, rounds: Sequence[Sequence[Grade]]) -> Rate:
        if self.wish.repeats < 2:
            return Rate(reason="the judge was asked once; `--repeats` says how often")
        return self._changed(rounds)

    def _swaps(self, first: Sequence[Grade], opposite: Sequence[Grade] | None) -> Rate:
        if opposite is None:
            return Rate(reason="the rubric itself says where everything stands, so there is no opposite order")
        return self._changed([first, opposite])

    def _changed(self, rounds: Sequence[Sequence[Grade]]) -> Rate:
        """The share of answers whose verdicts are not all the same, of those that have all of them."""
        whole = [
            {grade.score >= self.wish.threshold - _TOLERANCE for grade in grades if isinstance(grade, GradeResult)}
            for grades in zip(*rounds, strict=True)
            if all(isinstance(grade, GradeResult) for grade in grades)
        ]
        changed = sum(len(verdicts) > 1 for verdicts in whole)
        return rate(changed, len(whole), self.wish.confidence, "no answer was graded each time")

    def _errors(self, rounds: Sequence[Sequence[Grade]], opposite: Sequence[Grade] | None) -> dict[str, str]:
        named = [(f" (time {number})" if number > 1 else "", one) for number, one in enumerate(rounds, 1)]
        named += [(" (opposite order)", opposite)] if opposite is not None else []
        return {
            f"{answer.name}{when}": str(grade)
            for when, grades in named
            for answer, grade in zip(self.answers, grades, strict=True)
            if isinstance(grade, StageError)
        }

    def _notes(self) -> Sequence[str]:
        if not self.reported.other_judge:
            return ()
        return (
            f"{self.reported.other_judge} answers of the results were graded by another judge than this one, so no "
            "rate of the whole run is corrected; grade them anew with `stateval run SUITE --cached DIR`",
        )
