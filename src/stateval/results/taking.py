"""Taking a directory for a run: the lock, and what becomes of what lies in it. Nothing is ever overwritten."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import filelock

from stateval.errors import ResultsLocked, UsageError
from stateval.records.encoding import load_json
from stateval.results.run_record import RunInputs, RunRecord, read_run_record
from stateval.results.storage import before_anything_ran

logger = logging.getLogger(__name__)

_KEEP = {".lock", "history"}
_TIME = "%Y%m%dT%H%M%SZ"
_MOST_IN_ONE_SECOND = 10_000
_MOST_LOOKED_AT = 10


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


def make_room(path: Path, today: RunRecord, *, fresh: bool, reopen: bool) -> Found:
    """Looks at what lies in a locked directory, and moves a run that is over to `history`.

    An unfinished run of the same identity as today's is to go on, with `reopen` a finished one too; with `fresh` it is
    moved away. Raises UsageError for other things and for an unfinished run of another suite.
    """
    with before_anything_ran(path):
        record = read_run_record(path) or _adopted(path, today)
        if record is not None:
            _undo_interrupted_move(path, record)
    if record is None:
        _refuse_other_things(path)
        return Found()
    if not has_results(path, record):
        return Found()
    if fresh:
        return _moved(path, record)
    is_same = record.identity == today.identity
    if is_same and (reopen or record.finished is None):
        return Found(unfinished=record)
    if record.finished is None or reopen:
        kind = "a finished" if record.finished else "an unfinished"
        raise UsageError(
            f"{path} holds {kind} run of another suite or target ({_difference(record, today)}); choose another "
            f"directory, or move that run to {path / 'history'} and begin anew with `--fresh`"
        )
    return _moved(path, record)


def _difference(record: RunRecord, today: RunRecord) -> str:
    """What makes it another one, in a few words."""
    if record.suite != today.suite:
        return f"its suite is {record.suite!r}"
    if (record.cached is None) != (today.cached is None):
        cached = f"it grades conversations anew, with `--cached {record.cached}`"
        return cached if record.cached is not None else "it runs its agents, without `--cached`"
    if set(record.models) != set(today.models):
        return f"its models are {', '.join(f'`{model}`' for model in record.models)}"
    return "its target is of another kind"


def _adopted(path: Path, today: RunRecord) -> RunRecord | None:
    """The record of a run that has lost its own, as far as its results tell; None where they are not today's suite's.

    Each of its lines is looked at before it counts.
    """
    known = {f"{name}.jsonl" for name in today.models.values()}
    top = {file.name for file in path.glob("*.jsonl")}
    if not top <= known or _suite_in(path) != today.suite:
        return None
    runs = [int(file.stem[4:]) for name in today.models.values() for file in path.glob(f"{name}/run_[0-9]*.jsonl")]
    if not top and not runs:
        return None
    ended = (path / "summary.json").exists() and load_json((path / "summary.json").read_bytes()).get("finished") is True
    update = {"num_runs": 1 if top else max(runs), "inputs": RunInputs(), "mixed": True, "settings": {}}
    return today.model_copy(update=update | {"finished": today.started if ended else None})


def _suite_in(path: Path) -> str | None:
    """The name of the suite in a `suite.json`, which stands in its first lines."""
    file = path / "suite.json"
    if not file.exists():
        return None
    with file.open("rb") as lines:
        for line in islice(lines, 3):
            name = line.strip().removeprefix(b'"suite": ').removesuffix(b",")
            if name != line.strip().removesuffix(b","):
                return str(load_json(name))
    return None


def has_results(path: Path, record: RunRecord) -> bool:
    """Whether any result was written."""
    return any(journal.stat().st_size > 0 for journal in _journals(path, record))


def lay_out(path: Path, record: RunRecord, num_runs: int) -> None:
    """Moves the files of a run to where one of so many repeats has them; what has no place there goes to `history`."""
    for name in record.models.values():
        alone, first = path / f"{name}.jsonl", path / name / "run_1.jsonl"
        old, new = (first, alone) if num_runs == 1 else (alone, first)
        if _has_lines(old):
            if _has_lines(new):
                _move_aside(path, new)
            new.parent.mkdir(exist_ok=True)
            old.replace(new)
        old.unlink(missing_ok=True)
        for further in sorted((path / name).glob("run_*.jsonl")):
            number = further.stem.removeprefix("run_")
            if number.isdecimal() and int(number) > num_runs:
                _move_aside(path, further)


def _has_lines(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _move_aside(path: Path, file: Path) -> None:
    aside = place_in_history(path) / file.relative_to(path)
    aside.parent.mkdir(parents=True)
    file.rename(aside)


def place_in_history(path: Path) -> Path:
    """A new place below `history` for what a run sets aside, named after the time."""
    name = f"{datetime.now(UTC).strftime(_TIME)}-aside"
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


def _undo_interrupted_move(path: Path, record: RunRecord) -> None:
    """Brings back what a move that was interrupted has moved: its record goes last, so it is still here."""
    for place in _places_of(path, record)[:_MOST_LOOKED_AT]:
        if not place.is_dir() or (place / ".stateval").exists():
            continue
        for entry in _written_by(record):
            if (place / entry).exists() and not (path / entry).exists():
                (place / entry).rename(path / entry)
        if not any(place.iterdir()):
            place.rmdir()


def _written_by(record: RunRecord) -> list[str]:
    names = record.models.values()
    return ["suite.json", "summary.json", *names, *(f"{name}.jsonl" for name in names)]


def _move_to_history(path: Path, record: RunRecord) -> Path:
    """Moves what the run wrote, and nothing else that lies there."""
    written = _written_by(record)
    place = next(place for place in _places_of(path, record) if not place.exists())
    place.mkdir(parents=True)
    # The record goes last: whoever is interrupted here finds it, and what was moved is brought back.
    for entry in (*written, ".stateval"):
        if (path / entry).exists():
            (path / entry).rename(place / entry)
    logger.info("the earlier run was moved to %s", place)
    return place


def _places_of(path: Path, record: RunRecord) -> list[Path]:
    """Where below `history` a run that began at this time may go."""
    name = record.started.strftime(_TIME)
    return [path / "history" / (f"{name}-{n}" if n > 1 else name) for n in range(1, _MOST_IN_ONE_SECOND)]
