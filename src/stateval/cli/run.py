"""`stateval run SUITE`."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stateval.cli.screen import screen
from stateval.errors import ExitStatus, StatevalError, UsageError

if TYPE_CHECKING:
    from stateval.running.plan import RunPlan
    from stateval.running.runner import RunOutcome
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
    started_in = _current_directory()
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
    shown = _display(display, quiet=quiet)
    place = absolute(output) if output is not None else None
    with screen.only_ours() if shown is Display.JSON else nullcontext():
        plan, place_in_suite, notes = _prepared(suite, overrides)
        samples, warnings = _checked(plan)
        if not quiet:
            for note in (*notes, *warnings):
                screen.complain(f"note: {note}")
        destination = _destination(plan, place or place_in_suite, started_in, save=not no_save, fresh=fresh)
        session = _run_with_display(plan, samples, destination, shown)
        if shown is not Display.JSON:
            _report(session, quiet=quiet)
        _complain_of(session.outcome)
    raise typer.Exit(session.outcome.exit_status)


def absolute(path: Path) -> Path:
    """The path as it is meant here and now; user code may change the current directory. `~` is the home directory."""
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(f"{path}: {error}") from None


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(f"the current directory cannot be used: {error.strerror}; change to another one") from None


def _prepared(suite: Path, overrides: Sequence[Override]) -> tuple[RunPlan, Path | None, tuple[str, ...]]:
    """The plan of a suite, the results directory that it names, and notes; its secrets are known to the screen then."""
    from stateval.suite.build import build_plan, secrets_in
    from stateval.suite.load import load_suite

    try:
        loaded = load_suite(suite, overrides)
    except StatevalError:
        screen.know_suite(suite)
        raise
    screen.know(secrets_in(loaded))
    return build_plan(loaded), loaded.output, loaded.notes


def _checked(plan: RunPlan) -> tuple[int, list[str]]:
    from stateval.suite.build import check_plan

    checked = check_plan(plan)
    return checked.count, [str(warning) for warning in checked.warnings]


def _destination(plan: RunPlan, path: Path | None, started_in: Path, *, save: bool, fresh: bool) -> Destination:
    from stateval.results.directory import default_directory
    from stateval.running.session import Destination

    if path is None and save:
        path = default_directory(plan.name, below=started_in)
    return Destination(path=path, save=save, fresh=fresh)


def _overrides(**said: tuple[str, Any]) -> Iterator[Override]:
    from stateval.suite.overrides import Override

    screen.know_configuration({field.removeprefix("target__"): value for field, (_, value) in said.items()})
    for field, (option, value) in said.items():
        if value is not None:
            yield Override.of(field.replace("__", "."), value, option)


def _set(pairs: list[str]) -> list[Override]:
    from stateval.suite.overrides import parse_set

    overrides = [parse_set(pair) for pair in pairs]
    screen.know_configuration([{override.path[-1]: override.value} for override in overrides])
    return overrides


def _display(asked: Display | None, *, quiet: bool) -> Display:
    if quiet:
        return Display.NONE
    return asked or (Display.RICH if screen.out.isatty() else Display.SIMPLE)


def _run_with_display(plan: RunPlan, samples: int, destination: Destination, shown: Display) -> Session:
    import anyio
    from rich.console import Console

    from stateval.reports.progress import make_display, show
    from stateval.running.events import EventChannel
    from stateval.running.session import run_session

    async def both() -> Session:
        with EventChannel() as channel:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(show, channel, make_display(shown, Console(file=screen.out), screen.redaction))
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
    from stateval.records.summary import Summary
    from stateval.reports.samples import noteworthy, samples_report
    from stateval.reports.terminal import report_console, summary_report

    console = report_console(screen.out)
    outcome, directory = session.outcome, session.directory
    summary = Summary.from_json(screen.redaction.scrub_json(outcome.summary.to_json()))
    if quiet:
        for verdict in summary.gates:
            name = f"{verdict.name}: " if verdict.name else ""
            screen.say(f"{name}{verdict.outcome.value}: {verdict.condition}")
        return
    try:
        for model in outcome.summary.models:
            found = noteworthy(directory, model.model)
            console.print(samples_report(found, label=model.model, encoding=console.encoding))
    except (StatevalError, OSError) as error:
        screen.complain(f"warning: the results cannot be read again: {error}")
    place = screen.clean(str(directory.path)) if session.saved else None
    console.print(summary_report(summary, directory=place, encoding=console.encoding))


def _complain_of(outcome: RunOutcome) -> None:
    """Says why a run stopped before its end, or why else it does not count as finished."""
    if outcome.error is not None:
        screen.complain_of(outcome.error)
    elif outcome.stopped_because is not None:
        screen.complain(f"error: the run stopped: {screen.one_line(outcome.stopped_because)}")
    elif outcome.exit_status is ExitStatus.UNFINISHED:
        finished = outcome.summary.finished
        screen.complain(f"error: {'every sample errored' if finished else 'not every planned sample was reached'}")
