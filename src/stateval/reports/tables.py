"""Rows as CSV and as Parquet, written as streams."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from stateval.errors import MissingExtra
from stateval.records.encoding import json_text
from stateval.reports.rows import Kind, Row

_ROWS_AT_ONCE = 256
_ROWS_IN_A_GROUP = 8_192
_CHARACTERS_IN_A_GROUP = 8 * 2**20
"""A row group of Parquet ends at so many rows or characters: it is held in memory until it is written."""


def csv_text(rows: Iterable[Row], columns: Iterable[str]) -> Iterator[str]:
    """CSV as RFC 4180 has it, some rows at a time: a heading, lines that end in CR LF, every cell as it is.

    Lists are JSON; half an emoji becomes an escape, which UTF-8 cannot hold.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_cell(name) for name in columns])
    for number, row in enumerate(rows, 1):
        writer.writerow([_cell(value) for value in row.values()])
        if number % _ROWS_AT_ONCE == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def write_csv(file: BinaryIO, rows: Iterable[Row], columns: Iterable[str]) -> None:
    """The same into a file, in UTF-8."""
    for text in csv_text(rows, columns):
        file.write(text.encode("utf-8"))


def write_parquet(file: BinaryIO, rows: Iterable[Row], columns: Mapping[str, Kind]) -> None:
    """One Parquet file with typed columns, a row group at a time. Raises MissingExtra without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("Parquet files", "parquet") from error
    types = {
        Kind.NAME: pyarrow.string(),
        Kind.TEXT: pyarrow.string(),
        Kind.NUMBER: pyarrow.float64(),
        Kind.COUNT: pyarrow.int64(),
        Kind.NAMES: pyarrow.list_(pyarrow.string()),
    }
    schema = pyarrow.schema([(escaped(name), types[kind]) for name, kind in columns.items()])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for group in _groups(rows):
            cells = [[_typed(row[name], kind) for row in group] for name, kind in columns.items()]
            arrays = [pyarrow.array(column, field.type) for column, field in zip(cells, schema, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), row_group_size=_ROWS_IN_A_GROUP)


def escaped(text: str) -> str:
    """The text with escapes in the place of lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return escaped(json_text(value)) if value else None
    return escaped(value) if isinstance(value, str) else value


def _typed(value: Any, kind: Kind) -> Any:
    match kind:
        case Kind.NAME | Kind.TEXT:
            return None if value is None else escaped(str(value))
        case Kind.NAMES:
            return [escaped(item) for item in value]
    return value


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(group) == _ROWS_IN_A_GROUP or characters >= _CHARACTERS_IN_A_GROUP:
            yield group
            group, characters = [], 0
    if group:
        yield group
