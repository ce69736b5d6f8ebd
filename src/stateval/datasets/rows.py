"""A row becomes a sample: names are mapped, old places of fields are looked up, every value is checked."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from stateval.datasets.fields import ALIASES, CHECKS, FIELDS, CellList, value_of_cell
from stateval.datasets.raw import Place, RawRow, bad_file, kind_of
from stateval.datasets.turns import FieldFault
from stateval.errors import UsageError
from stateval.records.encoding import TOO_DEEP, dump_json, is_too_deep
from stateval.records.sample import Sample
from stateval.records.source import Problem, Source

_ONCE_IN_METADATA = ("agent_args", "rubric_vars", "extra_vars", "tags")
_MOST_RUBRICS_KEPT = 64
_MOST_NAMES_KEPT = 1000
_LARGEST_RUBRIC = 4_000_000


class Entry(NamedTuple):
    """What became of one row: a sample, or the problems with it.

    `own_id`: the row names its id itself. `selected`: no filter has left it out.
    """

    place: Place
    sample: Sample | None
    problems: tuple[Problem, ...] = ()
    own_id: bool = False
    selected: bool = True


class RowParser:
    """Makes samples of rows.

    Args:
        base_directory: what `rubric_path` is relative to.
        columns: the column that a field is read from, by field; other fields are read from the column of their name.

    Raises UsageError where `columns` names something that is no field, or one column for two fields.
    """

    def __init__(self, base_directory: Path, columns: Mapping[str, str] | None = None) -> None:
        self.columns = _checked_columns(columns or {})
        self._field_of = _fields_by_column(self.columns)
        self._id_names = [name for name, field in self._field_of.items() if field == "id"]
        self._unseen = set(self.columns.values())
        self._rubrics = _RubricFiles(base_directory)
        self._near_names: dict[str, str | None] = {}
        self.warnings: dict[str, Problem] = {}

    def parse(self, raw: RawRow, index: int) -> Entry:
        """The row as a sample; without an id of its own it gets `index`, counted from 0 over the whole dataset.

        Raises DatasetError where the header of a CSV file lacks a column that every row needs.
        """
        place, row, cells, problem = raw
        if problem is not None:
            return Entry(place, None, (problem,))
        if not isinstance(row, Mapping | Sample):
            return Entry(place, None, (Problem(f"is {kind_of(row)}; a row is a dict or a Sample", place.source()),))
        complaint = _not_storable(row, in_memory=place.path is None)
        if complaint is not None:
            return Entry(place, None, (Problem(complaint, place.source()),))
        if isinstance(row, Sample):
            return Entry(place, row, own_id=True)
        if self._unseen:
            self._unseen.difference_update(row)
        if cells and place.row == 1:
            self._check_header(row, place)
        problems: list[Problem] = []
        fields, extra = self._sort(row, cells, place, problems)
        values = self._convert(fields, cells, row, place, problems)
        sample = None if problems else self._build(values, extra, index, place, problems)
        return Entry(place, sample, tuple(problems), "id" in values)

    def key_of(self, raw: RawRow, index: int) -> str | None:
        """The id that `parse` would give this row, where it is plain to see; None where only `parse` can tell."""
        row = raw.values
        if not isinstance(row, dict):
            return None
        given = [row[name] for name in self._id_names if row.get(name) not in (None, "")]
        if not given:
            return str(index)
        return str(given[0]) if len(given) == 1 and type(given[0]) in (str, int) else None

    @property
    def names_files(self) -> bool:
        """Whether a row named a rubric's file."""
        return self._rubrics.were_read

    def never_seen(self, path: str | None) -> Problem | None:
        """What is wrong with the column mapping when all rows have been read and one of its columns was in none."""
        if not self._unseen:
            return None
        column = min(self._unseen)
        field = next(field for field, mapped in self.columns.items() if mapped == column)
        message = f"no row has the column `{column}`, which `{field}` is to be read from"
        return Problem(message, Source(path=path))

    def _check_header(self, row: Mapping[str, Any], place: Place) -> None:
        has = f"the columns are {_listed(row)}"
        for field, column in self.columns.items():
            if column not in row:
                raise bad_file(place.path, f"there is no column `{column}` to read `{field}` from", advice=has)
        if "input" not in (self._field_of.get(name) for name in row):
            raise bad_file(place.path, "there is no column `input` (or `prompt`)", advice=f"{has}; {_MAPPING}")

    def _sort(
        self, row: Mapping[Any, Any], cells: bool, place: Place, problems: list[Problem]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        fields: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for name, value in row.items():
            if value is None or (cells and value == ""):
                continue
            field = self._field_of.get(name)
            if field is None:
                extra[str(name)] = value
            elif field in fields and fields[field] != value:
                both = [str(other) for other in row if self._field_of.get(other) == field]
                problems.append(Problem(f"has both `{both[0]}` and `{both[1]}`", place.source(), "keep one of them"))
            else:
                fields[field] = value
        if extra:
            self._warn_of_near_names(extra, row, place)
        return fields, extra

    def _warn_of_near_names(self, extra: dict[str, Any], row: Mapping[Any, Any], place: Place) -> None:
        for name in extra:
            if name not in self._near_names:
                if len(self._near_names) >= _MOST_NAMES_KEPT:
                    return
                self._near_names[name] = next(iter(get_close_matches(name, FIELDS, n=1, cutoff=0.8)), None)
            near = self._near_names[name]
            if near and near not in row and near not in self.columns:
                message = f"`{name}` is no field of a row and is kept in `metadata`"
                self._warn(name, Problem(message, place.source(), f"did you mean `{near}`?"))

    def _warn(self, key: str, problem: Problem) -> None:
        if len(self.warnings) < _MOST_NAMES_KEPT:
            self.warnings.setdefault(key, problem)

    def _convert(
        self, fields: dict[str, Any], cells: bool, row: Mapping[Any, Any], place: Place, problems: list[Problem]
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field, given in fields.items():
            try:
                value = value_of_cell(field, given) if cells else given
                check = CHECKS.get(field)
                values[field] = check(value) if check else value
            except FieldFault as fault:
                column = next(str(name) for name in row if self._field_of.get(name) == field)
                problems.append(Problem(fault.message, place.source(column + fault.path), fault.advice))
        if "input" not in fields:
            problems.append(self._no_input(row, cells, place))
        return values

    def _no_input(self, row: Mapping[Any, Any], cells: bool, place: Place) -> Problem:
        column = next((name for name in row if self._field_of.get(name) == "input"), None)
        if column is not None:
            return Problem(
                "the cell is empty" if cells else "is null", place.source(column), "every row needs an input"
            )
        if "input" in self.columns:
            return Problem(f"has no `{self.columns['input']}`, which `input` is to be read from", place.source())
        return Problem("has no `input` (or `prompt`)", place.source(), f"it has {_listed(row)}; {_MAPPING}")

    def _build(
        self, values: dict[str, Any], extra: dict[str, Any], index: int, place: Place, problems: list[Problem]
    ) -> Sample | None:
        try:
            self._read_rubric(values)
            _settle_list_truth(values)
            metadata = values.get("metadata")
            if metadata:
                _take_old_fields(values, metadata)
            if extra:
                values["metadata"] = self._with_extra(metadata, extra, place)
            return Sample(**{"id": index, **values})
        except FieldFault as fault:
            problems.append(Problem(fault.message, place.source(fault.path or None), fault.advice))
        except ValidationError as error:
            problems.extend(Problem(text, place.source()) for text in _sentences(error))
        return None

    def _read_rubric(self, values: dict[str, Any]) -> None:
        if "rubric_path" not in values:
            return
        path = values.pop("rubric_path")
        if "rubric" in values:
            raise FieldFault("has both `rubric` and `rubric_path`", advice="keep one of them")
        values["rubric"] = self._rubrics.read(path)

    def _with_extra(self, metadata: dict[str, Any] | None, extra: dict[str, Any], place: Place) -> dict[str, Any]:
        kept = metadata or {}
        for name in extra.keys() & kept.keys():
            if kept[name] != extra[name]:
                message = f"`{name}` is a column and a key of `metadata`; the one in `metadata` is kept"
                self._warn(f"{name} twice", Problem(message, place.source(), "rename one of them"))
        return {**extra, **kept}


class _RubricFiles:
    """The texts of rubric files; the few that most rows share are kept."""

    def __init__(self, base_directory: Path) -> None:
        self._base_directory = base_directory
        self._texts: dict[str, str] = {}
        self.were_read = False

    def read(self, path: str) -> str:
        self.were_read = True
        text = self._texts.get(path)
        if text is None:
            text = self._texts[path] = self._read(path)
            if len(self._texts) > _MOST_RUBRICS_KEPT:
                del self._texts[next(iter(self._texts))]
        return text

    def _read(self, path: str) -> str:
        file = self._base_directory / path
        try:
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("it is not a regular file")
            if status.st_size > _LARGEST_RUBRIC:
                raise ValueError(f"it has {status.st_size:,} bytes; a rubric has {_LARGEST_RUBRIC:,} at most")
            return file.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise FieldFault(
                f"cannot read the rubric {file} ({reason})",
                "rubric_path",
                "the path is relative to the directory of the suite file",
            ) from error


_MAPPING = "name the right one with `dataset: {path: ..., input: COLUMN}`"


def _not_storable(row: Mapping[Any, Any] | Sample, *, in_memory: bool) -> str | None:
    """Why a row cannot be kept as JSON. What stands in a file is JSON already, though it may be nested too deeply."""
    if not in_memory:
        return TOO_DEEP if isinstance(row, dict) and is_too_deep(row) else None
    try:
        if isinstance(row, Sample):
            str(row.id)
        dump_json(row.to_dict() if isinstance(row, Sample) else row)
    except Exception as error:  # noqa: BLE001 - a row in memory may hold any object
        return TOO_DEEP if str(error) == TOO_DEEP else f"cannot be kept as JSON ({type(error).__name__}: {error})"
    return None


def _listed(row: Mapping[Any, Any]) -> str:
    names = [f"`{name}`" for name in row]
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "") if names else "no fields at all"


def _checked_columns(columns: Mapping[str, str]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, column in columns.items():
        field = ALIASES.get(name, name)
        if field not in FIELDS:
            near = get_close_matches(str(name), FIELDS, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"fields are {', '.join(FIELDS)}"
            raise UsageError(f"the column mapping names `{name}`, which is no field of a row; {hint}")
        if not isinstance(column, str):
            raise UsageError(f"the column mapping of `{name}` must be the name of a column, not {kind_of(column)}")
        if field in checked or column in checked.values():
            raise UsageError(f"the column mapping reads `{field}` from `{column}` and something else, too; keep one")
        checked[field] = column
    return checked


def _fields_by_column(columns: Mapping[str, str]) -> dict[str, str]:
    unmapped = {name: ALIASES.get(name, name) for name in FIELDS if ALIASES.get(name, name) not in columns}
    return {**unmapped, **{column: field for field, column in columns.items()}}


def _settle_list_truth(values: dict[str, Any]) -> None:
    truth, turns = values.get("ground_truth"), values["input"]
    if isinstance(truth, CellList) and not isinstance(turns, list):
        values["ground_truth"] = truth.cell
    elif not isinstance(truth, list | tuple) or not isinstance(turns, list):
        return
    elif any(getattr(turn, "ground_truth", None) is not None for turn in turns):
        raise FieldFault("has a list `ground_truth` and turns with a `ground_truth` of their own; keep one")


def _take_old_fields(values: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Fields that old files keep in `metadata`; they stay in it, too."""
    for field in _ONCE_IN_METADATA:
        if field not in values and metadata.get(field) is not None:
            try:
                values[field] = CHECKS[field](metadata[field])
            except FieldFault as fault:
                raise FieldFault(fault.message, f"metadata.{field}{fault.path}", fault.advice) from None


def _sentences(error: ValidationError) -> list[str]:
    sentences = []
    for fault in error.errors(include_url=False):
        cause = fault.get("ctx", {}).get("error")
        name = str(fault["loc"][0]) if fault["loc"] else ""
        sentences.append(str(cause) if cause else f"`{name}` is {kind_of(fault['input'])}: {fault['msg']}")
    return sentences
