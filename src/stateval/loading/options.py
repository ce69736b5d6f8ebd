"""The settings of built-in parts: what may be set, how it is read, and how it is listed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from stateval.errors import UsageError

_SURROGATE = re.compile("[\ud800-\udfff]")


class Options(BaseModel):
    """The settings of one built-in part. Unknown ones are errors; a subclass has a field for each."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_O = TypeVar("_O", bound=Options)


@dataclass(frozen=True, slots=True)
class OptionDescription:
    """One setting as a listing shows it. `default` is None for a required one, too: see `required`."""

    name: str
    required: bool
    default: Any
    description: str


def read_options(kind: type[_O], values: Mapping[str, Any] | Options | None, part: str) -> _O:
    """The settings of a part such as "extractor `pattern`".

    Raises UsageError that names every unknown key (with the nearest known one), missing key and wrong value.
    """
    if isinstance(values, kind):
        return values
    given = dict(values or {})
    odd = [key for key in given if not isinstance(key, str) or _SURROGATE.search(key)]
    if odd:
        raise UsageError(f"{part}: there is no setting `{odd[0]}`, {_known(kind, str(odd[0]))}")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        complaints = [_complaint(kind, dict(problem)) for problem in error.errors(include_url=False)]
        raise UsageError(f"{part}: {'; '.join(complaints)}") from None


def describe_options(kind: type[Options]) -> list[OptionDescription]:
    """The settings in the order in which they are declared."""
    return [
        OptionDescription(
            name=name,
            required=field.is_required(),
            default=None if field.is_required() else field.get_default(call_default_factory=True),
            description=field.description or "",
        )
        for name, field in kind.model_fields.items()
    ]


def _complaint(kind: type[Options], problem: dict[str, Any]) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    match problem["type"]:
        case "missing":
            description = kind.model_fields[key].description if key in kind.model_fields else None
            return f"`{key}` is missing" + (f" ({description})" if description else "")
        case "extra_forbidden":
            return f"there is no setting `{key}`, {_known(kind, key)}"
        case "value_error":
            return f"`{key}`: {problem['ctx']['error']}" if key else str(problem["ctx"]["error"])
    said = (
        "it has half of a character (a lone surrogate) in it"
        if "unicode" in problem["type"]
        else problem["msg"].lower()
    )
    return f"{f'`{key}`' if key else 'a text'} is {problem['input']!r}: {said}"


def _known(kind: type[Options], key: str) -> str:
    names = list(kind.model_fields)
    close = difflib.get_close_matches(key, names, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"it has {', '.join(f'`{name}`' for name in names)}" if names else "it has none"
