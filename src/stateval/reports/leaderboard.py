"""The leaderboard: models in order, with intervals and the groups that the evidence does not tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stateval.comparison.leaderboard import Doubts, Entrant, Leaderboard
from stateval.reports.printable import number, printable
from stateval.reports.terminal import Indented

_NONE = Doubts()


def leaderboard_report(board: Leaderboard, doubt: Doubts = _NONE, *, encoding: str = "utf-8") -> RenderableType:
    """The table, and below it what its columns mean.

    Args:
        doubt: why models of several runs cannot be compared, said first and loudly.
        encoding: what the console can show (`console.encoding`).
    """
    metric = printable(board.metric, encoding=encoding)
    heading = Text(f"Leaderboard by {metric}{', the least first' if board.smaller_is_better else ''}", style="bold")
    warnings = [
        Text(f"NOT COMPARABLE: {printable(one, encoding=encoding)}", style="bold red") for one in doubt.differing
    ]
    warnings += [Text(f"Not checked: {printable(one, encoding=encoding)}", style="yellow") for one in doubt.unchecked]
    return Group(
        heading, *warnings, _table(board, metric, encoding), *(Indented(Text(line), 0) for line in _legend(board))
    )


def leaderboard_json(board: Leaderboard, doubt: Doubts = _NONE) -> dict[str, Any]:
    """The same as plain data; `interval` is null where it is not defined, `group` empty where groups are not told."""
    return {
        "metric": board.metric,
        "smaller_is_better": board.smaller_is_better,
        "errored_as": board.errored_as,
        "significance": board.significance,
        "fewest_shared_samples": board.fewest_shared,
        "not_comparable": list(doubt.differing),
        "not_checked": list(doubt.unchecked),
        "entrants": [_entrant_json(entrant) for entrant in board.entrants],
    }


def _entrant_json(entrant: Entrant) -> dict[str, Any]:
    estimate = entrant.estimate
    return {
        "rank": entrant.rank,
        "model": entrant.label,
        "directory": str(entrant.path),
        "value": entrant.value,
        "interval": None if estimate is None else [estimate.low, estimate.high],
        "confidence": None if estimate is None else estimate.confidence,
        "interval_method": None if estimate is None else estimate.method,
        "standard_error": None if estimate is None else estimate.standard_error,
        "n_samples": entrant.n,
        "n_observations": entrant.observations,
        "n_passed": entrant.passed,
        "n_errored": entrant.errored,
        "cost": entrant.cost,
        "cost_missing": entrant.cost_missing,
        "p50_latency": entrant.p50_latency,
        "group": entrant.group,
    }


def _table(board: Leaderboard, metric: str, encoding: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    grouped = any(entrant.group for entrant in board.entrants)
    scores = not board.smaller_is_better
    table.add_column("Rank", justify="right")
    table.add_column("Model", overflow="fold")
    table.add_column(Text(metric), justify="right")
    for heading in ("95 % interval", "n", *(("Passed", "Errored") if scores else ()), "Cost, USD", "p50, s"):
        table.add_column(heading, justify="right")
    if grouped:
        table.add_column("Group", justify="right")
    for entrant in board.entrants:
        counts = _counts(entrant) if scores else []
        group = [entrant.group] if grouped else []
        table.add_row(
            Text(str(entrant.rank or "-")),
            Text(printable(entrant.label, encoding=encoding)),
            *_numbers(entrant, counts),
            *group,
        )
    return table


def _numbers(entrant: Entrant, counts: Sequence[str]) -> list[str]:
    estimate = entrant.estimate
    interval = "-" if estimate is None else f"[{number(estimate.low)}, {number(estimate.high)}]"
    at_least = ">= " if entrant.cost_missing else ""
    cost = "-" if entrant.cost is None else f"{at_least}{number(entrant.cost, 4)}"
    return [number(entrant.value), interval, str(entrant.n), *counts, cost, number(entrant.p50_latency, 2)]


def _counts(entrant: Entrant) -> list[str]:
    return [f"{entrant.passed} of {entrant.observations}", str(entrant.errored)]


def _legend(board: Leaderboard) -> list[str]:
    errored = (
        "errored samples are left out" if board.errored_as is None else f"errored ones count as {board.errored_as:g}"
    )
    lines = [f"Means over n samples, repeats averaged within the sample first; {errored}."]
    if len({entrant.n for entrant in board.entrants}) > 1:
        lines.append("Not all models have the same number of samples, so their means are over different ones.")
    if any(entrant.group for entrant in board.entrants):
        percent = f"{board.significance * 100:g} %"
        lines.append(
            "Models that share a letter do not differ significantly: pairs of models on the samples that both have"
            f" (at least {board.fewest_shared}), two-sided, at {percent} after Holm's correction."
        )
    return lines
