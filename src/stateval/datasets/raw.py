"""What a reader hands on: a row as it stands in the file, and the place where it stands."""

from __future__ import annotations

import io
import re
from typing import Any, BinaryIO, NamedTuple

from stateval.errors import DatasetError
from stateval.records.encoding import plain
from stateval.records.source import Problem, Source

_UNDECODED = re.compile("[\udc80-\udcff]")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Place(NamedTuple):
    """Where a row stands. `row` counts the rows of its file (or list) from 1, `line` the lines of its file."""

    path: str | None
    row: int
    line: int | None = None

    def source(self, field: str | None = None) -> Source:
        """The place as people read it: `data.csv:3: tags`, or `data.parquet: row 3: tags` where there are no lines."""
        if self.line is not None:
            return Source(path=self.path, line=self.line, field=field)
        return Source(path=self.path, field=": ".join(part for part in (f"row {self.row}", field) if part))


class RawRow(NamedTuple):
    """One row before it is understood. With a `problem` there are no `values`; `cells` says that they are CSV text."""

    place: Place
    values: Any
    cells: bool = False
    problem: Problem | None = None


def bad_row(place: Place, message: str, advice: str | None = None) -> RawRow:
    """A row that cannot be read, while the rows after it can."""
    return RawRow(place, None, problem=Problem(message, place.source(), advice))


def bad_file(path: str | None, message: str, *, line: int | None = None, advice: str | None = None) -> DatasetError:
    """The error for a file whose further rows cannot be read."""
    return DatasetError([Problem(message, Source(path=path, line=line), advice)])


def text_of(stream: BinaryIO) -> io.TextIOWrapper:
    """The stream as text with its line ends kept, without a byte-order mark.

    Bytes that are not UTF-8 become lone surrogates, for `refuse_undecoded` to find with their line.
    """
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")


def refuse_undecoded(text: str, path: str | None, line: int) -> None:
    """Raises DatasetError where `text`, which starts at `line`, has bytes in it that are not UTF-8."""
    if text.isascii():
        return
    found = _UNDECODED.search(text)
    if found is None:
        return
    byte = ord(found.group()) - 0xDC00
    raise bad_file(
        path, f"is not UTF-8 (byte 0x{byte:02x})", line=line + text.count("\n", 0, found.start()), advice=SAVE_AS_UTF8
    )


SAVE_AS_UTF8 = "save the file as UTF-8"


def refuse_utf16(start: bytes, path: str | None) -> None:
    """Raises DatasetError for a file that starts with the byte-order mark of UTF-16."""
    if start.startswith(_UTF16_MARKS):
        raise bad_file(path, "is UTF-16", advice=SAVE_AS_UTF8)


def kind_of(value: Any) -> str:
    """What a value is, in the words of JSON: "a list", "an object", "text", "the number 4", ..."""
    match value:
        case None:
            return "null"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number {plain(value)}"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"
