"""The samples that a person looks at first: those that failed, and those with the lowest scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from stateval.records.result import Observation, SampleResult
from stateval.reports.printable import printable, shortened
from stateval.results.directory import ResultsDirectory
from stateval.results.journal import Entry, read_result


@dataclass(frozen=True, slots=True)
class Noteworthy:
    """The results to show of one model, and how many there are to choose from."""

    errored: list[SampleResult]
    lowest: list[SampleResult]
    n_errored: int
    n_scored: int


def noteworthy(directory: ResultsDirectory, label: str, limit: int = 5) -> Noteworthy:
    """The first `limit` errored results, and the `limit` with the lowest scores, lowest first.

    A sample's score is its reward, else the mean of its grades. The index is read once; only what is returned is read
    from the results themselves.
    """
    errored: list[SampleResult] = []
    lowest: list[_Ranked] = []
    n_errored = n_scored = 0
    for place, (path, entry) in enumerate(directory.entries(label)):
        if entry.observation.error is not None:
            n_errored += 1
            if len(errored) < limit:
                errored.append(read_result(path, entry))
        score = _score(entry.observation)
        if score is not None:
            n_scored += 1
            ranked = _Ranked(-score, -place, path, entry)
            heappush(lowest, ranked) if len(lowest) < limit else heappushpop(lowest, ranked)
    found = [read_result(ranked.path, ranked.entry) for ranked in sorted(lowest, reverse=True)]
    return Noteworthy(errored, found, n_errored, n_scored)


def samples_report(found: Noteworthy, *, encoding: str = "utf-8") -> RenderableType:
    """The errored samples with category and message, and the lowest scored with submissions and rationales."""
    parts: list[RenderableType] = []
    if found.errored:
        parts.append(Text(f"Errors ({len(found.errored)} of {found.n_errored})", style="bold"))
        parts += [_indented(_error_line(result, encoding)) for result in found.errored]
    if found.lowest:
        parts.append(Text(f"Samples, lowest scores first ({len(found.lowest)} of {found.n_scored})", style="bold"))
    for result in found.lowest:
        score = _score(Observation.of(result))
        heading = f"{_name(result)}: {score:.3g}"
        parts.append(_indented(Text(printable(heading, encoding=encoding))))
        parts += [Padding(Text(printable(g, encoding=encoding)), (0, 0, 0, 4)) for g in _grades(result)]
    return Group(*parts)


@dataclass(frozen=True, slots=True, order=True)
class _Ranked:
    """Where a scored result is; the greatest is the lowest score, at the first place."""

    negative_score: float
    negative_place: int
    path: Path = field(compare=False)
    entry: Entry = field(compare=False)


def _score(observation: Observation) -> float | None:
    if observation.reward is not None:
        return observation.reward
    scores = observation.scores.values()
    return sum(scores) / len(scores) if scores else None


def _grades(result: SampleResult) -> Iterator[str]:
    for key, grade in result.grades.items():
        rationale = f": {grade.rationale}" if grade.rationale else ""
        yield f"{key} {grade.score:.3g}{shortened(rationale)}"
        if key in result.submissions:
            yield f"submission: {shortened(result.submissions[key])}"


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
