"""A comparison as Markdown, for a comment on a change or a file beside it.

Whatever an agent or a dataset wrote stands in code spans, in which nothing is markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stateval.comparison.compared import Change, Comparison, MetricComparison, ModelComparison
from stateval.reports.comparison import (
    LONGEST_ID,
    MEANS_COLUMNS,
    amount,
    change_text,
    interval_text,
    lists_of,
    means_rows,
    p_text,
    shared_line,
)
from stateval.reports.markdown import code
from stateval.reports.terminal import ledger_line

_COLUMNS = ("Metric", "Change", "A", "B", "Difference", "Interval", "n", "Test")


def comparison_markdown(comparison: Comparison, *, clean: Callable[[str], str] = str) -> str:
    """The comparison; what must be known first is its first line.

    Args:
        clean: called on every text that an agent or a dataset may have written.
    """
    lines = [f"**{code(mark, 2_000)}**\n" for mark in map(clean, comparison.marks)]
    lines += ["## Comparison\n", f"Intervals are of {100 * comparison.confidence:g} %; a difference is B - A."]
    for model in comparison.models:
        heading = _heading(model, clean) if len(comparison.models) > 1 else []
        lines += ["", *heading, *_model(model, clean)]
    return "\n".join(lines) + "\n"


def _model(model: ModelComparison, clean: Callable[[str], str]) -> Iterator[str]:
    for letter, run in (("A", model.one), ("B", model.other)):
        there = f"{run.observations:,} of {run.planned:,} planned observations, {run.samples:,} samples"
        yield f"* {letter}: {code(clean(run.path), 500)}, model {code(clean(run.model))}: {there}"
    yield f"* {shared_line(model)}"
    yield from (f"* note: {code(clean(note), 500)}" for note in model.notes)
    yield ""
    errors = any(metric.scored is not None for metric in model.metrics)
    columns = [*_COLUMNS, *(["Scored in both", "n"] if errors else [])]
    yield from _table(columns, (_cells(metric, with_scored=errors) for metric in model.metrics), left=2)
    yield ""
    yield from _table(MEANS_COLUMNS, ([_cell(row[0]), *row[1:]] for row in means_rows(model)), left=2)
    yield from ("", "Ledger:", "")
    for letter, run in (("A", model.one), ("B", model.other)):
        yield from (f"* {letter}, {code(metric)}: {ledger_line(ledger)}" for metric, ledger in run.ledgers.items())
    yield from _lists(model, clean)


def _heading(model: ModelComparison, clean: Callable[[str], str]) -> list[str]:
    one, other = (f"{code(clean(run.path), 500)} ({code(clean(run.model))})" for run in (model.one, model.other))
    return [f"### {other} beside {one}", ""]


def _cells(metric: MetricComparison, *, with_scored: bool) -> list[str]:
    n = f"{metric.n:,}" + (f" in {metric.n_clusters:,} clusters" if metric.n_clusters < metric.n else "")
    decided = metric.change in (Change.BETTER, Change.WORSE)
    change = f"**{metric.change.value}**" if decided else metric.change.value
    change += ": interval and test disagree" if metric.disagree else ""
    means = amount(metric, metric.one_mean), amount(metric, metric.other_mean)
    difference = amount(metric, metric.difference, signed=True), interval_text(metric, metric.interval)
    return [_cell(metric.metric), change, *means, *difference, n, p_text(metric), *_scored(metric, with_scored)]


def _scored(metric: MetricComparison, wanted: bool) -> list[str]:
    """The difference without errored observations, and its n, where some metric has any."""
    if not wanted or metric.scored is None:
        return ["-", "-"] if wanted else []
    difference = amount(metric, metric.scored.difference, signed=True)
    return [f"{difference} {interval_text(metric, metric.scored.interval)}", f"{metric.scored.n:,}"]


def _lists(model: ModelComparison, clean: Callable[[str], str]) -> Iterator[str]:
    for changes in model.changes:
        for heading, count, samples in lists_of(changes):
            items = [f"{code(clean(sample.id), LONGEST_ID)}: {change_text(sample)}" for sample in samples]
            metric, _, words = heading.rpartition(", ")
            yield from _list(f"{code(metric)}, {words}", count, items)
    for letter, count, ids in (
        ("A", model.n_only_in_one, model.only_in_one),
        ("B", model.n_only_in_other, model.only_in_other),
    ):
        if count:
            yield from _list(f"Only in {letter}", count, [code(clean(key), LONGEST_ID) for key in ids])


def _list(heading: str, count: int, items: list[str]) -> Iterator[str]:
    yield from ("", f"{heading} ({count:,}):", "")
    yield from (f"* {item}" for item in items)
    if len(items) < count:
        yield f"* ... and {count - len(items):,} more"


def _table(columns: Iterable[str], rows: Iterable[list[str]], *, left: int) -> Iterator[str]:
    headings = list(columns)
    yield _row(headings)
    yield _row("---" if number < left else "---:" for number in range(len(headings)))
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return code(text, LONGEST_ID).replace("|", r"\|")
