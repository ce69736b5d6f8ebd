"""Files that a command writes because it was told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from stateval.cli.screen import screen
from stateval.errors import ResultsError, UsageError


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name when it is complete; missing directories are made. A device is written to directly.

    Raises UsageError where it cannot be begun, ResultsError where it cannot be completed; then nothing is left of it,
    and what had the name before still has it.
    """
    target = path.resolve()
    partial = target if target.exists() and not target.is_file() else target.with_name(f"{target.name}.partial")
    stream = _begun(partial, path)
    try:
        with stream:
            yield stream
        if partial is not target:
            partial.replace(target)
    except BaseException as error:
        if partial is not target:
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ResultsError(f"{path}: cannot be completed: {error.strerror or error}") from error
        raise


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """The standard output for bytes."""
    screen.out.flush()
    yield screen.out.buffer
    screen.out.buffer.flush()


def _begun(partial: Path, path: Path) -> BinaryIO:
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        return partial.open("wb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
