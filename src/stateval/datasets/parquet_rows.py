"""Parquet through pyarrow, which is imported when the first such file is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from stateval.datasets.raw import Place, RawRow, bad_file
from stateval.errors import MissingExtra

_ROWS_AT_ONCE = 1024


def parquet_rows(stream: BinaryIO, path: str | None) -> Iterator[RawRow]:
    """The rows of a seekable stream, a batch at a time. Nulls are missing fields.

    Raises MissingExtra without pyarrow, DatasetError where the file is no Parquet or names a column twice.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("Parquet datasets", "parquet") from error
    number = 0
    try:
        file = pyarrow.parquet.ParquetFile(stream, buffer_size=1 << 16, pre_buffer=False)
        _refuse_same_names(file.schema_arrow.names, path)
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
            for values in batch.to_pylist():
                number += 1
                yield RawRow(Place(path, number), values)
    except (pyarrow.ArrowException, OSError) as error:
        raise bad_file(path, f"cannot be read as Parquet ({str(error).splitlines()[0]})") from error


def _refuse_same_names(names: list[str], path: str | None) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise bad_file(path, f"has the column `{twice[0]}` twice", advice="rename one of them")
