"""The fields of a row: their names, what a CSV cell of each holds, and which values each may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

from stateval.datasets.raw import kind_of
from stateval.datasets.turns import FieldFault, parse_input
from stateval.records.encoding import load_json
from stateval.records.sample import Sample

ALIASES: Mapping[str, str] = {"prompt": "input", "sample_id": "id"}
FIELDS = (*Sample.model_fields, "rubric_path", *ALIASES)
"""The names that a row may use."""

_JSON_CELLS = ("agent_args", "rubric_vars", "extra_vars", "metadata", "expected")
_TOO_GREAT = 10**100
_OBJECTS = ("agent_args", "rubric_vars", "extra_vars", "metadata")


def value_of_cell(field: str, cell: str) -> Any:
    """What a cell that is not empty says: JSON, a list or text, as its field has it. Raises FieldFault."""
    if field in _JSON_CELLS:
        try:
            return load_json(cell)
        except (ValueError, RecursionError) as error:
            advice = 'text needs its own quotes, as in "apples"' if field == "expected" else None
            raise FieldFault(f"the cell must hold JSON ({error})", advice=advice) from error
    if field in ("input", "ground_truth", "tags"):
        return _list_or_text(cell)
    return cell


def _list_or_text(cell: str) -> Any:
    if not cell.lstrip().startswith("["):
        return cell
    try:
        value = load_json(cell)
    except (ValueError, RecursionError):
        return cell
    return CellList(value, cell)


class CellList(list[Any]):
    """A cell that is a JSON array, with the text it stands for beside an input of one message."""

    def __init__(self, items: list[Any], cell: str) -> None:
        super().__init__(items)
        self.cell = cell


def _checked_id(value: Any) -> str | int:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        if abs(int(value)) < _TOO_GREAT:
            return int(value)
        raise FieldFault("must be text or a whole number of at most 100 digits")
    raise FieldFault(f"must be text or a whole number, not {kind_of(value) if value != '' else 'empty'}")


def _checked_object(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise FieldFault(f"must be an object such as {{...}}, not {kind_of(value)}")


def _checked_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise FieldFault(f"must be text, not {kind_of(value)}")


def _checked_tags(value: Any) -> tuple[str, ...]:
    """A list of names, or names with commas between them."""
    if isinstance(value, str):
        return tuple(tag for tag in (part.strip() for part in value.split(",")) if tag)
    if isinstance(value, list | tuple):
        for position, tag in enumerate(value):
            if not isinstance(tag, str | int) or isinstance(tag, bool):
                raise FieldFault(f"must be text, not {kind_of(tag)}", f"[{position}]")
        return tuple(str(tag) for tag in value)
    raise FieldFault(f"must be a list of names or names with commas between them, not {kind_of(value)}")


def _checked_number(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        raise FieldFault("is NaN", advice="leave a missing value out, or make it null (None)")
    return value


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "id": _checked_id,
    "input": parse_input,
    "ground_truth": _checked_number,
    "expected": _checked_number,
    "cluster": _checked_number,
    "rubric": _checked_text,
    "rubric_path": _checked_text,
    "tags": _checked_tags,
    **dict.fromkeys(_OBJECTS, _checked_object),
}
"""By field what makes the value that a sample takes; raises FieldFault. Other fields take any JSON value."""
