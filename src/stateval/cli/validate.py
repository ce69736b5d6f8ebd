"""`stateval validate SUITE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stateval.cli.python_suite import is_python_suite
from stateval.cli.screen import screen
from stateval.errors import ExitStatus, UsageError


def validate(
    suite: Annotated[Path, typer.Argument(help="The suite file, or a directory with a suite.yaml.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any field of the suite, as `field=value`; may be repeated.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")] = False,
) -> None:
    """Check a suite, its data and its code without asking any model, and say all that is wrong at once.

    Exit status: 0 the suite would run, 2 something is wrong.
    """
    if is_python_suite(suite):
        raise UsageError(f"{suite} is a Python file, which is checked where it runs: `stateval run {suite}`")
    from stateval.suite.overrides import parse_set
    from stateval.suite.report import examine

    overrides = [parse_set(pair) for pair in set_ or ()]
    screen.know_configuration([{override.path[-1]: override.value} for override in overrides])
    report = examine(suite, overrides)
    screen.know_suite(suite)
    screen.say(report.text().removesuffix("\n"))
    if report.problems:
        raise typer.Exit(ExitStatus.INPUT_WRONG)
