"""JSON in what an agent wrote."""

from __future__ import annotations

import re
from typing import Any

from stateval.records.encoding import load_json

_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n(.*?)```", re.DOTALL)


def json_in(text: str) -> Any:
    """The JSON value that a text is, or that its first fenced block holds which is JSON.

    Raises ValueError where there is none.
    """
    try:
        return _loaded(text)
    except ValueError as error:
        for block in _FENCE.findall(text):
            try:
                return _loaded(block)
            except ValueError:
                continue
        raise ValueError(f"it is not JSON ({error})") from None


def _loaded(text: str) -> Any:
    try:
        return load_json(text.strip())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
