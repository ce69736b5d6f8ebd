"""The program's entrance: the list of commands, and what becomes of errors."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import traceback
from typing import Annotated

import typer

from stateval import __version__
from stateval.cli import judge, models
from stateval.cli.compare import compare
from stateval.cli.export import ExportCommand, export
from stateval.cli.init import init
from stateval.cli.listing import list_extractors, list_graders
from stateval.cli.report import report
from stateval.cli.run import RunCommand, run
from stateval.cli.schema import schema
from stateval.cli.screen import screen
from stateval.cli.validate import validate
from stateval.errors import ExitStatus, StatevalError
from stateval.reports.printable import shortened

_SECONDS_FOR_THREADS = 2.0

app = typer.Typer(
    name="stateval",
    help="Evaluate stateful agents: does an agent with memory remember, correct itself and keep to its policy?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=RunCommand)(run)
for command in (report, validate, compare, init, list_extractors, list_graders, schema):
    app.command()(command)
app.command(cls=ExportCommand)(export)
app.add_typer(judge.app, name="judge")
app.add_typer(models.app, name="models")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stateval {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    return


def main() -> None:
    """Runs the command line and exits with an `ExitStatus`."""
    debug = "--debug" in sys.argv or bool(os.environ.get("STATEVAL_DEBUG"))
    screen.open()
    _configure_logging(debug)
    status = _run(debug)
    screen.close()
    _leave_threads_behind(status)
    sys.exit(status)


def _run(debug: bool) -> int:
    try:
        app()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            screen.complain(f"error: {ended.code}")
            return ExitStatus.UNFINISHED
        return ended.code or ExitStatus.PASSED
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - the last place that can say anything of it
        return _told(error, debug=debug)
    return ExitStatus.PASSED


def _leave_threads_behind(status: int) -> None:
    """Ends the program here where threads that a user's code started would keep it alive for ever."""
    deadline = time.monotonic() + _SECONDS_FOR_THREADS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                atexit._run_exitfuncs()
                os._exit(status)


def _told(error: BaseException, *, debug: bool) -> ExitStatus:
    """Says what ended the program; gives back the status to exit with."""
    details = "".join(traceback.format_exception(error)) if debug else ""
    cause = _first_cause(error)
    match cause:
        case StatevalError():
            screen.complain_of(cause, details)
            return cause.exit_status
        case KeyboardInterrupt():
            return ExitStatus.INTERRUPTED
    (*_, told) = traceback.format_exception_only(cause)
    advice = "" if debug else "; run again with --debug for the traceback"
    screen.complain(f"{details}error: unexpected {shortened(screen.one_line(told.rstrip()))}{advice}")
    return ExitStatus.UNFINISHED


def _first_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _configure_logging(debug: bool) -> None:
    """Warnings, or everything, to standard error, fit for a screen."""
    handler = logging.StreamHandler(screen.err)
    handler.setFormatter(_Clean("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, handlers=[handler])
    if not debug:
        logging.getLogger("stamina").setLevel(logging.ERROR)


class _Clean(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return screen.clean(super().format(record), screen.err.encoding)
