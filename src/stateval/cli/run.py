"""`stateval run SUITE`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stateval.errors import StatevalError

if TYPE_CHECKING:
    from stateval.running.plan import RunPlan
    from stateval.running.session import Destination, Session
    from stateval.suite.overrides import Override


class Display(StrEnum):
    """How a run shows its progress."""

    RICH = "rich"
    SIMPLE = "simple"
    JSON = "json"
    NONE = "none"


def run(
    suite: Annotated[Path, typer.Argument(help="The suite file, or a directory with a suite.yaml.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where results go. [default: below .stateval/runs]")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and the verdict.")] = False,
    display: Annotated[
        Display | None, typer.Option(help="How progress is shown. [default: rich on a terminal, else simple]")
    ] = None,
    max_concurrent: Annotated[int | None, typer.Option(help="Samples in flight.")] = None,
    max_samples: Annotated[int | None, typer.Option(help="Only the first N samples.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only samples with one of these tags; may be repeated.")] = None,
    num_runs: Annotated[int | None, typer.Option(help="Repeats of the whole suite.")] = None,
    model_handle: Annotated[list[str] | None, typer.Option(help="A model to run; may be repeated.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The endpoint of the target's model.")] = None,
    api_key: Annotated[str | None, typer.Option(help="The key for it; better an environment variable.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any field of the suite, as `field=value`; may be repeated.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Move an unfinished run in the directory to its history.")
    ] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Keep no results.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")] = False,
) -> None:
    """Run a suite: talk to the agent, grade what it did, and judge the gate.

    Exit status: 0 passed or no gate, 1 gate failed, 2 suite or data wrong, 3 inconclusive, 4 unfinished or every
    sample errored, 130 interrupted.
    """
    from stateval.running.session import Destination
    from stateval.suite.build import build_plan, check_plan
    from stateval.suite.load import load_suite

    overrides = [
        *_overrides(
            max_concurrent=("--max-concurrent", max_concurrent),
            max_samples=("--max-samples", max_samples),
            sample_tags=("--tag", tag or None),
            num_runs=("--num-runs", num_runs),
            target__model_handles=("--model-handle", model_handle or None),
            target__base_url=("--base-url", base_url),
            target__api_key=("--api-key", api_key),
        ),
        *_set(set_ or []),
    ]
    loaded = load_suite(suite, overrides)
    plan = build_plan(loaded)
    checked = check_plan(plan)
    if not quiet:
        for note in (*loaded.notes, *map(str, checked.warnings)):
            typer.echo(f"note: {note}", err=True)
    destination = Destination(path=output or loaded.output, save=not no_save, fresh=fresh)
    shown = _display(display, quiet=quiet)
    session = _run_with_display(plan, checked.count, destination, shown)
    if shown is not Display.JSON:
        _report(session, quiet=quiet)
    raise typer.Exit(session.outcome.exit_status)


def _overrides(**said: tuple[str, Any]) -> Iterator[Override]:
    from stateval.suite.overrides import Override

    for field, (option, value) in said.items():
        if value is not None:
            yield Override.of(field.replace("__", "."), value, option)


def _set(pairs: list[str]) -> list[Override]:
    from stateval.suite.overrides import parse_set

    return [parse_set(pair) for pair in pairs]


def _display(asked: Display | None, *, quiet: bool) -> Display:
    if quiet:
        return Display.NONE
    return asked or (Display.RICH if sys.stdout.isatty() else Display.SIMPLE)


def _run_with_display(plan: RunPlan, samples: int, destination: Destination, shown: Display) -> Session:
    import anyio
    from rich.console import Console

    from stateval.reports.progress import make_display, show
    from stateval.running.events import EventChannel
    from stateval.running.session import run_session

    async def both() -> Session:
        with EventChannel() as channel:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(show, channel, make_display(shown, Console()))
                ended = await _settled(
                    run_session(plan, samples=samples, destination=destination, channel=channel, handle_signals=True)
                )
                channel.close()
        if isinstance(ended, StatevalError):
            raise ended
        return ended

    return anyio.run(both)


async def _settled(session: Awaitable[Session]) -> Session | StatevalError:
    """What became of it; an error is handed on as a value, for a task group would wrap it."""
    try:
        return await session
    except StatevalError as error:
        return error


def _report(session: Session, *, quiet: bool) -> None:
    from rich.console import Console

    from stateval.reports.samples import noteworthy, samples_report
    from stateval.reports.terminal import summary_report

    console = Console()
    outcome, directory = session.outcome, session.directory
    if quiet:
        for verdict in outcome.summary.gates:
            console.print(f"{verdict.outcome.value}: {verdict.condition}", markup=False, highlight=False)
        return
    for model in outcome.summary.models:
        console.print(samples_report(noteworthy(directory, model.model), encoding=console.encoding))
    place = str(directory.path) if session.saved else None
    console.print(summary_report(outcome.summary, directory=place, encoding=console.encoding))
