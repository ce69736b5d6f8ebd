"""Regular expressions of suites and rows, which may be wrong or may never finish."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

TIMEOUT = 5.0
"""Seconds after which a search is given up, where nothing else is said."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> regex.Pattern[str]:
    """The pattern, ready to search. Searching with `timeout=` raises TimeoutError.

    Raises ValueError that says what is wrong with the pattern, and where.
    """
    import regex

    try:
        return regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        raise ValueError(f"`{pattern}` is no regular expression: {error}") from None
