"""Files that a command writes because it was told to."""

from __future__ import annotations

import os
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


def require_writable(path: Path) -> None:
    """Raises UsageError where a file of this name could not be begun, before work is done for it."""
    target = path.resolve()
    if target.is_dir():
        raise UsageError(f"{path}: cannot be written: it is a directory; name a file in it")
    directory = next(parent for parent in target.parents if parent.exists())
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: cannot be written: {directory} is no directory that may be written to")


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
