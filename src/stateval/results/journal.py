"""A results file: one SampleResult a line, appended as each sample ends, with an index beside it.

A line is written by one call, so that a killed process leaves at most one torn line at the end; whoever appends cuts
it off first. The index holds what statistics need of each line, and where the line is; it is derived, and made again
where it does not fit its journal.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter

from stateval.errors import ResultsError
from stateval.records.encoding import dump_json, load_json
from stateval.records.result import ErrorCategory, Observation, SampleResult, StageKeys
from stateval.redaction import Redaction
from stateval.results.storage import before_change, storage_error

_PIECE = 65_536
_LINE_BEGIN = b'{"sample_id":'
_LINE_END = ord("\n")
_ROWS_AT_ONCE = 32_768
"""Bytes of the index that are written at once; a killed process loses at most so many, and no line of the journal."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal, without its body: where it is (bytes), what it came to, and its stage keys."""

    offset: int
    length: int
    observation: Observation
    keys: StageKeys | None


@dataclass(slots=True)
class SeenLine:
    """Of an observation whose it is, and whether it errored."""

    sample_id: str
    error: ErrorCategory | None = None


@dataclass(slots=True)
class Line:
    """One line of a journal, with the least that can be known of it: five times as fast to read as an `Entry`."""

    offset: int
    length: int
    observation: SeenLine


_ENTRY = TypeAdapter(Entry)
_LINE = TypeAdapter(Line)
_Row = TypeVar("_Row", Entry, Line)


class Journal:
    """Appends results to one file and their entries to its index. A context manager.

    What a killed process left is mended first: a torn last line is cut off, the index is brought up to the journal.
    Raises StorageFull when there is no room: the line that did not fit is taken back whole.
    """

    def __init__(self, path: Path, index: Path, redaction: Redaction) -> None:
        self._path = path
        self._redaction = redaction
        _mend(path, index)
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
        try:
            for descriptor in (self._journal, self._index):
                os.fsync(descriptor)
        except OSError as error:
            raise storage_error(self._path, error) from error
        finally:
            for descriptor in (self._journal, self._index):
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
    for entry in _indexed(index, _ENTRY, path):
        end = entry.offset + entry.length
        yield entry
    for offset, line in _lines(path, start=end):
        result = _result(line, path, offset)
        yield Entry(offset, len(line), Observation.of(result), result.stage_keys)


def read_lines(path: Path, index: Path) -> Iterator[Line]:
    """The same with the least of each."""
    end = 0
    for line in _indexed(index, _LINE, path):
        end = line.offset + line.length
        yield line
    for offset, text in _lines(path, start=end):
        seen = Observation.of(_result(text, path, offset))
        yield Line(offset, len(text), SeenLine(seen.sample_id, seen.error))


def read_results(path: Path) -> Iterator[SampleResult]:
    """The results in a journal, in the order in which they ended. A torn last line is left out."""
    for offset, line in _lines(path, start=0):
        yield _result(line, path, offset)


