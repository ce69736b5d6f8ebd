"""`stateval init [DIR]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stateval.cli.screen import screen


def init(
    directory: Annotated[
        Path, typer.Argument(help="Where the suite is written; made where it does not exist.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Write a small suite that runs as it is, with no model and no key."""
    from stateval.suite.new import write_new_suite

    paths = write_new_suite(directory, force=force)
    for path in paths:
        screen.say(f"wrote {path}")
    screen.say(f"next: stateval run {paths[0]}")
