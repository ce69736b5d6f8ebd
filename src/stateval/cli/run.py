"""`stateval run SUITE`."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from stateval.cli import run_options as options
from stateval.cli.optional import with_values
from stateval.cli.python_suite import is_python_suite, run_python_suite
from stateval.cli.run_options import Display
from stateval.cli.screen import screen
from stateval.errors import ExitStatus, ModelUnavailable, StatevalError, UsageError

if TYPE_CHECKING:
    from stateval.running.plan import RunPlan
    from stateval.running.runner import RunOutcome
    from stateval.running.session import Destination, Session
    from stateval.suite.overrides import Override


class RunCommand(TyperCommand):
    """The command with `--resume`, whose directory may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What follows `--resume` is its directory, unless it is a suite."""
        return super().parse_args(ctx, list(with_values(args, {"--resume"}, lambda value: not _is_suite(value))))


def run(
    suite: options.Suite,
    output: options.Output = None,
    quiet: options.Quiet = False,
    display: options.Displayed = None,
    max_concurrent: options.MaxConcurrent = None,
    max_samples: options.MaxSamples = None,
    tag: options.Tag = None,
    num_runs: options.NumRuns = None,
    model_handle: options.ModelHandle = None,
    base_url: options.BaseUrl = None,
    api_key: options.ApiKey = None,
    project_id: options.ProjectId = None,
    backend: options.Backend = None,
    set_: options.Set = None,
    resume: options.Resume = None,
    retry_errors: options.RetryErrors = False,
    fresh: options.Fresh = False,
    cached: options.Cached = None,
    no_cache: options.NoCache = False,
    no_save: options.NoSave = False,
    debug: options.Debug = False,
) -> None:
    """Run a suite: talk to the agent, grade what it did, and judge the gate.

    A run that was stopped or killed goes on when the same command is given again: finished samples are kept.

    Exit status: 0 passed or no gate, 1 gate failed, 2 suite or data wrong, 3 inconclusive, 4 unfinished or every
    sample errored, 130 interrupted.
    """
    overrides = [
        *_overrides(
            max_concurrent=("--max-concurrent", max_concurrent),
            max_samples=("--max-samples", max_samples),
            sample_tags=("--tag", tag or None),
            num_runs=("--num-runs", num_runs),
            target__model_handles=("--model-handle", model_handle or None),
            target__base_url=("--base-url", base_url),
            target__api_key=("--api-key", api_key),
            target__project_id=("--project-id", project_id),
            backend=("--backend", backend),
        ),
        *_set(set_ or []),
    ]
    shown = _display(display, quiet=quiet)
    wanted = _Wanted(
        place=_place(output, resume),
        save=not no_save,
        fresh=fresh,
        resume=resume is not None,
        retry_errors=retry_errors,
        cached=absolute(cached) if cached is not None else None,
        cache=not no_cache,
        started_in=_current_directory(),
    )
    if is_python_suite(suite):
        return run_python_suite(suite, list(_given(wanted, display, overrides)), quiet=quiet)
    with screen.only_ours() if shown is Display.JSON else nullcontext():
        status = _run(suite, overrides, wanted, shown, quiet=quiet)
    raise typer.Exit(status)


def _given(wanted: _Wanted, display: Display | None, overrides: Sequence[Override]) -> Iterator[str]:
    """The options on the command line that change something."""
    flags = {
        "--output": wanted.place is not None and not wanted.resume,
        "--display": display is not None,
        "--resume": wanted.resume,
        "--retry-errors": wanted.retry_errors,
        "--fresh": wanted.fresh,
        "--cached": wanted.cached is not None,
        "--no-cache": not wanted.cache,
        "--no-save": not wanted.save,
    }
    yield from (name for name, is_given in flags.items() if is_given)
    yield from (override.origin for override in overrides)


def _run(suite: Path, overrides: Sequence[Override], wanted: _Wanted, shown: Display, *, quiet: bool) -> ExitStatus:
    plan, place_in_suite, notes = _prepared(suite, overrides, cache=wanted.cache)
    destination = wanted.destination(plan, place_in_suite)
    samples, warnings = _checked(plan, destination)
    if not quiet:
        for note in (*notes, *warnings):
            screen.complain(f"note: {note}")
    session = _run_with_display(plan, samples, destination, shown)
    if shown is not Display.JSON:
        _report(session, quiet=quiet)
    _complain_of(session.outcome, saved=session.saved)
    return session.outcome.exit_status


def _is_suite(value: str) -> bool:
    path = Path(value)
    return path.is_file() or any((path / name).is_file() for name in ("suite.yaml", "suite.yml"))


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


def _prepared(
    suite: Path, overrides: Sequence[Override], *, cache: bool
) -> tuple[RunPlan, Path | None, tuple[str, ...]]:
    """The plan of a suite, the results directory that it names, and notes; its secrets are known to the screen then."""
    from stateval.suite.build import build_plan, secrets_in
    from stateval.suite.load import load_suite

    try:
        loaded = load_suite(suite, overrides)
    except StatevalError:
        screen.know_suite(suite)
        raise
    screen.know(secrets_in(loaded))
    return build_plan(loaded, cache=cache), loaded.output, loaded.notes


def _place(output: Path | None, resume: str | None) -> Path | None:
    """The directory that was named: by `--resume`, else by `--output`."""
    if resume:
        if output is not None and absolute(output) != absolute(Path(resume)):
            raise UsageError("`--resume` and `--output` name two directories; a run goes on where it began")
        return absolute(Path(resume))
    return absolute(output) if output is not None else None


def _checked(plan: RunPlan, destination: Destination) -> tuple[int, list[str]]:
    """How many samples there are, and what is to be said of them."""
    from stateval.running.session import already_checked
    from stateval.suite.build import check_plan

    known = already_checked(plan, destination)
    if known is not None:
        return known, []
    checked = check_plan(plan)
    return checked.count, [str(warning) for warning in checked.warnings]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the command says of where results go, and of what is known already."""

    place: Path | None
    save: bool
    fresh: bool
    resume: bool
    retry_errors: bool
    cached: Path | None
    cache: bool
    started_in: Path

    def destination(self, plan: RunPlan, place_in_suite: Path | None) -> Destination:
        """The directory that the command names, else the suite, else one below `.stateval/runs`."""
        from stateval.running.session import Destination, find_destination

        wanted = Destination(
            path=(self.place or place_in_suite) if self.save else None,
            save=self.save,
            fresh=self.fresh,
            resume=self.resume,
            retry_errors=self.retry_errors,
            cached=self.cached,
            below=self.started_in,
        )
        return find_destination(plan, wanted)


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


def _complain_of(outcome: RunOutcome, *, saved: bool) -> None:
    """Says why a run stopped before its end, or why else it does not count as finished; and how it can go on."""
    if saved and not outcome.summary.finished and outcome.can_go_on:
        screen.complain("the same command goes on where this run stopped; `--fresh` begins anew")
    elif saved and any(model.errors for model in outcome.summary.models):
        screen.complain("`--retry-errors` runs the samples with errors again")
    if saved and not outcome.summary.finished and isinstance(outcome.error, ModelUnavailable):
        screen.complain("with `--retry-errors` it also grades the conversations that have no grade")
    if outcome.error is not None:
        screen.complain_of(outcome.error)
    elif outcome.stopped_because is not None:
        screen.complain(f"error: the run stopped: {screen.one_line(outcome.stopped_because)}")
    elif outcome.exit_status is ExitStatus.UNFINISHED:
        finished = outcome.summary.finished
        screen.complain(f"error: {'every sample errored' if finished else 'not every planned sample was reached'}")
