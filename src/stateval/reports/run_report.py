"""The report on one run or several, finished or not."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from stateval.comparison.leaderboard import Doubts, Leaderboard, doubts, leaderboard
from stateval.records.summary import ModelSummary, Summary
from stateval.reports.leaderboard import leaderboard_json, leaderboard_report
from stateval.reports.presentation import DEFAULT_LIMIT, Presentation
from stateval.reports.samples import noteworthy, samples_report
from stateval.reports.terminal import Indented, ledger_line, summary_report
from stateval.results.directory import ResultsDirectory
from stateval.results.reading import Results
from stateval.running.stored import summary_of
from stateval.stats.table import REWARD


def run_report(results: Results, metric: str | None, shown: Presentation) -> Iterator[RenderableType]:
    """One run: its summary, the leaderboard of its models, the samples to look at first, and where everything is.

    Args:
        metric: ranks the models; asked for, it is shown of a single model too. By default the reward.
    """
    summary = shown.clean(summary_of(results))
    board = _board(results, metric)
    details = [shown.line(line).plain for line in run_lines(results, summary)]
    yield summary_report(summary, details=details, encoding=shown.encoding)
    if board is not None:
        yield from ("", leaderboard_report(board, encoding=shown.encoding))
    for label in results.labels:
        found = noteworthy(results, label, shown.limit or DEFAULT_LIMIT)
        if found.errored or found.lowest:
            errored, lowest = [*map(shown.clean_result, found.errored)], [*map(shown.clean_result, found.lowest)]
            found = replace(found, errored=errored, lowest=lowest)
            yield from ("", samples_report(found, label=label, encoding=shown.encoding))
    yield ""
    yield from map(shown.unwrapped, place_lines(results))


def runs_report(runs: Sequence[Results], metric: str | None, shown: Presentation) -> Iterator[RenderableType]:
    """Several runs: what each is with its ledger, and one leaderboard of all models."""
    doubt = doubts(runs, metric)
    board = leaderboard(runs, metric, with_groups=not doubt.differing)
    for results in runs:
        summary = shown.clean(summary_of(results))
        yield shown.line(f"{summary.suite}: {results.path}", "bold")
        lines = [
            *run_lines(results, summary),
            *(line for one in summary.models for line in _ledgers(one, board.metric)),
        ]
        yield from (Indented(shown.line(line)) for line in lines)
    yield from ("", leaderboard_report(board, doubt, encoding=shown.encoding))


def report_json(runs: Sequence[Results], metric: str | None) -> dict[str, Any]:
    """Summaries and leaderboard as plain data; `leaderboard` is null for a single model, unless `metric` is given."""
    doubt = doubts(runs, metric) if len(runs) > 1 else Doubts()
    board = leaderboard(runs, metric, with_groups=not doubt.differing) if len(runs) > 1 else _board(runs[0], metric)
    return {
        "results": [_run_json(results) for results in runs],
        "leaderboard": None if board is None else leaderboard_json(board, doubt),
    }


def run_lines(results: Results, summary: Summary) -> Iterator[str]:
    """When the run was, its size, how much of it is there, and for an unfinished one how to go on."""
    ours = results if isinstance(results, ResultsDirectory) else None
    if ours is not None:
        yield _when(ours)
    yield _size(results, summary)
    for metric, names in results.judges.items():
        graded_by = results.inputs.graders.get(metric, "not known")
        yield f"Judge of {metric}: answered as {', '.join(names)} (hash of the grader: {graded_by})"
    if ours is not None and not summary.finished:
        yield f"To go on: {_command_to_go_on(ours)}"


def place_lines(results: Results) -> Iterator[str]:
    """Where everything is, and how to see one sample."""
    yield f"One sample turn by turn: stateval report {shlex.quote(str(results.path))} --sample ID"
    earlier = _earlier_runs(results.path)
    if earlier:
        yield f"Earlier runs: {earlier} in {results.path / 'history'}"
    yield f"Results: {results.path}"


def _command_to_go_on(directory: ResultsDirectory) -> str:
    record = directory.record
    words = ["stateval", "run", record.suite_file or "SUITE", "--resume", str(directory.path)]
    if record.cached is not None:
        inside = directory.path / record.cached
        words += ["--cached", str(inside if inside.exists() else record.cached)]
    return shlex.join(words)


def _board(results: Results, metric: str | None) -> Leaderboard | None:
    has_metric = results.has_reward or bool(results.metric_keys)
    is_wanted = metric is not None or (len(results.labels) > 1 and has_metric)
    return leaderboard([results], metric) if is_wanted else None


def _run_json(results: Results) -> dict[str, Any]:
    record = results.record if isinstance(results, ResultsDirectory) else None
    return {
        "directory": str(results.path),
        "started": record and record.started.isoformat(),
        "finished": record and record.finished and record.finished.isoformat(),
        "num_runs": results.num_runs,
        "planned": results.planned,
        "judges": {metric: list(names) for metric, names in results.judges.items()},
        "summary": summary_of(results).to_dict(),
    }


def _ledgers(model: ModelSummary, metric: str) -> Iterator[str]:
    keys = [metric] if metric in model.ledgers else [REWARD] if REWARD in model.ledgers else list(model.ledgers)
    for key in keys:
        yield f"{model.model}, {key}: {ledger_line(model.ledgers[key])}"


def _when(directory: ResultsDirectory) -> str:
    record = directory.record
    begun = f"Started {_time(record.started)}"
    resumed = f", resumed {_time(record.resumed[-1])}" if record.resumed else ""
    if record.finished is not None:
        return f"{begun}{resumed}, finished {_time(record.finished)}"
    last = _last_written(directory)
    return f"{begun}{resumed}, not finished; {'no result yet' if last is None else f'last result {_time(last)}'}"


def _size(results: Results, summary: Summary) -> str:
    samples = max((model.n_total for model in summary.models), default=results.planned)
    runs = [_count(results.num_runs, "run")] if results.num_runs > 1 else []
    ledgers = [next(iter(model.ledgers.values())) for model in summary.models if model.ledgers]
    planned = sum(ledger.planned for ledger in ledgers)
    done = planned - sum(ledger.not_reached for ledger in ledgers)
    parts = [_count(len(results.labels), "model"), *runs, _count(samples, "sample")]
    return f"{' x '.join(parts)}: {done:,} of {planned:,} done"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _last_written(directory: ResultsDirectory) -> datetime | None:
    """When the newest of the results files was written to; None where there is none with a result."""
    files = (directory.journal_path(label, run) for label in directory.labels for run in directory.runs())
    times = [file.stat().st_mtime for file in files if file.exists() and file.stat().st_size]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _earlier_runs(path: Path) -> int:
    """How many runs were moved to the history."""
    history = path / "history"
    return sum((place / ".stateval").is_dir() for place in history.iterdir()) if history.is_dir() else 0
