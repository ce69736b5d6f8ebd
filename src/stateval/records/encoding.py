"""JSON that keeps whatever an agent, a grader or a file can contain.

Fast libraries do the work (orjson writes, pydantic-core reads, since orjson reads integers beyond 64 bits as floats);
the standard library takes over for what they refuse: lone surrogates (models do produce half an emoji), large integers.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

import orjson
import pydantic_core

DEEPEST = 200
"""How many dicts and lists may stand in one another in whatever is kept."""

TOO_DEEP = f"is nested too deeply (more than {DEEPEST} levels)"
_TOO_LONG = 10**4000
_EXPONENTS = (re.compile(r"e\+?[0-9]{3}"), re.compile(r"E\+?[0-9]{3}"))
_EXPONENTS_IN_BYTES = tuple(re.compile(pattern.pattern.encode()) for pattern in _EXPONENTS)
_LONGEST_MANTISSA = 400


def dump_json(value: Any, *, sort_keys: bool = False, indent: bool = False) -> bytes:
    """One JSON document in UTF-8. Non-finite numbers and objects that JSON lacks go through `plain` first.

    With `sort_keys` equal values have equal bytes, which is what keys are hashed from.
    """
    options = (orjson.OPT_SORT_KEYS if sort_keys else 0) | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(value, option=options)
    except TypeError:
        text = json.dumps(plain(value), ensure_ascii=True, sort_keys=sort_keys, indent=2 if indent else None)
        return text.encode("ascii")


def load_json(text: bytes | str) -> Any:
    """The value of one JSON document; a byte-order mark is accepted.

    Raises ValueError (json.JSONDecodeError, with line and column) for anything that is not JSON. `NaN`, `Infinity` and
    numbers too large for a float are refused.
    """
    if not _might_be_infinite(text):
        # The slower reader below accepts more, and says line and column of what it does not.
        with suppress(ValueError):
            return pydantic_core.from_json(text, allow_inf_nan=False)
    decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
    return json.loads(decoded, parse_constant=refuse_constant, parse_float=finite_float)


def is_plainly_finite(text: bytes | str) -> bool:
    """Whether no number in a JSON text can be NaN or infinite; False where that needs a closer look."""
    strange = (b"NaN", b"Infinity") if isinstance(text, bytes) else ("NaN", "Infinity")
    return not any(word in text for word in strange) and not _might_be_infinite(text)  # type: ignore[operator]


def _might_be_infinite(text: bytes | str) -> bool:
    """Whether a number with an exponent of three digits may stand in it; the hashes in results are full of `e123`."""
    for pattern in _EXPONENTS_IN_BYTES if isinstance(text, bytes) else _EXPONENTS:
        for found in pattern.finditer(text):  # type: ignore[arg-type]
            before = text[max(0, found.start() - _LONGEST_MANTISSA) : found.start()]
            told = before.decode("latin-1") if isinstance(before, bytes) else before
            rest = told.rstrip("0123456789.")
            if rest != told and (not rest or rest[-1] in " \t\r\n[:,-"):
                return True
    return False


def plain(value: Any, *, unknown: Callable[[Any], Any] = str) -> Any:
    """The value as dicts, lists, strings, finite numbers, booleans and None.

    Bytes become their text (base64 where they are no UTF-8), non-finite numbers the strings "nan", "inf" and "-inf",
    dataclasses and pydantic models dicts, integers of more than 4,000 digits a text that says how many they have, and
    whatever else there is what `unknown` makes of it. Raises ValueError beyond 200 levels of nesting, as a value has
    that holds itself.
    """
    try:
        return _plain(value, unknown, DEEPEST)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def is_too_deep(value: dict[Any, Any] | list[Any] | tuple[Any, ...], levels: int = DEEPEST) -> bool:
    """Whether dicts and lists stand in one another beyond so many levels, as JSON can be read but not be kept."""
    if levels == 0:
        return True
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list | tuple) and is_too_deep(item, levels - 1):
            return True
    return False


def json_text(value: Any, *, unknown: Callable[[Any], Any] = str) -> str:
    """A value as people write it in a cell: text as it is, everything else as compact JSON, `unknown` as in `plain`.

    >>> json_text("007"), json_text(4), json_text(True), json_text({"a": [1]})
    ('007', '4', 'true', '{"a":[1]}')
    """
    simple = plain(value, unknown=unknown)
    return simple if isinstance(simple, str) else dump_json(simple).decode("utf-8")


def _plain(value: Any, unknown: Callable[[Any], Any], levels: int) -> Any:
    if levels < 0:
        raise ValueError(TOO_DEEP)
    match value:
        case None | bool():
            return value
        case int() if not isinstance(value, Enum):
            return value if abs(value) < _TOO_LONG else f"a whole number of {int(math.log10(abs(value))) + 1:,} digits"
        case Enum():
            return _plain(value.value, unknown, levels - 1)
        case str():
            return str(value)
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case Mapping():
            return {
                key if isinstance(key, str) else _text_of_key(key, unknown): _plain(item, unknown, levels - 1)
                for key, item in value.items()
            }
        case list() | tuple() | Set():
            return [_plain(item, unknown, levels - 1) for item in value]
        case bytes() | bytearray():
            return _text_of_bytes(bytes(value))
        case datetime() | date() | time():
            return value.isoformat()
        case PurePath() | Decimal() | UUID():
            return str(value)
    return _plain_object(value, unknown, levels)


def _plain_object(value: Any, unknown: Callable[[Any], Any], levels: int) -> Any:
    if not isinstance(value, type):
        if hasattr(value, "model_dump"):
            dump = value.to_dict if hasattr(value, "to_dict") else value.model_dump
            return _plain(dump(), unknown, levels - 1)
        if dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            return {field.name: _plain(getattr(value, field.name), unknown, levels - 1) for field in fields}
        if hasattr(value, "item") and callable(value.item):
            is_number = getattr(value, "shape", None) in ((), None)
            return _plain(value.item() if is_number else value.tolist(), unknown, levels - 1)
    return unknown(value)


def _text_of_key(key: Any, unknown: Callable[[Any], Any]) -> str:
    is_simple = key is None or isinstance(key, bool | int | float)
    return json_text(key) if is_simple else str(plain(key, unknown=unknown))


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def finite_float(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is too large for a number")
    return value


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
