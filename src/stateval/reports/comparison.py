"""A comparison for people: one sentence a metric, the means behind it, where samples went, and which ones changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stateval.comparison.compared import (
    Change,
    ChangedSample,
    Changes,
    ComparedRun,
    Comparison,
    Interval,
    MetricComparison,
    ModelComparison,
)
from stateval.records.summary import MetricSummary
from stateval.reports.printable import printable, shortened
from stateval.reports.terminal import Indented, ledger_line
from stateval.stats.table import COST, TOKENS

LONGEST_ID = 120

_STYLES = {Change.BETTER: "green", Change.WORSE: "bold red", Change.UNCLEAR: "", Change.UNKNOWN: "yellow"}
_LISTS = (("newly failing", "newly_failing"), ("newly passing", "newly_passing"), ("still failing", "still_failing"))


def comparison_report(
    comparison: Comparison, *, encoding: str = "utf-8", clean: Callable[[str], str] = str
) -> RenderableType:
    """The whole comparison, for any rich console; all that it says is said in words, colour only repeats it.

    Args:
        encoding: what the console can show (`console.encoding`).
        clean: called on every text that an agent or a dataset may have written.
    """
    lines = _Lines(encoding, clean)
    parts: list[RenderableType] = [lines.line(mark, "bold red") for mark in comparison.marks]
    parts.append(lines.line(f"Intervals are of {100 * comparison.confidence:g} %; a difference is B - A."))
    for model in comparison.models:
        parts += [Text(""), *lines.model(model)]
    return Group(*parts)


def verdict_sentence(metric: MetricComparison) -> str:
    """What became of one metric, with all that it stands on.

    As in `reward: better: 0.620 -> 0.700, +0.080 [+0.020, +0.140], n = 300 samples, McNemar exact p = 0.004`.
    """
    return f"{name_of(metric)}: {metric.change.value}: {'; '.join(_evidence(metric))}"


def name_of(metric: MetricComparison) -> str:
    """What the metric is called; nothing that a log of GitHub obeys at the beginning of a line."""
    return printable(metric.metric)


def amount(metric: MetricComparison, value: float | None, *, signed: bool = False) -> str:
    """A value of the metric as reports print it; a dash where there is none."""
    if value is None:
        return "-"
    sign = "+" if signed else ""
    if not metric.less_is_better:
        return f"{value:{sign}.3f}"
    digits = {COST: 6, TOKENS: 1}.get(metric.metric, 3)
    return f"{value:{sign},.{digits}f}"


def interval_text(metric: MetricComparison, interval: Interval | None) -> str:
    """An interval of differences; a dash where there is none."""
    if interval is None:
        return "-"
    low, high = (amount(metric, end, signed=True) for end in interval)
    return f"[{low}, {high}]"


def p_text(metric: MetricComparison) -> str:
    """The p-value with its test, and Holm's where several were compared; a dash where there is none."""
    if metric.p_value is None:
        return "-"
    adjusted = "" if metric.p_adjusted is None else f" ({_p(metric.p_adjusted)} by Holm)"
    return f"{_named(metric.p_method)} {_p(metric.p_value)}{adjusted}"


def run_line(letter: str, run: ComparedRun) -> str:
    """Which run a letter stands for, and how much of it there is."""
    there = f"{run.observations:,} of {run.planned:,} planned observations"
    return f"{letter}: {run.path}, model {run.model}: {there}, {run.samples:,} samples"


def shared_line(model: ModelComparison) -> str:
    """How the samples of the runs overlap."""
    return f"{model.n_shared:,} samples in both, {model.n_only_in_one:,} only in A, {model.n_only_in_other:,} only in B"


def means_rows(model: ModelComparison) -> Iterator[list[str]]:
    """Metric, run, mean of the scored and n, mean of the counted and n, errors: two rows a metric."""
    for metric in model.metrics:
        for letter, summary in (("A", metric.one), ("B", metric.other)):
            yield [name_of(metric), letter, *_means(metric, summary)]


MEANS_COLUMNS = ("Metric", "Run", "Mean scored", "n", "Mean counted", "n", "Without a value")


def lists_of(changes: Changes) -> Iterator[tuple[str, int, list[ChangedSample]]]:
    """(heading, number of samples, those that are listed) for each list that has any."""
    for words, field in _LISTS:
        count, samples = getattr(changes, f"n_{field}"), getattr(changes, field)
        if count:
            yield f"{changes.metric}, {words}", count, samples


