"""CSV as RFC 4180 has it: commas, a header line, quotes doubled inside quotes.

A byte-order mark, CRLF and newlines in quoted cells are fine.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from stateval.datasets.raw import Place, RawRow, bad_file, bad_row, refuse_undecoded, text_of

_LONGEST_CELL = 2**31 - 1


def csv_rows(stream: BinaryIO, path: str | None) -> Iterator[RawRow]:
    """The rows, their cells as text exactly as written; `line` is where a row starts.

    A row with too few or too many cells is a bad row. Raises DatasetError where the file is not UTF-8, its header
    names a column twice, or its quotes do not close: then the rows behind cannot be told apart.

    The csv module has one limit of cell length for the whole process; it is raised here.
    """
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    table = _lists_with_lines(stream, path)
    header = next(table, None)
    if header is None:
        return
    names = _column_names(*header, path)
    for number, (line, cells) in enumerate(table, start=1):
        place = Place(path, number, line)
        if len(cells) == len(names):
            yield RawRow(place, dict(zip(names, cells, strict=True)), cells=True)
        else:
            yield bad_row(
                place,
                f"has {len(cells)} cells where the header has {len(names)} columns",
                "a comma or a newline inside a cell needs double quotes around the cell",
            )


def _lists_with_lines(stream: BinaryIO, path: str | None) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_checked_lines(stream, path), strict=True)
    start = 1
    try:
        for cells in reader:
            if cells:
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise bad_file(
            path,
            f"the quotes of this row are wrong ({error})",
            line=start,
            advice='a quote inside a quoted cell is written twice: "He said ""hi"""',
        ) from error


def _checked_lines(stream: BinaryIO, path: str | None) -> Iterator[str]:
    with text_of(stream) as text:
        for number, line in enumerate(text, start=1):
            refuse_undecoded(line, path, number)
            yield line


def _column_names(line: int, header: list[str], path: str | None) -> list[str]:
    names = [name.strip() or f"column {number}" for number, name in enumerate(header, start=1)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise bad_file(path, f"the header names the column `{twice[0]}` twice", line=line, advice="rename one of them")
    if len(names) == 1 and (delimiter := next((mark for mark in ";\t|" if mark in names[0]), None)):
        raise bad_file(
            path,
            f"the header is one column, `{names[0]}`, with {delimiter!r} in it",
            line=line,
            advice="columns are separated by commas",
        )
    return names
