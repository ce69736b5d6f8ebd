"""What a failing disk means for a run."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stateval.errors import ResultsError, StorageFull, UsageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def storage_error(path: Path, error: OSError) -> ResultsError:
    """The error to raise when a file of results cannot be written."""
    if error.errno in _FULL:
        return StorageFull(f"{path}: the disk is full; all samples finished before are kept. Make room and run again")
    return ResultsError(f"{path}: cannot be written: {error.strerror}; all samples finished before are kept")


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Writes a file under another name and renames it: a reader never sees half a file."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise storage_error(path, error) from error


@contextmanager
def before_anything_ran(path: Path) -> Iterator[None]:
    """Turns a failure to write inside into one line about the output directory: nothing has been lost yet."""
    try:
        yield
    except (OSError, ResultsError, ValueError) as error:  # ValueError: a path that cannot be, with a NUL in it
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"results cannot be written to {path}: {reason}; choose another `--output`") from error


@contextmanager
def before_change(*paths: Path) -> Iterator[None]:
    """Turns a failure to change these files of a run that lies on the disk into a ResultsError or StorageFull."""
    try:
        yield
    except OSError as error:
        raise storage_error(paths[0], error) from error
