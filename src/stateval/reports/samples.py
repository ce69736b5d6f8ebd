"""The samples that a person looks at first: those that failed, and those with the lowest scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappush, heappushpop

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from stateval.records.result import SampleResult
from stateval.reports.printable import printable, shortened


def samples_report(results: Iterable[SampleResult], limit: int = 5, *, encoding: str = "utf-8") -> RenderableType:
    """The first `limit` errored samples with category and message, and the `limit` lowest scored with rationales.

    Results are read once, one at a time; only what is shown is kept. A sample's score is its reward, else the mean of
    its grades.
    """
    errors: list[Text] = []
    n_errors = 0
    lowest: list[_Excerpt] = []
    n_scored = 0
    for place, result in enumerate(results):
        if result.error is not None:
            n_errors += 1
            if len(errors) < limit:
                errors.append(_error_line(result, encoding))
        score = _score(result)
        if score is not None:
            n_scored += 1
            excerpt = _Excerpt(-score, -place, _heading(result, score), tuple(_grades(result)))
            heappush(lowest, excerpt) if len(lowest) < limit else heappushpop(lowest, excerpt)
    parts: list[RenderableType] = []
    if errors:
        parts += [Text(f"Errors ({len(errors)} of {n_errors})", style="bold"), *map(_indented, errors)]
    if lowest:
        parts.append(Text(f"Samples, lowest scores first ({len(lowest)} of {n_scored})", style="bold"))
        for excerpt in sorted(lowest, reverse=True):
            parts.append(_indented(Text(printable(excerpt.heading, encoding=encoding))))
            parts += [Padding(Text(printable(g, encoding=encoding)), (0, 0, 0, 4)) for g in excerpt.grades]
    return Group(*parts)


@dataclass(frozen=True, slots=True, order=True)
class _Excerpt:
    """What is shown of a sample; the greatest is the lowest score, at the first place."""

    negative_score: float
    negative_place: int
    heading: str
    grades: tuple[str, ...]


def _score(result: SampleResult) -> float | None:
    if result.reward is not None:
        return result.reward.score
    scores = [grade.score for grade in result.grades.values()]
    return sum(scores) / len(scores) if scores else None


def _grades(result: SampleResult) -> Iterator[str]:
    for key, grade in result.grades.items():
        rationale = f": {grade.rationale}" if grade.rationale else ""
        yield f"{key} {grade.score:.3g}{shortened(rationale)}"
        if key in result.submissions:
            yield f"submission: {shortened(result.submissions[key])}"


def _heading(result: SampleResult, score: float) -> str:
    return f"{_name(result)}: {score:.3g}"


def _error_line(result: SampleResult, encoding: str) -> Text:
    error = result.error
    message = "" if error is None else f"{error.category}: {error.message}"
    return Text(printable(f"{_name(result)}: {shortened(message)}", encoding=encoding), style="red")


def _name(result: SampleResult) -> str:
    model = f" [{result.model_handle}]" if result.model_handle else ""
    run = f" run {result.run}" if result.run > 1 else ""
    return f"sample {result.sample_id}{run}{model}"


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2))
