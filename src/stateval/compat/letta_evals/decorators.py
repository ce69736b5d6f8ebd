"""The decorators, also in the form with a `name`, which only mattered to a registry that there is none of here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stateval.compat.letta_evals.models import GradeResult
from stateval.records import marks
from stateval.records.marks import agent_factory, reward_composer, suite_setup

__all__ = ["GradeResult", "agent_factory", "extractor", "grader", "reward_composer", "suite_setup"]


def grader(func: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Marks a grader, as `@grader`, `@grader()` or `@grader(name=...)`."""
    return marks.grader if func is None else marks.grader(func)


def extractor(func: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Marks an extractor, as `@extractor`, `@extractor()` or `@extractor(name=...)`."""
    return marks.extractor if func is None else marks.extractor(func)
