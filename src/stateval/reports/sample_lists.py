"""Samples of a run by their id or by what became of them, found through the index: of each only its place is held."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import Any, Self

from rich.console import RenderableType

from stateval.errors import UsageError
from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.reports.asked import known_samples
from stateval.reports.conversation import conversation_report
from stateval.reports.presentation import DEFAULT_LIMIT, Presentation
from stateval.reports.printable import shortened
from stateval.reports.samples import result_line, result_name, sample_score
from stateval.reports.standing import Rule, Standing
from stateval.reports.terminal import Indented
from stateval.results.journal import Entry
from stateval.results.reading import Results
from stateval.stats.comparison import Operator, holds
from stateval.stats.table import REWARD

_LONGEST = 160
_ALIKE = 50.0
"""Per cent of equal characters (rapidfuzz's `ratio`) from which on two ids look alike."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where one result is. `label` is its model's."""

    label: str
    path: Path
    entry: Entry


@dataclass(frozen=True, slots=True)
class Kind:
    """Samples that are listed: what they are called, which they are, and the line that says why."""

    name: str
    holds: Callable[[Observation], bool]
    line: Callable[[SampleResult, str], str]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which models and runs are looked at: all of them, where nothing is said."""

    labels: tuple[str, ...]
    run: int | None = None

    @classmethod
    def of(cls, results: Results, *, model: str | None = None, run: int | None = None) -> Self:
        """The choice of one model, one run (counted from 1), or both. Raises UsageError where there is none such."""
        if model is not None and model not in results.labels:
            raise UsageError(
                f"there is no model `{model}`; there are {', '.join(f'`{one}`' for one in results.labels)}"
            )
        if run is not None and run > results.num_runs:
            raise UsageError(f"there is no run {run}: the suite ran {_times(results.num_runs)}")
        return cls(results.labels if model is None else (model,), run)

    def find(self, results: Results, wanted: Callable[[Observation], bool]) -> Iterator[Found]:
        """The results that are wanted, by model and run, in the order in which they ended."""
        for label in self.labels:
            for path, entry in results.entries(label):
                if self.run in (None, entry.observation.run) and wanted(entry.observation):
                    yield Found(label, path, entry)


def conversations(results: Results, sample: str, choice: Choice, shown: Presentation) -> Iterator[RenderableType]:
    """One sample turn by turn, in each of the models and runs that have it, up to `shown.limit`.

    Raises UsageError where there is no such sample, naming the ids nearest to it.
    """
    found = _of_sample(results, sample, choice)
    row = _row(results, sample)
    if len(found) > 1:
        yield shown.line(f"{len(found)} results of this sample; choose one with", "bold")
        for one in found:
            score = sample_score(one.entry.observation)
            said = "no score" if score is None else f"{score:.3g}"
            yield Indented(shown.line(f"--model {shlex.quote(one.label)} --run {_run(one)}: {said}"))
        yield ""
    limit = shown.limit or DEFAULT_LIMIT
    for number, one in enumerate(found[:limit]):
        result = shown.clean_result(results.read(one.path, one.entry))
        if number:
            yield ""
        yield conversation_report(
            result, row and shown.clean(row), label=one.label, encoding=shown.encoding, full=shown.full
        )
    if len(found) > limit:
        yield from ("", f"{len(found) - limit} more; `--limit N` shows more at once")


def conversations_json(results: Results, sample: str, choice: Choice, shown: Presentation) -> Iterator[dict[str, Any]]:
    """The same results whole, each with its model and the sample's row (null where it is not known any more)."""
    found = _of_sample(results, sample, choice)
    row = _row(results, sample)
    for one in found[: shown.limit]:
        result = results.read(one.path, one.entry).to_dict()
        yield {"model": one.label, "run": _run(one), "sample": row and row.to_dict(), "result": result}


def listed(results: Results, choice: Choice, kind: Kind, shown: Presentation) -> Iterator[RenderableType]:
    """The samples of one kind, a line each, and how many they are."""
    seen = matched = 0

    def counted(observation: Observation) -> bool:
        nonlocal seen, matched
        wanted = kind.holds(observation)
        seen, matched = seen + 1, matched + wanted
        return wanted

    for number, one in enumerate(choice.find(results, counted)):
        if shown.limit is None or number < shown.limit:
            result = shown.clean_result(results.read(one.path, one.entry))
            yield Indented(shown.line(kind.line(result, one.label)))
    cut = f"; the first {shown.limit:,} are shown" if shown.limit is not None and matched > shown.limit else ""
    yield shown.line(f"{matched:,} of {seen:,} {kind.name}{cut}", "bold")


def listed_json(results: Results, choice: Choice, kind: Kind, shown: Presentation) -> Iterator[dict[str, Any]]:
    """The same samples as plain data."""
    for one in islice(choice.find(results, kind.holds), shown.limit):
        result = results.read(one.path, one.entry)
        yield {
            "list": kind.name,
            "sample_id": result.sample_id,
            "model": one.label,
            "run": _run(one),
            "reward": result.reward.score if result.reward else None,
            "scores": {key: grade.score for key, grade in result.grades.items()},
            "error": result.error.to_dict() if result.error else None,
        }


def failures(results: Results, metric: str | None = None) -> Kind:
    """Samples that did not pass: in the metric that is asked for, else the reward, else any grader's.

    Raises UsageError for a metric that the run does not have.
    """
    rule = _rule(results, metric)
    return Kind(
        "failed",
        lambda seen: rule.standing(seen) is Standing.FAILED,
        lambda result, label: _failed_line(result, label, rule.threshold),
    )


def errors() -> Kind:
    """Samples of which some stage failed."""
    return Kind("errored", lambda seen: seen.error is not None, _error_line)


def nearest_ids(results: Results, sample: str, most: int = 3) -> list[str]:
    """The ids that look most like this one, the most alike first; of the first model with any that does."""
    from rapidfuzz.fuzz import ratio

    for label in results.labels:
        ids = (observation.sample_id for observation in results.observations(label))
        scored = ((ratio(sample.casefold(), one.casefold(), score_cutoff=_ALIKE), one) for one in ids)
        best = nlargest(most * results.num_runs, (pair for pair in scored if pair[0]))
        if best:
            return list(dict.fromkeys(one for _, one in best))[:most]
    return []


def _of_sample(results: Results, sample: str, choice: Choice) -> list[Found]:
    found = list(choice.find(results, lambda seen: seen.sample_id == sample))
    if found:
        return found
    everywhere = Choice.of(results)
    elsewhere = (
        next(everywhere.find(results, lambda seen: seen.sample_id == sample), None) if choice != everywhere else None
    )
    if elsewhere is not None:
        raise UsageError(
            f"sample `{sample}` has no such result; it has one of `{elsewhere.label}`, run {_run(elsewhere)}"
        )
    near = ", ".join(f"`{one}`" for one in nearest_ids(results, sample))
    planned = " yet: the run has not reached it" if _row(results, sample) is not None else ""
    raise UsageError(
        f"there is no result of a sample `{sample}`{planned or (f'; the nearest are {near}' if near else '')}"
    )


def _row(results: Results, sample: str) -> Sample | None:
    """What the sample asked; None where that is not known any more."""
    return next((one for one in known_samples(results) if one.key == sample), None)


def _run(found: Found) -> int:
    return found.entry.observation.run


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _rule(results: Results, metric: str | None) -> Rule:
    if metric is None:
        return Rule(results.metric_keys, results.has_reward, results.pass_threshold)
    if metric in results.metric_keys:
        return Rule((metric,), has_reward=False, threshold=results.pass_threshold)
    if metric == REWARD and results.has_reward:
        return Rule((), has_reward=True, threshold=results.pass_threshold)
    known = ", ".join(f"`{key}`" for key in [*([REWARD] if results.has_reward else []), *results.metric_keys])
    raise UsageError(f"there is no metric `{metric}` that samples pass or fail; choose from {known}")


def _failed_line(result: SampleResult, label: str, threshold: float) -> str:
    """The sample, its score, and the rationales of the grades below the threshold."""
    low = [key for key, grade in result.grades.items() if not holds(grade.score, Operator.GTE, threshold)]
    reasons = [f"{key} {_graded(result, key)}" for key in low or result.grades]
    return f"{result_line(result, label)}; {'; '.join(reasons)}" if reasons else result_line(result, label)


def _graded(result: SampleResult, key: str) -> str:
    grade = result.grades[key]
    worst = min(grade.per_turn_grades or (), key=lambda turn: turn.score, default=None)
    reason = grade.rationale if worst is None else f"turn {worst.turn}: {worst.rationale or f'{worst.score:.3g}'}"
    said = shortened(reason, _LONGEST) if reason else ""
    return f"{grade.score:.3g}{': ' if said else ''}{said}"


def _error_line(result: SampleResult, label: str) -> str:
    """The sample, which stage failed of which metrics, and how."""
    error = result.error
    if error is None:
        return result_name(result, label)
    metrics = ", ".join(result.grade_errors or ())
    timed_out = " (timed out)" if error.timed_out else ""
    said = shortened(f"{error.exception_type}: {error.message}", _LONGEST)
    return f"{result_name(result, label)}: {error.category}{f' of {metrics}' if metrics else ''}{timed_out}: {said}"
