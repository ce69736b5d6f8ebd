"""Asking a judge about many answers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import anyio

from stateval.errors import StageError
from stateval.graders.judging import ModelJudge
from stateval.graders.spending import judging_summary
from stateval.records.grade import GradeResult, PerTurnGrade
from stateval.records.protocols import GradeRequest, Spent
from stateval.records.summary import JudgingSummary

OnAnswer = Callable[[], None]
"""Called each time that a grade, or the reason why there is none, has come."""


@dataclass(frozen=True, slots=True)
class Question:
    """One grade that is wanted of a judge."""

    judge: ModelJudge
    request: GradeRequest


async def ask_all(
    questions: Iterable[Question], max_concurrent: int, on_answer: OnAnswer
) -> list[GradeResult | StageError]:
    """The grades in the order of the questions; in the place of a grade that failed its error.

    Raises ModelUnavailable where a model cannot be had at all.
    """
    waiting = list(enumerate(questions))
    answered: dict[int, GradeResult | StageError] = {}
    left = iter(waiting)

    async def ask() -> None:
        for number, question in left:
            try:
                answered[number] = await question.judge.grade(question.request)
            except StageError as error:
                answered[number] = error
            on_answer()

    async with anyio.create_task_group() as tasks:
        for _ in range(min(max_concurrent, len(waiting))):
            tasks.start_soon(ask)
    return [answered[number] for number, _ in waiting]


class Meter:
    """What some judges take from now on, failed grades included; the first of them is the one that is measured."""

    def __init__(self, *judges: ModelJudge) -> None:
        self._judges = judges
        self._before = [judge.spent for judge in judges]

    def summary(self) -> JudgingSummary:
        """So far."""
        pairs = zip(self._judges, self._before, strict=True)
        spent = sum((judge.spent.since(before) for judge, before in pairs), Spent())
        return judging_summary(self._judges[0], spent)


def score_of(grade: GradeResult | PerTurnGrade, criterion: str) -> float | None:
    """The score of a criterion, or of the whole where it is ""; None where the judge could not tell."""
    if not criterion:
        return grade.score
    found = grade.metadata.get("criteria", {}).get(criterion)
    return None if found is None else float(found["score"])
