"""What a built-in grader compares a submission with, and how it is shown in a rationale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stateval.errors import GradingError
from stateval.records.encoding import json_text
from stateval.records.protocols import GradeRequest

_T = TypeVar("_T")
_SHOWN = 200


def truth_of(request: GradeRequest) -> str:
    """The ground truth. Raises GradingError where there is none."""
    if request.ground_truth is None:
        raise GradingError("there is no `ground_truth` to compare with")
    return request.ground_truth


def expected_of(request: GradeRequest, configured: Any, read: Callable[[Any], _T]) -> tuple[_T, str]:
    """(what is expected, where it was said): the row's `expected`, else the grader's, else the ground truth.

    Raises GradingError where there is none, or where `read` refuses it with a ValueError.
    """
    candidates = (
        (request.expected, "`expected`"),
        (configured, "`grader_config.expected`"),
        (request.ground_truth, "`ground_truth`"),
    )
    for value, name in candidates:
        if value is not None:
            try:
                return read(value), name
            except ValueError as error:
                raise GradingError(f"{name}: {error}") from None
    raise GradingError("there is no `expected` to compare with")


def texts_in(value: Any) -> list[str]:
    """The texts that a value lists: itself, or its items; numbers and booleans as their JSON text.

    Raises ValueError for objects, lists in lists, and where there is no text or an empty one.
    """
    items = list(value) if isinstance(value, list | tuple) else [value]
    if any(not isinstance(item, str | int | float) for item in items):
        raise ValueError(f"write a text or a list of texts, not {shown(json_text(value))}")
    texts = [json_text(item) for item in items]
    if not texts or not all(text.strip() for text in texts):
        raise ValueError("an empty list or an empty text is in every answer; write what to look for")
    return texts


def shown(text: str) -> str:
    """A text in quotes, cut where it is long."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
    return f'"{cut}"'
