"""Where rows come from: files, lists, and streams that can be read once and are therefore kept on disk."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from stateval.datasets.csv_rows import csv_rows
from stateval.datasets.json_rows import json_rows, jsonl_rows
from stateval.datasets.parquet_rows import parquet_rows
from stateval.datasets.raw import Place, RawRow, bad_file, refuse_utf16
from stateval.errors import DatasetError
from stateval.records.source import Problem, Source

READERS: Mapping[str, Callable[[BinaryIO, str | None], Iterator[RawRow]]] = {
    "jsonl": jsonl_rows,
    "csv": csv_rows,
    "json": json_rows,
    "parquet": parquet_rows,
}
_PIECE = 1 << 16
_GZIP_MARK = b"\x1f\x8b"


class RowSource(Protocol):
    """Rows that can be read again and again."""

    def rows(self) -> Iterator[RawRow]:
        """The rows in order. Raises DatasetError where no further row can be read."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What the rows are, without how many."""

    @property
    def path(self) -> str | None:
        """The file, where there is exactly one."""

    @property
    def warnings(self) -> Sequence[Problem]:
        """What was odd in the last reading."""

    def close(self) -> None:
        """Deletes what the source has put on disk itself."""


@dataclass(frozen=True, slots=True)
class _Content:
    size: int
    modified_ns: int
    sha256: str


class DataFile:
    """One file of rows, plain or gzipped (told by its content, not its name).

    Args:
        file: the file.
        format: a key of READERS.
        written: the path as the user wrote it, for the provenance.
        shown: the path for messages.
    """

    def __init__(self, file: Path, format: str, *, written: str, shown: str | None) -> None:  # noqa: A002
        self._file = file
        self._format = format
        self._written = written
        self.shown = shown
        self._content: _Content | None = None

    def rows(self) -> Iterator[RawRow]:
        """The rows. Raises DatasetError where the file cannot be read, or has changed since the first reading.

        Every piece that is read is compared with what the file was, so no row that was added since is ever a row.
        """
        with file_errors(self.shown):
            self._refuse_change()
            yield from self._rows()
            self._refuse_change()

    def _rows(self) -> Iterator[RawRow]:
        with (
            self._file.open("rb", buffering=0) as file,
            io.BufferedReader(_Watched(file, self._refuse_change), _PIECE) as stream,
            _unpacked(cast(BinaryIO, stream), self._format) as content,
        ):
            if self._format != "parquet":
                refuse_utf16(content.peek(2)[:2], self.shown)  # type: ignore[attr-defined]
            yield from READERS[self._format](content, self.shown)

    @property
    def provenance(self) -> dict[str, Any]:
        """Path as written, SHA-256 and size in bytes of the file as it was when it was first read."""
        with file_errors(self.shown):
            content = self._content or self._refuse_change()
        return {"path": self._written, "sha256": content.sha256, "size": content.size}

    def _refuse_change(self) -> _Content:
        status = self._file.stat()
        known = self._content
        if known and (known.size, known.modified_ns) == (status.st_size, status.st_mtime_ns):
            return known
        with self._file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if known and known.sha256 != digest:
            raise bad_file(self.shown, "has changed since it was checked", advice="start the run again")
        self._content = _Content(status.st_size, status.st_mtime_ns, digest)
        return self._content


class _Watched(io.RawIOBase):
    """A file that calls `watch` after each piece that was read of it."""

    def __init__(self, file: io.FileIO, watch: Callable[[], object]) -> None:
        self._file = file
        self._watch = watch

    def readinto(self, buffer: Any) -> int | None:
        count = self._file.readinto(buffer)
        self._watch()
        return count

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


class FileRows:
    """The rows of one or several files, in the order of the files."""

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files = tuple(files)
        self.warnings: list[Problem] = []

    @property
    def path(self) -> str | None:
        return self._files[0].shown if len(self._files) == 1 else None

    def rows(self) -> Iterator[RawRow]:
        self.warnings = []
        for file in self._files:
            empty = True
            for row in file.rows():
                empty = False
                yield row
            if empty and len(self._files) > 1:
                self.warnings.append(Problem("holds no rows", Source(path=file.shown)))

    @property
    def provenance(self) -> Mapping[str, Any]:
        return {"kind": "files", "files": [file.provenance for file in self._files]}

    def close(self) -> None:
        """Nothing to delete."""


