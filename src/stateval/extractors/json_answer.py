"""JSON in what an agent wrote, which may be anything."""

from __future__ import annotations

import re
from typing import Any

from stateval.records.encoding import load_json

_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_DEEPEST = 100


def json_in(text: str) -> Any:
    """The JSON value that a text is, or that its first fenced block holds which is JSON.

    Raises ValueError where there is none.
    """
    try:
        return json_value(text.strip())
    except ValueError as error:
        for block in _FENCE.findall(text):
            try:
                return json_value(block.strip())
            except ValueError:
                continue
        raise ValueError(f"it is not JSON ({error})") from None


def json_value(text: str) -> Any:
    """The JSON value that a text is.

    Raises ValueError where it is none, or is nested deeper than 100 levels, which could not be compared or written.
    """
    try:
        value = load_json(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > _DEEPEST and _is_deeper(value, _DEEPEST):
        raise ValueError("nested too deeply")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    here = [value]
    for _ in range(levels + 1):
        here = [item for outer in here if isinstance(outer, dict | list) for item in _items(outer)]
    return bool(here)


def _items(outer: dict[str, Any] | list[Any]) -> list[Any]:
    return list(outer.values()) if isinstance(outer, dict) else outer
