"""The built-in graders, in both forms that files use.

`contains(sample, submission)` is a grade at once; `contains()`, as the guides write, makes a grader for an `EvalSuite`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stateval import graders
from stateval.compat.letta_evals.graders import builtin

__all__ = ["ascii_printable_only", "builtin", "contains", "exact_match", "model_judge", "regex_match", "rubric"]


def _in_both_forms(name: str) -> Callable[..., Any]:
    plain, make = getattr(builtin, name), getattr(graders, name)

    @functools.wraps(plain)
    def either(*arguments: Any, **keywords: Any) -> Any:
        is_plain = len(arguments) == 2 or "submission" in keywords
        return (plain if is_plain else make)(*arguments, **keywords)

    return either


ascii_printable_only = _in_both_forms("ascii_printable_only")
contains = _in_both_forms("contains")
exact_match = _in_both_forms("exact_match")
regex_match = _in_both_forms("regex_match")
model_judge = graders.model_judge
rubric = graders.rubric
