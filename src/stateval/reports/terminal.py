"""The report at the end of a run: means with their n, the ledger, the verdicts and why, and where everything is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from stateval.records.summary import Ledger, MetricSummary, ModelSummary, Summary
from stateval.reports.judging import judging_line
from stateval.reports.printable import number, printable
from stateval.reports.verdicts import interval_text, verdict_report
from stateval.stats.table import REWARD

_ENDLESS = 1_000_000


def summary_report(
    summary: Summary,
    *,
    details: Sequence[str] = (),
    directory: str | None = None,
    encoding: str = "utf-8",
    delete_agents_with: str | None = None,
) -> RenderableType:
    """The whole report, for any rich console; all that it says is said in words, colour only repeats it.

    Where observations errored and count, a second line of each metric has the mean and n with them as 0.

    Args:
        details: lines below the heading, such as when the run was.
        directory: where the results are, to be printed last.
        encoding: what the console can show (`console.encoding`).
        delete_agents_with: how agents that are left can be deleted.
    """
    report = _Report(summary, encoding)
    parts: list[RenderableType] = [*report.heading(details), report.metrics(), *report.runs(), *report.ledgers()]
    parts += [*report.resources(), *report.errors()]
    if summary.gates:
        parts += [Text(""), verdict_report(summary.gates, encoding=encoding)]
    if summary.agents_left:
        how = f"; delete them with: {delete_agents_with}" if delete_agents_with else ""
        parts.append(report.line(f"Agents left on the server: {summary.agents_left}{how}"))
    if directory is not None:
        parts.append(report.place(directory))
    return Group(*parts)


def summary_text(summary: Summary, *, width: int = 100, directory: str | None = None) -> str:
    """The same report as plain text, without any escape sequence."""
    return plain_text(summary_report(summary, directory=directory), width=width)


def plain_text(renderable: RenderableType, *, width: int = 100) -> str:
    """Anything rich as plain text; no line has spaces at its end."""
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=False, color_system=None, legacy_windows=False)
    console.print(renderable, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def report_console(stream: IO[str] | None = None) -> Console:
    """The console to print reports on: as wide as its terminal; where it is none, no line is wrapped.

    Lines that must not be wrapped, such as paths, are never cut either. The stream is the standard output by default.
    """
    stream = sys.stdout if stream is None else stream
    return _ReportConsole(file=stream, width=None if stream.isatty() else _ENDLESS)


class _ReportConsole(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, **options})


@dataclass(frozen=True, slots=True)
class Indented:
    """A text of which every line begins with so many spaces, and none ends with any."""

    text: Text
    spaces: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = max(options.max_width - self.spaces, 1)
        for line in self.text.wrap(console, width):
            line.rstrip()
            yield Text(" " * self.spaces, end="").append_text(line).append("\n")


def ledger_line(ledger: Ledger) -> str:
    """The ledger as a sum that can be checked by eye.

    >>> ledger_line(Ledger(planned=3, passed=2, not_reached=1))
    '3 planned = 2 passed + 0 failed + 0 unscored + 0 errored + 0 timed out + 0 skipped + 1 not reached'
    """
    categories = ", ".join(f"{category} {count}" for category, count in ledger.errored.items())
    parts = {
        "passed": ledger.passed,
        "failed": ledger.failed,
        "unscored": ledger.unscored,
        f"errored ({categories})" if categories else "errored": sum(ledger.errored.values()),
        "timed out": ledger.timed_out,
        "skipped": ledger.skipped,
        "not reached": ledger.not_reached,
    }
    return f"{ledger.planned} planned = " + " + ".join(f"{count} {name}" for name, count in parts.items())


class _Report:
    """The parts of the report on one summary."""

    def __init__(self, summary: Summary, encoding: str) -> None:
        self._summary = summary
        self._encoding = encoding

    def line(self, text: str, style: str = "") -> Text:
        return Text(self._safe(text), style=style)

    def place(self, directory: str) -> Text:
        """Never wrapped, so that it can be copied."""
        return Text(self._safe(f"Results: {directory}"), no_wrap=True, overflow="ignore")

    def heading(self, details: Sequence[str]) -> Iterator[Text]:
        yield self.line(self._summary.suite, "bold")
        yield from map(self.line, details)
        if not self._summary.finished:
            yield self.line("The run did not finish: not every planned sample was reached.", "bold yellow")
        if self._summary.stopped_because is not None:
            yield self.line(f"Stopped: {self._summary.stopped_because}", "yellow")

    def metrics(self) -> Table:
        repeated = any(model.runs for model in self._summary.models)
        table = _table("Model", "Metric")
        for heading in ["n", *(["Samples"] if repeated else []), "Mean", "95 % interval", "Std dev", "Errors"]:
            table.add_column(heading, justify="right")
        for model in self._summary.models:
            for key, metric in model.metrics.items():
                table.add_row(self.line(model.model), self.line(key), *_scored_cells(metric, repeated))
                if metric.n_counted != metric.n_scored:
                    table.add_row("", "  errors as 0", *_counted_cells(metric, repeated))
        return table

    def runs(self) -> Iterator[RenderableType]:
        for model in self._summary.models:
            if model.runs:
                yield Text("")
                yield self.line(f"Runs of {model.model}", "bold")
                yield self._runs_of(model)
                yield from self._tries_of(model)

    def ledgers(self) -> Iterator[RenderableType]:
        yield Text("")
        yield self.line("Ledger", "bold")
        for model in self._summary.models:
            # Where a reward is composed, its ledger is that of the sample as a whole.
            keys = [REWARD] if REWARD in model.ledgers else list(model.ledgers)
            for key in keys:
                yield Indented(self.line(f"{model.model}, {key}: {ledger_line(model.ledgers[key])}"))

    def resources(self) -> Iterator[Text]:
        for model in self._summary.models:
            timing, usage = model.timing, model.usage
            parts = []
            if timing is not None:
                seconds = f"mean {timing.mean_total:.2f}, p50 {timing.p50_total:.2f}, p95 {timing.p95_total:.2f}"
                parts.append(f"seconds a sample: {seconds}")
            if usage.total_tokens:
                parts.append(f"tokens: {usage.prompt_tokens:,} in, {usage.completion_tokens:,} out")
            if usage.cost is not None:
                parts.append(f"cost: {usage.cost:.4f} USD")
            if model.cost_missing:
                parts.append(f"observations without a known price: {model.cost_missing}")
            if parts:
                yield self.line(f"{model.model}: {'; '.join(parts)}")
        for metric, judging in (self._summary.judging or {}).items():
            yield self.line(judging_line(metric, judging))

    def errors(self) -> Iterator[Text]:
        for model in self._summary.models:
            if model.errors is not None:
                categories = ", ".join(f"{name} {count}" for name, count in model.errors.by_category.items())
                types = ", ".join(f"{name} {count}" for name, count in model.errors.by_exception_type.items())
                total = model.errors.total_errors
                yield self.line(f"{model.model}: errors: {total} (by category: {categories}; by type: {types})", "red")

    def _runs_of(self, model: ModelSummary) -> Table:
        with_reward = model.reward is not None
        table = _table("Run")
        for heading in [
            "Samples",
            *([f"{REWARD} (n)"] if with_reward else []),
            *(f"{key} (n)" for key in model.per_metric),
        ]:
            table.add_column(self.line(heading), justify="right")
        table.add_column("Errors", justify="right")
        for run in model.runs or ():
            rewards = [_with_n(run.reward, run.n_scored.get(REWARD))] if with_reward else []
            scores = [_with_n(run.per_metric.get(key), run.n_scored.get(key)) for key in model.per_metric]
            samples = "-" if run.n_observed is None else str(run.n_observed)
            table.add_row(str(run.run), samples, *rewards, *scores, str(run.n_errors))
        for name, reward, means in (
            ("mean", model.reward, model.per_metric),
            ("std dev", model.reward_std, model.per_metric_std or {}),
        ):
            rewards = [number(reward)] if with_reward else []
            scores = [number(means.get(key)) for key in model.per_metric]
            table.add_row(name, "-", *rewards, *scores, "-")
        return table

    def _tries_of(self, model: ModelSummary) -> Iterator[RenderableType]:
        """pass@k and pass^k, of which the summary may be of a release that had none."""
        for key, metric in model.metrics.items():
            if metric.pass_at_k and metric.pass_hat_k:
                at, hat = (", ".join(map(number, chances)) for chances in (metric.pass_at_k, metric.pass_hat_k))
                ks = ", ".join(str(k) for k in range(1, len(metric.pass_at_k) + 1))
                line = f"{key}: with k = {ks} tries, pass@k {at}; pass^k {hat} ({_samples(metric)})"
                yield Indented(self.line(line))

    def _safe(self, text: str) -> str:
        return printable(text, encoding=self._encoding)


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _scored_cells(metric: MetricSummary, repeated: bool) -> list[str]:
    samples = ["-" if metric.n_samples is None else str(metric.n_samples)] if repeated else []
    mean = [number(metric.mean_scored), interval_text(metric.interval)]
    return [str(metric.n_scored), *samples, *mean, number(metric.std_dev), str(metric.n_errors)]


def _counted_cells(metric: MetricSummary, repeated: bool) -> list[str]:
    return [
        str(metric.n_counted),
        *(["-"] if repeated else []),
        *(number(metric.mean_counted), interval_text(metric.counted_interval), "-", "-"),
    ]


def _with_n(value: float | None, n: int | None) -> str:
    return number(value) if n is None else f"{number(value)} ({n})"


def _samples(metric: MetricSummary) -> str:
    return "n not known" if metric.n_samples is None else f"n = {metric.n_samples} samples"
