"""From what a suite file or a caller names as a dataset to something that can be read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from stateval.datasets.dataset import PlacedDataset, RowDataset
from stateval.datasets.raw import bad_file, kind_of
from stateval.datasets.rows import RowParser
from stateval.datasets.sources import (
    READERS,
    DataFile,
    FileRows,
    IterableRows,
    ListRows,
    RowSource,
    StreamRows,
    file_errors,
)
from stateval.errors import UsageError
from stateval.records.sample import Sample

_ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".json": "json",
    ".parquet": "parquet",
}
_STANDARD_INPUT = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HUB = re.compile(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/|^hf://", re.IGNORECASE)


def open_dataset(
    source: Any,
    *,
    base_directory: Path,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002
) -> PlacedDataset:
    """The dataset that `source` names; no row is read yet.

    Args:
        source: a path or a list of paths; a list of rows (dicts or Samples); any iterable of rows, a generator for
            instance, or an open file, which are copied to a temporary file at the first reading; or a mapping
            `{"path": ..., "format": ..., <field>: <column>, ...}`.
        base_directory: what relative paths, `rubric_path` in rows included, are relative to.
        columns: the column that a field is read from, by field.
        format: `jsonl`, `csv`, `json` or `parquet`; otherwise the file's ending says it.

    Raises:
        UsageError: the source cannot be a dataset, the format is not known, a mapped name is no field.
        DatasetError: a file does not exist or is a directory.
    """
    if isinstance(source, PlacedDataset):
        return source
    base_directory = Path(base_directory)
    if isinstance(source, Mapping):
        source, columns, format = _of_mapping(source, columns, format)  # noqa: A001
    if format is not None and (not isinstance(format, str) or format not in READERS):
        near = get_close_matches(str(format), READERS, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise UsageError(f"`{format}` is no format of datasets, which are {', '.join(READERS)}{hint}")
    return RowDataset(_row_source(source, base_directory, format), RowParser(base_directory, columns))


def _of_mapping(
    source: Mapping[str, Any],
    columns: Mapping[str, str] | None,
    format: str | None,  # noqa: A002
) -> tuple[Any, Mapping[str, str], str | None]:
    if "path" not in source:
        raise UsageError("a dataset written as a mapping needs `path`; a single row is a list of one row")
    mapped = {name: column for name, column in source.items() if name not in ("path", "format")}
    return source["path"], {**(columns or {}), **mapped}, source.get("format", format)


def _row_source(source: Any, base_directory: Path, format: str | None) -> RowSource:  # noqa: A002
    if isinstance(source, str | os.PathLike):
        return _file_source(source, base_directory, format)
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "stream"))
        return StreamRows(lambda: nullcontext(source), format or _format_of(name), name)
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        raise UsageError('a data frame is no dataset; hand over its rows: `frame.to_dict("records")`')
    if isinstance(source, Sequence) and not isinstance(source, bytes | bytearray):
        return _list_source(source, base_directory, format)
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | Sample):
        return IterableRows(source)
    raise UsageError(f"a dataset is a path, a list of paths, or rows; this is {kind_of(source)}")


def _list_source(source: Sequence[Any], base_directory: Path, format: str | None) -> RowSource:  # noqa: A002
    paths = [item for item in source if isinstance(item, str | os.PathLike)]
    if not paths:
        return ListRows(source)
    if len(paths) < len(source):
        raise UsageError("the list of a dataset mixes paths and rows; it must be all of one kind")
    return FileRows([_data_file(path, base_directory, format) for path in paths])


def _file_source(path: str | os.PathLike[str], base_directory: Path, format: str | None) -> RowSource:  # noqa: A002
    _refuse_url(str(path))
    file = base_directory / path
    with file_errors(_shown(file)):
        is_pipe = file.exists() and not file.is_file() and not file.is_dir()
        is_endless = is_pipe and _is_device(file)
    if is_endless:
        raise bad_file(_shown(file), "is a device, not a file", advice="name a file, a pipe or /dev/stdin")
    if is_pipe:
        return StreamRows(lambda: file.open("rb"), format or _format_of(str(path)), _shown(file))
    return FileRows([_data_file(path, base_directory, format)])


def _is_device(file: Path) -> bool:
    """Whether it is a device such as /dev/zero, which never ends; a terminal at /dev/stdin does."""
    mode = file.stat().st_mode
    return stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and str(file) not in _STANDARD_INPUT)


def _data_file(path: str | os.PathLike[str], base_directory: Path, format: str | None) -> DataFile:  # noqa: A002
    _refuse_url(str(path))
    file = base_directory / path
    shown = _shown(file)
    with file_errors(shown):
        is_directory, exists, is_file = file.is_dir(), file.exists(), file.is_file()
    if is_directory:
        raise bad_file(shown, "is a directory", advice="name the file, or a list of files")
    if not exists:
        raise bad_file(shown, "there is no such file", advice=_nearest_file(file, base_directory))
    if not is_file:
        raise bad_file(shown, "is not a regular file", advice="of several files each must be one")
    return DataFile(file, format or _format_of(str(path)), written=str(path), shown=shown)


def _refuse_url(path: str) -> None:
    if _HUB.search(path):
        raise UsageError(
            f"{path}: datasets of the Hugging Face hub are not in this release; download the file and give its path"
        )
    if _URL.match(path):
        raise UsageError(f"{path}: datasets are read from files; download it and give the path of the file")


def _format_of(path: str) -> str:
    name = path.lower().removesuffix(".gz")
    found = _ENDINGS.get(Path(name).suffix)
    if found is None:
        endings = ", ".join(_ENDINGS)
        raise UsageError(
            f"{path}: what format is it? Its ending is none of {endings} (also with .gz); "
            f"say `format: {' | '.join(READERS)}`"
        )
    return found


def _nearest_file(file: Path, base_directory: Path) -> str:
    try:
        names = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []
    except OSError:
        names = []
    near = get_close_matches(file.name, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"paths are relative to {_shown(base_directory)}"


def _shown(file: Path) -> str:
    """The path as a person in the current directory would type it."""
    try:
        return str(file.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(file)
