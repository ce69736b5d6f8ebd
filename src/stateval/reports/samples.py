"""The samples that a person looks at first: those that failed, and those with the lowest scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from stateval.records.result import Observation, SampleResult
from stateval.reports.printable import printable, shortened
from stateval.reports.terminal import Indented
from stateval.results.journal import Entry
from stateval.results.reading import Results

DEFAULT_LABEL = "default"
"""What a model is called that has neither a name nor a handle."""


@dataclass(frozen=True, slots=True)
class Noteworthy:
    """The results to show of one model, and how many there are to choose from."""

    errored: list[SampleResult]
    lowest: list[SampleResult]
    n_errored: int
    n_scored: int


def noteworthy(results: Results, label: str, limit: int = 5) -> Noteworthy:
    """The first `limit` errored results, and the `limit` with the lowest scores, lowest first.

    A sample's score is its reward, else the mean of its grades. The index is read once; only what is returned is read
    from the results themselves.
    """
    errored: list[SampleResult] = []
    lowest: list[_Ranked] = []
    n_errored = n_scored = 0
    for place, (path, entry) in enumerate(results.entries(label)):
        if entry.observation.error is not None:
            n_errored += 1
            if len(errored) < limit:
                errored.append(results.read(path, entry))
        score = sample_score(entry.observation)
        if score is not None:
            n_scored += 1
            ranked = _Ranked(-score, -place, path, entry)
            heappush(lowest, ranked) if len(lowest) < limit else heappushpop(lowest, ranked)
    found = [results.read(ranked.path, ranked.entry) for ranked in sorted(lowest, reverse=True)]
    return Noteworthy(errored, found, n_errored, n_scored)


def samples_report(found: Noteworthy, *, label: str | None = None, encoding: str = "utf-8") -> RenderableType:
    """The errored samples with category and message, and the lowest scored with submissions and rationales.

    Args:
        label: what tables call the model; without it, and for the one model of a suite that names none, a sample's
            own handle is shown.
        encoding: what the console can show (`console.encoding`).
    """
    lines = _Lines(label, encoding)
    parts: list[RenderableType] = []
    if found.errored:
        parts.append(Text(f"Errors ({len(found.errored)} of {found.n_errored})", style="bold"))
        parts += [lines.error(result) for result in found.errored]
    if found.lowest:
        parts.append(Text(f"Samples, lowest scores first ({len(found.lowest)} of {found.n_scored})", style="bold"))
    for result in found.lowest:
        parts += [lines.heading(result), *lines.grades(result)]
    return Group(*parts)


def sample_score(observation: Observation) -> float | None:
    """What a sample is ranked by: its reward, else the mean of its grades; None where it has neither."""
    if observation.reward is not None:
        return observation.reward
    scores = observation.scores.values()
    return sum(scores) / len(scores) if scores else None


def result_name(result: SampleResult, label: str | None = None) -> str:
    """How a result is named: its sample, its run where it is not the first, and its model as tables call it."""
    shown = result.model_handle if label is None or label == DEFAULT_LABEL else label
    model = f" [{shown}]" if shown else ""
    run = f" run {result.run}" if result.run > 1 else ""
    return f"sample {result.sample_id}{run}{model}"


def result_line(result: SampleResult, label: str | None = None) -> str:
    """That name and the score."""
    score = sample_score(Observation.of(result))
    mean = " (mean of metrics)" if result.reward is None and len(result.grades) > 1 else ""
    return f"{result_name(result, label)}: {'no score' if score is None else f'{score:.3g}{mean}'}"


@dataclass(frozen=True, slots=True)
class _Lines:
    """What is printed of a sample."""

    label: str | None
    encoding: str

    def error(self, result: SampleResult) -> Indented:
        error = result.error
        message = "" if error is None else f"{error.category}: {error.message}"
        return self._indented(f"{result_name(result, self.label)}: {shortened(message)}", style="red")

    def heading(self, result: SampleResult) -> Indented:
        return self._indented(result_line(result, self.label))

    def grades(self, result: SampleResult) -> Iterator[Indented]:
        return (self._indented(line, spaces=4) for line in _grades(result))

    def _indented(self, line: str, *, spaces: int = 2, style: str = "") -> Indented:
        return Indented(Text(printable(line, encoding=self.encoding), style=style), spaces)


@dataclass(frozen=True, slots=True, order=True)
class _Ranked:
    """Where a scored result is; the greatest is the lowest score, at the first place."""

    negative_score: float
    negative_place: int
    path: Path = field(compare=False)
    entry: Entry = field(compare=False)


def _grades(result: SampleResult) -> Iterator[str]:
    for key, grade in result.grades.items():
        rationale = f": {grade.rationale}" if grade.rationale else ""
        yield f"{key} {grade.score:.3g}{shortened(rationale)}"
        turns = grade.per_turn_grades or []
        worst = min(turns, key=lambda turn: turn.score, default=None)
        if worst is not None:
            reason = f": {shortened(worst.rationale)}" if worst.rationale else ""
            yield f"{'the worst, ' if len(turns) > 1 else ''}turn {worst.turn}{reason}"
            yield f"submission: {shortened(worst.submission)}"
        elif key in result.submissions:
            yield f"submission: {shortened(result.submissions[key])}"