class LineReader:
    """Reads single lines of a journal that stays open. A context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDONLY)

    def read(self, offset: int, length: int) -> SampleResult:
        """The result in the line at this place, in bytes. Raises ResultsError for a damaged one."""
        return _result(os.pread(self._file, length, offset), self._path, offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def take_out(path: Path, index: Path, dropped: Container[int], aside: Path) -> int:
    """Takes the lines that begin at these offsets out of a journal that nobody writes to; returns how many.

    They are appended to the file `aside`, so nothing is lost; whoever is killed here finds both files whole.
    """
    taken = 0
    with before_change(path, index), aside.open("ab") as other:
        partial = path.with_name(path.name + ".partial")
        with partial.open("wb") as kept:
            for offset, line in _lines(path, start=0):
                taken += offset in dropped
                (other if offset in dropped else kept).write(line)
            kept.flush()
            os.fsync(kept.fileno())
        other.flush()
        os.fsync(other.fileno())
        index.unlink(missing_ok=True)  # first, so that no index ever stands beside a journal that it does not fit
        partial.replace(path)
    return taken


def read_result(path: Path, entry: Entry) -> SampleResult:
    """The one result that an entry points to."""
    with LineReader(path) as lines:
        return lines.read(entry.offset, entry.length)


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


def _result(line: bytes, path: Path, offset: int) -> SampleResult:
    try:
        return SampleResult.from_json(line)
    except ValueError as error:
        told = " ".join(str(error).split())[:200]
        raise ResultsError(
            f"{path}:{_line_number(path, offset)}: the line is no sample result ({told}); delete it, and its sample "
            "runs again when the run is resumed"
        ) from error


def _line_number(path: Path, offset: int) -> int:
    with path.open("rb") as file:
        return 1 + sum(1 for _ in iter(lambda: file.tell() < offset and file.readline(), False))


class JournalFit:
    """Tells whether a row of an index still says what stands in the journal. A context manager.

    Journals can be edited by hand: a row counts only where a line begins and ends, and is of the row's sample.
    """

    def __init__(self, path: Path) -> None:
        self.size = path.stat().st_size
        self._file = os.open(path, os.O_RDONLY)

    def has(self, offset: int, length: int, sample_id: str) -> bool:
        """Whether a line of this sample stands at this place, in bytes."""
        if length <= 0 or offset + length > self.size:
            return False
        text = os.pread(self._file, min(length, _PIECE), offset)
        last = text if length <= _PIECE else os.pread(self._file, 1, offset + length - 1)
        if last[-1] != _LINE_END:
            return False
        if not (sample_id.isascii() and sample_id.isprintable()) or '"' in sample_id or "\\" in sample_id:
            return text.startswith(_LINE_BEGIN[:1])
        key = sample_id.encode()
        return text.startswith((b'%b"%b"' % (_LINE_BEGIN, key), _LINE_BEGIN + key))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def _indexed(index: Path, kind: TypeAdapter[_Row], path: Path) -> Iterator[_Row]:
    """The rows of an index up to the first that does not fit its journal."""
    if not index.exists():
        return
    end = 0
    with JournalFit(path) as fit:
        for _, text in _lines(index, start=0):
            row = _decode(text, kind)
            if row is None or row.offset != end or not fit.has(row.offset, row.length, row.observation.sample_id):
                return
            end = row.offset + row.length
            yield row


def _mend(path: Path, index: Path) -> None:
    if not path.exists() or path.stat().st_size == 0:
        index.unlink(missing_ok=True)
        return
    with before_change(path, index):
        _cut(path, _end_of_whole_lines(path))
        if index.exists():
            _cut(index, _end_of_whole_lines(index))
        end = _end_of_index(index, path)
        with index.open("ab" if end else "wb") as rows:
            for offset, line in _lines(path, start=end):
                result = _result(line, path, offset)
                rows.write(_encode(Entry(offset, len(line), Observation.of(result), result.stage_keys)) + b"\n")


def _end_of_index(index: Path, path: Path) -> int:
    """Up to which byte of its journal an index reaches, by its last row; 0 where that does not fit.

    Rows before the last are those of an index that only ever grew; whoever reads them looks at each.
    """
    if not index.exists() or not index.stat().st_size:
        return 0
    with index.open("rb") as rows:
        rows.seek(max(0, index.stat().st_size - _PIECE))
        last = _decode(rows.read().splitlines()[-1], _LINE)
    with JournalFit(path) as fit:
        fits = last is not None and fit.has(last.offset, last.length, last.observation.sample_id)
    return last.offset + last.length if last is not None and fits else 0


def _end_of_whole_lines(path: Path) -> int:
    """Where the last line ends that was written whole."""
    size = path.stat().st_size
    with path.open("rb") as file:
        end = size
        while end > 0:
            begin = max(0, end - _PIECE)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0


def _cut(path: Path, size: int) -> None:
    if path.stat().st_size > size:
        os.truncate(path, size)


def _encode(entry: Entry) -> bytes:
    seen = entry.observation
    observation: dict[str, Any] = {
        "sample_id": seen.sample_id,
        "run": seen.run,
        "scores": seen.scores,
        "timing": seen.timing.to_dict(),
    }
    optional: dict[str, Any] = {
        "reward": seen.reward,
        "error": seen.error,
        "exception_type": seen.exception_type,
        "timed_out": seen.timed_out or None,
        "errors": seen.errors or None,
        "usage": seen.usage.to_dict() if seen.usage else None,
        "tags": seen.tags or None,
        "cluster": seen.cluster,
    }
    observation |= {name: value for name, value in optional.items() if value is not None}
    keys = entry.keys.to_dict() if entry.keys else None
    return dump_json({"offset": entry.offset, "length": entry.length, "observation": observation, "keys": keys})


def _decode(row: bytes, kind: TypeAdapter[_Row]) -> _Row | None:
    """What one row of an index says; None where it says nothing, or is that of an earlier release."""
    try:
        return kind.validator.validate_json(row)  # type: ignore[no-any-return]
    except ValueError:
        return _decode_slowly(row, kind)


def _decode_slowly(row: bytes, kind: TypeAdapter[_Row]) -> _Row | None:
    """The same of what the fast reader refuses: half an emoji, a number beyond 64 bits."""
    try:
        return kind.validate_python(load_json(row))
    except ValueError:
        return None


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
