"""Where two JSON values differ."""

from __future__ import annotations

from typing import Any

from stateval.graders.inputs import shown
from stateval.records.encoding import json_text


def difference(expected: Any, actual: Any, *, subset: bool = False, path: str = "$") -> str | None:
    """The first difference in words, or None where the values are equal as JSON.

    `1` and `1.0` are the same number; `true` is none. With `subset`, objects may have further keys, at any depth;
    lists must have the same length.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _of_objects(expected, actual, subset, path)
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return f"{path} has {len(actual)} items, expected {len(expected)}"
        pairs = enumerate(zip(expected, actual, strict=True))
        found = (difference(e, a, subset=subset, path=f"{path}[{i}]") for i, (e, a) in pairs)
        return next((text for text in found if text), None)
    if _kind(expected) == _kind(actual) and expected == actual:
        return None
    return f"{path} is {_written(actual)}, expected {_written(expected)}"


def _of_objects(expected: dict[str, Any], actual: dict[str, Any], subset: bool, path: str) -> str | None:
    for key, value in expected.items():
        if key not in actual:
            return f"{path}.{key} is missing"
        found = difference(value, actual[key], subset=subset, path=f"{path}.{key}")
        if found:
            return found
    further = [key for key in actual if key not in expected]
    return f"{path} has the unexpected `{further[0]}`" if further and not subset else None


def _kind(value: Any) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _written(value: Any) -> str:
    return shown(value) if isinstance(value, str) else shown(json_text(value))[1:-1]
