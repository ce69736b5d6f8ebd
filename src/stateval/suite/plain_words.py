"""Validation errors of pydantic as sentences for people who write YAML."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from stateval.datasets.split import SplitSpec
from stateval.gates.spec import Baseline, BaselineEntry, LogicalEntry, SimpleEntry, WeightedAverageEntry
from stateval.suite.later import KINDS, refusal

SAID = "said_in_plain_words"
"""The type of validation errors whose message already is a sentence for the user."""

_EXPECTED = {
    "bool": "true or false",
    "dict": "a mapping (`key: value` lines)",
    "model": "a mapping (`key: value` lines)",
    "mapping": "a mapping (`key: value` lines)",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "tuple": "a list",
    "string": "text",
}
_BOUNDS = {
    "greater_than": ("gt", "must be greater than {}"),
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than": ("lt", "must be less than {}"),
    "less_than_equal": ("le", "must be at most {}"),
}
_LONGEST_SHOWN = 60
_MOST_LISTED = 15


def sentence(error: ErrorDetails) -> str:
    """What is wrong, without the place: `expected a whole number, got 'abc'`."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    match kind:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return unknown_field(str(error["loc"][-1]), _fields_around(error["loc"]))
        case "literal_error" if error["loc"][-1:] == ("kind",):
            return _wrong_kind(str(value), str(context["expected"]))
        case "enum" | "literal_error":
            return _not_one_of(value, str(context["expected"]))
        case "union_tag_invalid":
            return _wrong_kind(str(context["tag"]), str(context["expected_tags"]))
        case "union_tag_not_found":
            is_mapping = isinstance(value, dict)
            return "`kind` is required" if is_mapping else f"expected {_EXPECTED['dict']}, got {shown(value)}"
        case "value_error":
            return str(context["error"])
        case "finite_number":
            return f"must be a finite number, got {shown(value)}"
        case "too_short":
            return "must not be empty"
        case _ if kind in _BOUNDS:
            bound, text = _BOUNDS[kind]
            return f"{text.format(f'{context[bound]:g}')}, got {shown(value)}"
        case _ if kind.partition("_")[0] in _EXPECTED:
            return _wrong_type(kind.partition("_")[0], value)
    return error["msg"]


def unknown_field(word: str, known: Iterable[str]) -> str:
    """The sentence about a field that does not exist; it names the nearest one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"there is no field `{word}`; did you mean `{close[0]}`?"
    if len(names) > _MOST_LISTED:
        return f"there is no field `{word}`; `stateval schema` shows all there are"
    return f"there is no field `{word}`; there are {', '.join(f'`{name}`' for name in names)}"


def shown(value: Any) -> str:
    """A value as the file says it, cut to one short line."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _wrong_type(wanted: str, value: Any) -> str:
    is_scalar = isinstance(value, bool | int | float)
    advice = f'; put it in quotes: "{shown(value)}"' if wanted == "string" and is_scalar else ""
    return f"expected {_EXPECTED[wanted]}, got {shown(value)}{advice}"


def _not_one_of(value: Any, expected: str) -> str:
    names = [name.strip("' ") for name in expected.replace(" or ", ",").split(",")]
    close = difflib.get_close_matches(value, names, n=1) if isinstance(value, str) else []
    guess = f"; did you mean `{close[0]}`?" if close else ""
    return f"expected {_listed(names)}, got {shown(value)}{guess}"


def _wrong_kind(kind: str, expected: str) -> str:
    if kind in KINDS:
        return refusal(f"kind: {kind}", KINDS[kind])
    return f"`kind` must be {_not_one_of(kind, expected).removeprefix('expected ')}"


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " or ".join(part for part in (", ".join(quoted[:-1]), quoted[-1]) if part)


def _fields_around(loc: tuple[int | str, ...]) -> list[str]:
    if loc[0] == "split":
        return list(SplitSpec.model_fields)
    entries: dict[str, type[BaseModel]] = {
        "simple": SimpleEntry,
        "logical": LogicalEntry,
        "weighted_average": WeightedAverageEntry,
        "baseline": BaselineEntry,
    }
    if loc[-2:-1] == ("baseline",) and loc[-3:-2] in (("simple",), ("baseline",)):
        return list(Baseline.model_fields)
    kind = next((part for part in reversed(loc[:-1]) if part in entries), None)
    entry: type[BaseModel] = entries[str(kind)] if kind else SimpleEntry
    return list(entry.model_fields)
