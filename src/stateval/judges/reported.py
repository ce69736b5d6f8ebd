"""What a judge has said of all answers of a run, of which the labelled ones are a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stateval.judges.asking import score_of
from stateval.judges.judge import MetricJudge
from stateval.records.digest import hash_of
from stateval.records.grade import GradeResult, PerTurnGrade
from stateval.results.reading import Results

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Reported:
    """(passed, graded) of the answers of a run by criterion ("" is the whole).

    `other_judge` answers were graded by another judge than this one, or by one that is not known; then the others are
    no whole.
    """

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    other_judge: int = 0


def reported_by(results: Results, models: Sequence[str], judge: MetricJudge, threshold: float) -> Reported:
    """What this judge says of these models' answers in all runs; turns that were graded alone count each."""
    fingerprint, other_judge = hash_of(judge.grader.fingerprint), 0
    counts = {name: [0, 0] for name in ("", *judge.criteria)}
    for model in models:
        for result in results.results(model):
            grade = result.grades.get(judge.key)
            if grade is None:
                continue
            if grade.judging is None or grade.judging.fingerprint != fingerprint:
                other_judge += 1
                continue
            for part in _parts(grade):
                for name, count in counts.items():
                    score = score_of(part, name)
                    if score is not None:
                        count[0] += score >= threshold - _TOLERANCE
                        count[1] += 1
    if other_judge:
        return Reported(other_judge=other_judge)
    return Reported({name: (passed, n) for name, (passed, n) in counts.items() if n})


def _parts(grade: GradeResult) -> Iterator[GradeResult | PerTurnGrade]:
    if grade.per_turn_grades:
        yield from grade.per_turn_grades
    else:
        yield grade
