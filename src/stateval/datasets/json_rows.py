"""JSON Lines and JSON arrays, both read as streams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, TextIO

from stateval.datasets.raw import (
    SAVE_AS_UTF8,
    Place,
    RawRow,
    bad_file,
    bad_row,
    kind_of,
    refuse_undecoded,
    text_of,
)
from stateval.records.encoding import load_json

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\n\r]*")
_CHUNK = 1 << 18
_LONGEST_TOKEN = 16


def jsonl_rows(stream: BinaryIO, path: str | None) -> Iterator[RawRow]:
    """One object a line; blank lines are passed over. A line that is no JSON or not UTF-8 is a bad row."""
    number = 0
    for line_number, line in enumerate(stream, start=1):
        text = line.removeprefix(_BOM).strip() if line_number == 1 else line.strip()
        if not text:
            continue
        number += 1
        yield _row_of_line(text, Place(path, number, line_number))


def _row_of_line(line: bytes, place: Place) -> RawRow:
    try:
        values = load_json(line)
    except UnicodeDecodeError as error:
        return bad_row(place, f"is not UTF-8 (byte 0x{error.object[error.start]:02x})", SAVE_AS_UTF8)
    except (ValueError, RecursionError) as error:
        return bad_row(place, f"is not JSON ({error})", "a .jsonl file has one whole JSON object on each line")
    return _object_row(values, place)


def _object_row(values: Any, place: Place) -> RawRow:
    if isinstance(values, dict):
        return RawRow(place, values)
    advice = "a JSON array of rows belongs into a .json file" if isinstance(values, list) else None
    return bad_row(place, f'is {kind_of(values)}; a row must be a JSON object such as {{"input": "..."}}', advice)


def json_rows(stream: BinaryIO, path: str | None) -> Iterator[RawRow]:
    """The objects of one JSON array, read in pieces: only one row and its surroundings are held in memory.

    `line` is where a row starts. Raises DatasetError where the file is no JSON array, since the rows behind a fault
    in the syntax cannot be told apart.
    """
    with text_of(stream) as text:
        yield from _array_rows(_Window(text, path), path)


def _array_rows(window: _Window, path: str | None) -> Iterator[RawRow]:
    if not window.next_character():
        return
    window.take("[", "must hold a JSON array of rows", "for one object a line use the ending .jsonl")
    number = 0
    while window.next_character() != "]":
        if number:
            window.take(",", "a comma or `]` is missing between rows")
            window.next_character()
        number += 1
        place = Place(path, number, window.line)
        yield _object_row(window.value(), place)
    window.take("]", "the array does not end")
    if window.next_character():
        raise bad_file(path, "something follows the end of the array", line=window.line)


class _Window:
    """The part of a text that is being looked at; `line` is the line of its position."""

    def __init__(self, text: TextIO, path: str | None) -> None:
        self._text = text
        self._path = path
        self._decode = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
        self._buffer = ""
        self._position = 0
        self._is_read = False
        self.line = 1

    def next_character(self) -> str:
        """The next character that is no white space, not taken yet; "" at the end of the text."""
        while True:
            self._move_to(_SPACE.match(self._buffer, self._position).end())  # type: ignore[union-attr]
            if self._position < len(self._buffer):
                return self._buffer[self._position]
            if not self._read_on():
                return ""

    def take(self, wanted: str, complaint: str, advice: str | None = None) -> None:
        """Steps over the next character. Raises DatasetError with the complaint where it is another."""
        if self.next_character() != wanted:
            raise bad_file(self._path, complaint, line=self.line, advice=advice)
        self._move_to(self._position + 1)

    def value(self) -> Any:
        """The JSON value that starts here. Raises DatasetError where there is none."""
        while True:
            try:
                value, end = self._decode(self._buffer, self._position)
            except json.JSONDecodeError as error:
                line = self.line + self._buffer.count("\n", self._position, error.pos)
                if not (self._may_be_cut(error) and self._read_on()):
                    raise bad_file(self._path, f"is not JSON ({error.msg})", line=line) from error
            except (ValueError, RecursionError) as error:
                raise bad_file(self._path, f"is not JSON ({error})", line=self.line) from error
            else:
                if end < len(self._buffer) or isinstance(value, dict) or self._is_read:
                    self._move_to(end)
                    return value
                self._read_on()

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        near_the_end = error.pos >= len(self._buffer) - _LONGEST_TOKEN
        return near_the_end or error.msg.startswith("Unterminated string")

    def _move_to(self, position: int) -> None:
        self.line += self._buffer.count("\n", self._position, position)
        self._position = position

    def _read_on(self) -> bool:
        """Twice as much each time that one value needs more, so that a huge row is not decoded over and over."""
        rest = self._buffer[self._position :]
        piece = self._text.read(max(_CHUNK, len(rest)))
        refuse_undecoded(piece, self._path, self.line + rest.count("\n"))
        self._buffer, self._position, self._is_read = rest + piece, 0, not piece
        return bool(piece)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
