"""The program's entrance: the list of commands, and what becomes of errors."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import Annotated

import typer

from stateval import __version__
from stateval.cli import models
from stateval.cli.init import init
from stateval.cli.listing import list_extractors, list_graders
from stateval.cli.run import run
from stateval.cli.schema import schema
from stateval.cli.screen import screen
from stateval.cli.validate import validate
from stateval.errors import ExitStatus, StatevalError
from stateval.reports.printable import shortened

app = typer.Typer(
    name="stateval",
    help="Evaluate stateful agents: does an agent with memory remember, correct itself and keep to its policy?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (run, validate, init, list_extractors, list_graders, schema):
    app.command()(command)
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
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(ExitStatus.INTERRUPTED)
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - the last place that can say anything of it
        sys.exit(_told(error, debug=debug))
    finally:
        screen.close()


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
