"""JSON that keeps whatever an agent, a grader or a file can contain.

orjson does the work; the standard library takes over for the three things that orjson refuses: lone surrogates
(models do produce half an emoji), integers beyond 64 bits, and reading either of them back.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Mapping, Set
from datetime import date, datetime, time
from enum import Enum
from pathlib import PurePath
from typing import Any

import orjson


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

    Raises ValueError (json.JSONDecodeError, with line and column) for anything that is not JSON. `NaN` and
    `Infinity` are not JSON.
    """
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        return json.loads(decoded, parse_constant=_refuse_constant)


def plain(value: Any) -> Any:
    """The value as dicts, lists, strings, finite numbers, booleans and None.

    Bytes become their text (base64 where they are no UTF-8), non-finite numbers the strings "nan", "inf" and "-inf",
    dataclasses and pydantic models dicts, and whatever else there is its `str`.
    """
    match value:
        case None | bool() | int() if not isinstance(value, Enum):
            return value
        case Enum():
            return plain(value.value)
        case str():
            return str(value)
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case Mapping():
            return {key if isinstance(key, str) else _text_of_key(key): plain(item) for key, item in value.items()}
        case list() | tuple() | Set():
            return [plain(item) for item in value]
        case bytes() | bytearray():
            return _text_of_bytes(bytes(value))
        case datetime() | date() | time():
            return value.isoformat()
        case PurePath():
            return str(value)
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "item") and callable(value.item):
        return plain(value.item()) if getattr(value, "shape", None) in ((), None) else plain(value.tolist())
    return str(value)


def json_text(value: Any) -> str:
    """A value as people write it in a cell: text as it is, everything else as compact JSON.

    >>> json_text("007"), json_text(4), json_text(True), json_text({"a": [1]})
    ('007', '4', 'true', '{"a":[1]}')
    """
    return value if isinstance(value, str) else dump_json(plain(value)).decode("utf-8")


def _text_of_key(key: Any) -> str:
    return json_text(key) if key is None or isinstance(key, bool | int | float) else str(plain(key))


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
