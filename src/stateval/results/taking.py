"""Taking a directory for a run: the lock, and what becomes of what lies in it. Nothing is ever overwritten."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import filelock

from stateval.errors import ResultsLocked, UsageError
from stateval.results.run_record import RunRecord, read_run_record
from stateval.results.storage import before_anything_ran

logger = logging.getLogger(__name__)

_KEEP = {".lock", "history"}


@dataclass(frozen=True, slots=True)
class Found:
    """What lay in a directory that was taken: a run to continue, or one that was moved away; or nothing."""

    unfinished: RunRecord | None = None
    moved_to: Path | None = None


def lock(path: Path) -> filelock.BaseFileLock:
    """The lock of a directory, which is made where it does not exist.

    Raises ResultsLocked where another process holds it, UsageError where nothing can be written.
    """
    with before_anything_ran(path):
        path.mkdir(parents=True, exist_ok=True)
        held = filelock.FileLock(path / ".lock")
        try:
            held.acquire(blocking=False)
        except filelock.Timeout:
            busy = True
        else:
            busy = False
    if busy:
        raise ResultsLocked(f"another process is running in {path}; wait for it, or choose another `--output`")
    return held


def make_room(path: Path, *, identity: str, fresh: bool, reopen: bool) -> Found:
    """Looks at what lies in a locked directory, and moves a run that is over to `history`.

    An unfinished run of the same identity is to go on, with `reopen` a finished one too; with `fresh` it is moved away.
    Raises UsageError for other things and for an unfinished run of another suite.
    """
    with before_anything_ran(path):
        record = read_run_record(path)
    if record is None:
        _refuse_other_things(path)
        return Found()
    if not has_results(path, record):
        return Found()
    if fresh:
        return _moved(path, record)
    is_same = record.identity == identity
    if is_same and (reopen or record.finished is None):
        return Found(unfinished=record)
    if record.finished is None or reopen:
        kind = "a finished" if record.finished else "an unfinished"
        raise UsageError(
            f"{path} holds {kind} run of another suite or target ({record.suite!r}); choose another directory, or move "
            f"that run to {path / 'history'} and begin anew with `--fresh`"
        )
    return _moved(path, record)


def has_results(path: Path, record: RunRecord) -> bool:
    """Whether any result was written."""
    return any(journal.stat().st_size > 0 for journal in _journals(path, record))


def lay_out(path: Path, record: RunRecord, num_runs: int) -> None:
    """Moves the files of a run to where a run of so many repeats has them; repeats beyond are moved to `history`."""
    for name in record.models.values():
        alone, first = path / f"{name}.jsonl", path / name / "run_1.jsonl"
        old, new = (first, alone) if num_runs == 1 else (alone, first)
        if old.exists() and not new.exists():
            new.parent.mkdir(exist_ok=True)
            old.rename(new)
        for further in sorted((path / name).glob("run_*.jsonl")):
            number = further.stem.removeprefix("run_")
            if number.isdecimal() and int(number) > num_runs:
                aside = place_in_history(path) / name
                aside.mkdir(parents=True, exist_ok=True)
                further.rename(aside / further.name)


def place_in_history(path: Path, time: datetime | None = None) -> Path:
    """A new place below `history`, named after the time (now without one)."""
    name = (time or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    candidates = (path / "history" / (f"{name}-{n}" if n > 1 else name) for n in itertools.count(1))
    return next(place for place in candidates if not place.exists())


def find_run(below: Path, is_wanted: Callable[[RunRecord], bool]) -> Path | None:
    """The latest run with results that is wanted and that no process works on, in the directories directly below."""
    runs = [(record.started, path) for path, record in _runs_below(below) if is_wanted(record)]
    for _, path in sorted(runs, reverse=True):
        record = read_run_record(path)
        if record is not None and has_results(path, record) and not _is_locked(path):
            return path
    return None


def _runs_below(below: Path) -> Iterator[tuple[Path, RunRecord]]:
    for path in below.iterdir() if below.is_dir() else ():
        try:
            record = read_run_record(path)
        except Exception as error:  # noqa: BLE001 - a damaged neighbour is no reason not to run
            logger.debug("%s: %s", path, error)
            continue
        if record is not None:
            yield path, record


def _is_locked(path: Path) -> bool:
    held = filelock.FileLock(path / ".lock")
    try:
        held.acquire(blocking=False)
    except (filelock.Timeout, OSError):
        return True
    held.release()
    return False


def _refuse_other_things(path: Path) -> None:
    with before_anything_ran(path):
        present = [entry for entry in path.iterdir() if entry.name not in _KEEP | {".stateval"}]
    if present:
        raise UsageError(
            f"{path} is not empty and holds no results of stateval; choose an empty or new directory for `--output`"
        )


def _journals(path: Path, record: RunRecord) -> Iterator[Path]:
    for name in record.models.values():
        yield from (file for file in (path / f"{name}.jsonl", *path.glob(f"{name}/run_*.jsonl")) if file.exists())


def _moved(path: Path, record: RunRecord) -> Found:
    with before_anything_ran(path):
        return Found(moved_to=_move_to_history(path, record))


def _move_to_history(path: Path, record: RunRecord) -> Path:
    """Moves what the run wrote, and nothing else that lies there."""
    name = record.started.strftime("%Y%m%dT%H%M%SZ")
    candidates = (path / "history" / (f"{name}-{n}" if n > 1 else name) for n in itertools.count(1))
    place = next(place for place in candidates if not (place / ".stateval").exists())
    place.mkdir(parents=True, exist_ok=True)
    models = record.models.values()
    written = ["suite.json", "summary.json", *models, *(f"{name}.jsonl" for name in models)]
    # The record goes last: whoever is interrupted here finds an ended run again and goes on with the same place.
    for entry in (*written, ".stateval"):
        if (path / entry).exists():
            (path / entry).rename(place / entry)
    logger.info("the earlier run was moved to %s", place)
    return place
