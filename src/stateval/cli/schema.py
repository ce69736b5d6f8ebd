"""`stateval schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stateval.cli.run import absolute
from stateval.cli.screen import screen
from stateval.errors import UsageError


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write it to this file.")] = None,
) -> None:
    """Print the JSON Schema of a suite file, for editors that complete and check."""
    from stateval.suite.json_schema import shipped_schema

    text = shipped_schema()
    if output is None:
        screen.out.write(text)
        return
    output = absolute(output)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
    screen.say(f"wrote {output}")
