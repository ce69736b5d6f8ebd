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
from stateval.cli.validate import validate
from stateval.errors import ExitStatus, StatevalError
from stateval.redaction import Redaction, secrets_of_environment

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
    redaction = Redaction(secrets_of_environment())
    _configure_logging(debug, redaction)
    try:
        app()
    except StatevalError as error:
        details = traceback.format_exc() if debug else ""
        typer.echo(redaction.scrub(f"{details}error: {error}"), err=True)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(ExitStatus.INTERRUPTED)


def _configure_logging(debug: bool, redaction: Redaction) -> None:
    """Warnings, or everything, to standard error, without known secrets."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Redacting("%(levelname)s: %(message)s", redaction))
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, handlers=[handler])
    if not debug:
        logging.getLogger("stamina").setLevel(logging.ERROR)


class _Redacting(logging.Formatter):
    def __init__(self, form: str, redaction: Redaction) -> None:
        super().__init__(form)
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        return self._redaction.scrub(super().format(record))