def change_text(sample: ChangedSample) -> str:
    """What became of a sample."""
    one, other = (
        f"{value:.3g}{' (errored)' if errored else ''}"
        for value, errored in ((sample.one, sample.one_errored), (sample.other, sample.other_errored))
    )
    return f"{one} -> {other}"


@dataclass(frozen=True, slots=True)
class _Lines:
    """What is printed of a comparison."""

    encoding: str
    clean: Callable[[str], str]

    def line(self, text: str, style: str = "") -> Text:
        return Text(self._safe(text), style=style)

    def model(self, model: ModelComparison) -> Iterator[RenderableType]:
        yield self._unwrapped(run_line("A", model.one))
        yield self._unwrapped(run_line("B", model.other))
        yield self.line(shared_line(model))
        for note in model.notes:
            yield self.line(f"note: {note}", "yellow")
        yield Text("")
        for metric in model.metrics:
            yield self.line(verdict_sentence(metric), _STYLES[metric.change])
        yield Text("")
        yield self._means(model)
        yield Text("")
        yield from self._ledgers(model)
        yield from self._lists(model)

    def _means(self, model: ModelComparison) -> Table:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for number, heading in enumerate(MEANS_COLUMNS):
            table.add_column(heading, justify="left" if number < 2 else "right", overflow="fold")
        for row in means_rows(model):
            table.add_row(*(self.line(cell) for cell in row))
        return table

    def _ledgers(self, model: ModelComparison) -> Iterator[RenderableType]:
        yield self.line("Ledger", "bold")
        for letter, run in (("A", model.one), ("B", model.other)):
            for metric, ledger in run.ledgers.items():
                yield Indented(self.line(f"{letter}, {metric}: {ledger_line(ledger)}"))

    def _lists(self, model: ModelComparison) -> Iterator[RenderableType]:
        for changes in model.changes:
            for heading, count, samples in lists_of(changes):
                yield from self._list(heading, count, [f"{self._id(s.id)}: {change_text(s)}" for s in samples])
        for letter, count, ids in (
            ("A", model.n_only_in_one, model.only_in_one),
            ("B", model.n_only_in_other, model.only_in_other),
        ):
            if count:
                yield from self._list(f"only in {letter}", count, [self._id(key) for key in ids])

    def _list(self, heading: str, count: int, items: Sequence[str]) -> Iterator[RenderableType]:
        yield Text("")
        yield self.line(f"{heading} ({count:,})", "bold")
        for item in items:
            yield Indented(self.line(item))
        if len(items) < count:
            yield Indented(self.line(f"... and {count - len(items):,} more: `--limit`, or `--format json` for all"))

    def _id(self, key: str) -> str:
        return f"sample {shortened(self.clean(key), LONGEST_ID)}"

    def _unwrapped(self, text: str) -> Text:
        """Never wrapped, so that its path can be copied."""
        return Text(self._safe(text), no_wrap=True, overflow="ignore")

    def _safe(self, text: str) -> str:
        return printable(self.clean(text), encoding=self.encoding)


def _evidence(metric: MetricComparison) -> Iterator[str]:
    if metric.difference is None:
        yield "no sample has a value in both runs"
        return
    means = f"{amount(metric, metric.one_mean)} -> {amount(metric, metric.other_mean)}"
    change = f"{amount(metric, metric.difference, signed=True)} {interval_text(metric, metric.interval)}"
    groups = f" in {metric.n_clusters:,} clusters" if metric.n_clusters < metric.n else ""
    p_value = "" if metric.p_value is None else f", {p_text(metric)}"
    yield f"{means}, {change}, n = {metric.n:,} sample{'s' if metric.n != 1 else ''}{groups}{p_value}"
    if metric.disagree:
        yield "interval and test disagree"
    if metric.interval is None:
        yield "too few independent samples for an interval"
    if metric.scored is not None:
        scored = amount(metric, metric.scored.difference, signed=True)
        yield f"scored in both: {scored} {interval_text(metric, metric.scored.interval)}, n = {metric.scored.n:,}"


def _means(metric: MetricComparison, summary: MetricSummary) -> list[str]:
    scored = [amount(metric, summary.mean_scored), f"{summary.n_scored:,}"]
    counted = [amount(metric, summary.mean_counted), f"{summary.n_counted:,}"]
    return [*scored, *(["-", "-"] if metric.less_is_better else counted), f"{summary.n_errors:,}"]


def _named(method: str | None) -> str:
    return {"mcnemar exact": "McNemar exact", "t": "paired t", "cluster t": "cluster-robust t"}.get(
        method or "", method or ""
    )


def _p(value: float) -> str:
    return "p < 0.0001" if value < 0.0001 else f"p = {value:.2g}"
