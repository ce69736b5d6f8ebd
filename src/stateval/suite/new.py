"""A new suite for somebody to begin with: it runs as it is, with no model and no key."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from stateval.errors import UsageError

FILES = ("suite.yaml", "samples.jsonl", "agent.py", "README.md")


def write_new_suite(directory: Path, *, force: bool = False) -> list[Path]:
    """Writes the files of a small suite into a directory, which is made where it does not exist.

    Raises UsageError where one of the files is there already (unless `force`), or cannot be written; in the first
    case nothing is written.
    """
    paths = [directory / name for name in FILES]
    there = [path for path in paths if path.exists()]
    if there and not force:
        names = ", ".join(str(path) for path in there)
        raise UsageError(f"{names} would be overwritten: name another directory, or use --force")
    template = files("stateval.suite").joinpath("template")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path in paths:
            path.write_text(template.joinpath(path.name).read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename or directory}: cannot be written: {error.strerror}") from None
    return paths
