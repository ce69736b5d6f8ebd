"""What `validate` says about truths that a grader can read, but that seldom measure what was meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stateval.extractors.patterns import compiled
from stateval.graders.inputs import shown
from stateval.graders.values import number_problem

_SEARCHING = ("contains", "not_contains", "contains_any", "contains_all")
_SHORT = 2
_LONG = 60


def risky_truth(function_name: str, config: Mapping[str, Any] | None, truth: str) -> str | None:
    """Why a ground truth is risky under this built-in grader, and what to use instead; None where it is not."""
    if function_name in _SEARCHING and not (config or {}).get("whole"):
        return _risky_part(truth)
    if function_name == "exact_match" and len(truth) > _LONG:
        return f"{shown(truth)} must be met character for character; `contains` or `similarity` forgive a comma"
    if function_name == "regex_match":
        return _risky_pattern(truth)
    return None


def _risky_part(truth: str) -> str | None:
    if number_problem(truth) is None:
        return f"{shown(truth)} is also in longer numbers (4 is in 14); use `whole: true` or `numeric_match`"
    if len(truth.strip()) <= _SHORT:
        return f"{shown(truth)} is so short that it is in many words; use `whole: true`"
    return None


def _risky_pattern(truth: str) -> str | None:
    try:
        matches_nothing = compiled(truth).search("", timeout=1) is not None
    except (ValueError, TimeoutError):
        return None
    return f"`{truth}` matches an empty answer, and so every answer" if matches_nothing else None
