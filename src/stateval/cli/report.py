"""`stateval report DIR`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stateval.cli.screen import screen
from stateval.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from stateval.reports.presentation import Presentation
    from stateval.reports.sample_lists import Choice
    from stateval.results.reading import Results


def report(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR",
            help="Results: directories, or a file of one.",
            show_default="the latest below .stateval/runs",
        ),
    ] = None,
    sample: Annotated[str | None, typer.Option("--sample", metavar="ID", help="One sample, turn by turn.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="List all samples that failed, a line each.")] = False,
    errors: Annotated[bool, typer.Option("--errors", help="List all samples with an error, a line each.")] = False,
    model: Annotated[str | None, typer.Option(help="Samples of this model only.")] = None,
    run: Annotated[int | None, typer.Option(min=1, help="Samples of this run only, counted from 1.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many samples are shown.", show_default="5, and all of a list")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What ranks models and what samples pass.", show_default="the reward")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut no long text of a sample.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON: one document, or one line a sample.")] = False,
    width: Annotated[
        int | None, typer.Option(min=20, help="Columns.", show_default="those of the terminal, without end elsewhere")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")] = False,
) -> None:
    """Show a run, finished or not: its summary, its leaderboard, its samples. Nothing is written.

    Several directories give one leaderboard. Results of letta-evals are read as well.

    Exit status: 0 shown, 2 there is no such thing to show.
    """
    from stateval.results.opening import open_results

    runs = [open_results(path) for path in directories or [_latest_run()]]
    _check(runs, sample=sample, lists=failed or errors, chooses=model is not None or run is not None)
    console = _console(width)
    shown = _presentation(console, limit=limit, full=full)
    if sample is not None or failed or errors:
        from stateval.reports.sample_lists import Choice

        choice = Choice.of(runs[0], model=model, run=run)
        if sample is not None:
            _show_sample(runs[0], sample, choice, shown, console, as_json=json_)
        else:
            _show_lists(runs[0], choice, metric, shown, console, as_json=json_, failed=failed, errors=errors)
    else:
        _show_runs(runs, metric, shown, console, as_json=json_)


def _latest_run() -> Path:
    """The run that was begun or finished last below `.stateval/runs`. Raises UsageError where there is none."""
    from stateval.results.run_record import RUN_FILE

    records = list(Path(".stateval", "runs").glob(f"*/{RUN_FILE}"))
    if not records:
        raise UsageError("there is no run below .stateval/runs here; give the directory of one: `stateval report DIR`")
    latest = max(records, key=lambda record: record.stat().st_mtime)
    return latest.parent.parent


def _check(runs: Sequence[Results], *, sample: str | None, lists: bool, chooses: bool) -> None:
    if sample is None and not lists and chooses:
        raise UsageError("`--model` and `--run` choose samples: give `--sample ID`, `--failed` or `--errors` with them")
    if sample is not None and lists:
        raise UsageError("`--sample` shows one sample, `--failed` and `--errors` list many: give one of them")
    if (sample is not None or lists) and len(runs) > 1:
        raise UsageError("samples are shown of one directory at a time")


def _console(width: int | None) -> Console:
    from stateval.reports.terminal import report_console

    console = report_console(screen.out)
    if width is not None:
        console.width = width
    return console


def _presentation(console: Console, *, limit: int | None, full: bool) -> Presentation:
    from stateval.reports.presentation import Presentation

    return Presentation(screen.redaction, console.encoding, limit, full)


def _show_runs(
    runs: Sequence[Results], metric: str | None, shown: Presentation, console: Console, *, as_json: bool
) -> None:
    from stateval.reports.run_report import report_json, run_report, runs_report

    if as_json:
        _print_json(report_json(runs, metric), indent=2)
    else:
        _print(console, run_report(runs[0], metric, shown) if len(runs) == 1 else runs_report(runs, metric, shown))


def _show_sample(
    results: Results, sample: str, choice: Choice, shown: Presentation, console: Console, *, as_json: bool
) -> None:
    from stateval.reports.sample_lists import conversations, conversations_json

    if as_json:
        for line in conversations_json(results, sample, choice, shown):
            _print_json(line)
    else:
        _print(console, conversations(results, sample, choice, shown))


def _show_lists(
    results: Results,
    choice: Choice,
    metric: str | None,
    shown: Presentation,
    console: Console,
    *,
    as_json: bool,
    failed: bool,
    errors: bool,
) -> None:
    from stateval.reports import sample_lists

    kinds = [
        *([sample_lists.failures(results, metric)] if failed else []),
        *([sample_lists.errors()] if errors else []),
    ]
    for kind in kinds:
        if as_json:
            for line in sample_lists.listed_json(results, choice, kind, shown):
                _print_json(line)
        else:
            _print(console, sample_lists.listed(results, choice, kind, shown))


def _print(console: Console, parts: Iterable[RenderableType]) -> None:
    for part in parts:
        console.print(part)


def _print_json(value: Any, indent: int | None = None) -> None:
    """One document or line, in ASCII: what agents wrote reaches no terminal as it is."""
    from stateval.records.encoding import dump_json

    text = dump_json(value)
    screen.out.write(json.dumps(json.loads(screen.redaction.scrub_json(text)), ensure_ascii=True, indent=indent) + "\n")
