"""A results file: one SampleResult a line, appended as each sample ends, with an index beside it.

A line is written by one call, so that a killed process leaves at most one torn line at the end. The index holds what
statistics need of each line, and where the line is; it is derived, and made again where it does not fit its journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stateval.errors import ResultsError
from stateval.records.encoding import dump_json, load_json
from stateval.records.result import ErrorCategory, Observation, SampleResult, StageKeys
from stateval.records.usage import Timing, Usage
from stateval.redaction import Redaction
from stateval.results.storage import storage_error

_ROWS_AT_ONCE = 32_768
"""Bytes of the index that are written at once; a killed process loses at most so many, and no line of the journal."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal, without its body: where it is (bytes), what it came to, and its stage keys."""

    offset: int
    length: int
    observation: Observation
    keys: StageKeys | None


class Journal:
    """Appends results to one file and their entries to its index. A context manager.

    Raises StorageFull when there is no room: the line that did not fit is taken back whole.
    """

    def __init__(self, path: Path, index: Path, redaction: Redaction) -> None:
        self._path = path
        self._redaction = redaction
        self._journal = _open_to_append(path)
        self._index = _open_to_append(index)
        self._size = os.fstat(self._journal).st_size
        self._index_size = os.fstat(self._index).st_size
        self._rows = bytearray()

    def append(self, result: SampleResult) -> Observation:
        """Writes one result, secrets taken out, and gives back its numbers."""
        line = result.to_json()
        scrubbed = self._redaction.scrub_json(line)
        if scrubbed is not line:  # the index says of a line what the line says
            line, result = scrubbed, SampleResult.from_json(scrubbed)
        line += b"\n"
        self._size, offset = _write(self._journal, line, self._size, self._path), self._size
        observation = Observation.of(result)
        self._rows += _encode(Entry(offset, len(line), observation, result.stage_keys)) + b"\n"
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._write_rows()
        return observation

    def close(self) -> None:
        """Makes sure that everything is on the disk. An index without room is short; readers do without its end."""
        with suppress(ResultsError):
            self._write_rows()
        for descriptor in (self._journal, self._index):
            os.fsync(descriptor)
            os.close(descriptor)

    def _write_rows(self) -> None:
        self._index_size = _write(self._index, bytes(self._rows), self._index_size, self._path)
        self._rows.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_entries(path: Path, index: Path) -> Iterator[Entry]:
    """The journal's lines in order, without their bodies; lines that the index lacks are read from the journal.

    A torn last line is left out.
    """
    end = 0
    size = path.stat().st_size
    for entry in _indexed(index):
        if entry.offset != end or entry.offset + entry.length > size:
            break
        end = entry.offset + entry.length
        yield entry
    for offset, line in _lines(path, start=end):
        result = _result(line, path)
        yield Entry(offset, len(line), Observation.of(result), result.stage_keys)


def read_results(path: Path) -> Iterator[SampleResult]:
    """The results in a journal, in the order in which they ended. A torn last line is left out."""
    for _, line in _lines(path, start=0):
        yield _result(line, path)


def read_result(path: Path, entry: Entry) -> SampleResult:
    """The one result that an entry points to."""
    with path.open("rb") as file:
        file.seek(entry.offset)
        return _result(file.read(entry.length), path)


def _lines(path: Path, *, start: int) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        file.seek(start)
        offset = start
        for line in file:
            if not line.endswith(b"\n"):
                return
            if line.strip():
                yield offset, line
            offset += len(line)


def _result(line: bytes, path: Path) -> SampleResult:
    try:
        return SampleResult.from_json(line)
    except ValueError as error:
        raise ResultsError(f"{path}: a line is no sample result: {error}") from error


def _indexed(index: Path) -> Iterator[Entry]:
    if not index.exists():
        return
    for _, line in _lines(index, start=0):
        try:
            yield _decode(load_json(line))
        except (ValueError, TypeError, KeyError):
            return


def _encode(entry: Entry) -> bytes:
    seen = entry.observation
    row: dict[str, Any] = {
        "at": [entry.offset, entry.length],
        "id": seen.sample_id,
        "run": seen.run,
        "scores": seen.scores,
        "timing": seen.timing.to_dict(),
    }
    optional: dict[str, Any] = {
        "reward": seen.reward,
        "error": [seen.error, seen.exception_type, seen.timed_out] if seen.error else None,
        "errors": seen.errors or None,
        "usage": seen.usage.to_dict() if seen.usage else None,
        "tags": seen.tags or None,
        "cluster": seen.cluster,
        "keys": entry.keys.to_dict() if entry.keys else None,
    }
    return dump_json(row | {name: value for name, value in optional.items() if value is not None})


def _decode(row: dict[str, Any]) -> Entry:
    error, exception_type, timed_out = row.get("error") or (None, None, False)
    observation = Observation(
        sample_id=row["id"],
        run=row["run"],
        scores=row["scores"],
        timing=Timing.model_validate(row["timing"]),
        reward=row.get("reward"),
        error=ErrorCategory(error) if error else None,
        exception_type=exception_type,
        timed_out=timed_out,
        errors={metric: ErrorCategory(category) for metric, category in row.get("errors", {}).items()},
        usage=Usage.model_validate(row["usage"]) if "usage" in row else None,
        tags=tuple(row.get("tags", ())),
        cluster=row.get("cluster"),
    )
    keys = StageKeys.model_validate(row["keys"]) if "keys" in row else None
    return Entry(row["at"][0], row["at"][1], observation, keys)


def _open_to_append(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise storage_error(path, error) from error


def _write(descriptor: int, line: bytes, size: int, path: Path) -> int:
    """Appends a line to a file of that size, whole or not at all; returns the new size."""
    written = 0
    try:
        while written < len(line):
            written += os.write(descriptor, line[written:])
    except OSError as error:
        os.ftruncate(descriptor, size)
        raise storage_error(path, error) from error
    return size + written