class ListRows:
    """Rows that are in memory already: dicts or samples."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    path = None
    warnings: Sequence[Problem] = ()

    def rows(self) -> Iterator[RawRow]:
        for number, item in enumerate(self._items, start=1):
            yield RawRow(Place(None, number), item)

    @property
    def provenance(self) -> Mapping[str, Any]:
        return {"kind": "rows"}

    def close(self) -> None:
        """Nothing to delete."""


class IterableRows:
    """Rows of an iterable that can be gone through once; the first reading puts them into a temporary file."""

    path = None
    warnings: Sequence[Problem] = ()

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._count = 0
        self._spool: _TemporaryFile | None = None

    def rows(self) -> Iterator[RawRow]:
        """The rows as they were given. Raises DatasetError where the iterable raises or a row cannot be kept."""
        if self._spool is None:
            self._spool = self._spooled()
        with self._spool.path.open("rb") as stream:
            for number in range(1, self._count + 1):
                yield RawRow(Place(None, number), pickle.load(stream))

    def _spooled(self) -> _TemporaryFile:
        spool = _TemporaryFile()
        self._count = 0
        try:
            with spool.path.open("wb") as stream:
                for item in self._items:
                    pickle.dump(item, stream, protocol=pickle.HIGHEST_PROTOCOL)
                    self._count += 1
        except BaseException as error:
            spool.close()
            if isinstance(error, DatasetError) or not isinstance(error, Exception):
                raise
            reason = f"{type(error).__name__}: {error}"
            raise DatasetError(f"the rows end with an error after row {self._count} ({reason})") from error
        return spool

    @property
    def provenance(self) -> Mapping[str, Any]:
        return {"kind": "stream"}

    def close(self) -> None:
        if self._spool:
            self._spool.close()


class StreamRows:
    """A file of rows that can be read once (a pipe, an open file); the first reading copies it to a temporary file.

    Args:
        open_stream: a context that hands out the stream, of text or of bytes.
        format: a key of READERS.
        shown: its name for messages.
    """

    warnings: Sequence[Problem] = ()

    def __init__(self, open_stream: Callable[[], AbstractContextManager[Any]], format: str, shown: str) -> None:  # noqa: A002
        self._open = open_stream
        self._format = format
        self.path: str | None = shown
        self._spool: _TemporaryFile | None = None
        self._copy: DataFile | None = None

    def rows(self) -> Iterator[RawRow]:
        yield from self._copied().rows()

    @property
    def provenance(self) -> Mapping[str, Any]:
        copy = self._copied().provenance
        return {"kind": "stream", "name": self.path, "sha256": copy["sha256"], "size": copy["size"]}

    def close(self) -> None:
        if self._spool:
            self._spool.close()

    def _copied(self) -> DataFile:
        if self._copy is None:
            self._spool = _TemporaryFile()
            try:
                with file_errors(self.path), self._spool.path.open("wb") as target, self._open() as stream:
                    while piece := stream.read(1 << 20):
                        target.write(piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece)
            except BaseException:
                self._spool.close()
                raise
            self._copy = DataFile(self._spool.path, self._format, written=str(self.path), shown=self.path)
        return self._copy


class _TemporaryFile:
    """A file of this process alone; it is deleted when it is closed, forgotten, or the process ends."""

    def __init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="stateval-rows-")
        os.close(handle)
        self.path = Path(name)
        self._delete = weakref.finalize(self, self.path.unlink, missing_ok=True)

    def close(self) -> None:
        self._delete()


@contextmanager
def _unpacked(stream: BinaryIO, format: str) -> Iterator[BinaryIO]:  # noqa: A002
    if cast(Any, stream).peek(2)[:2] != _GZIP_MARK:
        yield stream
    elif format != "parquet":
        with gzip.GzipFile(fileobj=stream) as unpacked:
            yield cast(BinaryIO, unpacked)
    else:
        with gzip.GzipFile(fileobj=stream) as unpacked, tempfile.TemporaryFile() as seekable:
            shutil.copyfileobj(unpacked, seekable)
            seekable.seek(0)
            yield cast(BinaryIO, seekable)


@contextmanager
def file_errors(shown: str | None) -> Iterator[None]:
    """Makes a DatasetError that names the file of whatever can go wrong while it is read."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise bad_file(shown, f"is damaged ({error})", advice="gzip cannot unpack it; fetch it again") from error
    except OSError as error:
        raise bad_file(shown, f"cannot be read ({error.strerror or error})") from error
