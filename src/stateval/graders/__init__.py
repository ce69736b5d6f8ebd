"""What judges a submission.

Each function here makes one of the built-in graders: `graders.contains(whole=True)`. A function of your own
`(sample, submission)` is handed over as it is, or through `make_tool_grader`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from stateval.extractors.patterns import TIMEOUT
from stateval.graders.advice import risky_truth
from stateval.graders.bound import make_tool_grader
from stateval.graders.builtin import BUILTIN, BuiltinGrader
from stateval.records.protocols import Grader

__all__ = [
    "BUILTIN",
    "BuiltinGrader",
    "ascii_printable_only",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "json_match",
    "make_tool_grader",
    "not_contains",
    "numeric_match",
    "regex_match",
    "risky_truth",
    "similarity",
    "tool_sequence",
]

Texts = str | Sequence[str] | None


def exact_match() -> Grader:
    """The submission is the ground truth; space around either does not count."""
    return make_tool_grader("exact_match")


def contains(*, whole: bool = False) -> Grader:
    """The ground truth is in the submission; with `whole` as words of its own."""
    return make_tool_grader("contains", {"whole": whole})


def not_contains(expected: Texts = None, *, whole: bool = False) -> Grader:
    """None of the texts is in the submission: the row's `expected`, else these, else the ground truth."""
    return make_tool_grader("not_contains", {"expected": expected, "whole": whole})


def contains_any(expected: Texts = None, *, whole: bool = False) -> Grader:
    """At least one of the texts is in the submission: the row's `expected`, else these, else the ground truth."""
    return make_tool_grader("contains_any", {"expected": expected, "whole": whole})


def contains_all(expected: Texts = None, *, whole: bool = False) -> Grader:
    """All of the texts are in the submission: the row's `expected`, else these, else the ground truth."""
    return make_tool_grader("contains_all", {"expected": expected, "whole": whole})


def regex_match(*, timeout: float = TIMEOUT) -> Grader:
    """The ground truth is a regular expression that is found in the submission within `timeout` seconds."""
    return make_tool_grader("regex_match", {"timeout": timeout})


def ascii_printable_only() -> Grader:
    """Every character of the submission is printable ASCII or a line end."""
    return make_tool_grader("ascii_printable_only")


def similarity(
    *,
    threshold: float | None = None,
    method: Literal["ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"] = "ratio",
) -> Grader:
    """How alike the submission and the ground truth are, or with `threshold` whether they are alike enough."""
    return make_tool_grader("similarity", {"threshold": threshold, "method": method})


def numeric_match(
    *, tolerance: float = 0.0, relative: float = 0.0, number: Literal["last", "first", "only"] = "last"
) -> Grader:
    """A number in the submission is the ground truth within a tolerance, absolute or as a share of the truth."""
    return make_tool_grader("numeric_match", {"tolerance": tolerance, "relative": relative, "number": number})


def json_match(expected: Any = None, *, mode: Literal["equal", "subset"] = "equal") -> Grader:
    """The submission is JSON and equal to the row's `expected` (else this, else the ground truth), or has it in it."""
    return make_tool_grader("json_match", {"expected": expected, "mode": mode})


def tool_sequence(
    expected: Sequence[Any] | None = None,
    *,
    mode: Literal["strict", "unordered", "subset", "superset"] = "strict",
    arguments: Literal["exact", "subset", "ignore"] = "exact",
) -> Grader:
    """The agent's tool calls (extractor `tool_calls`) are those of the row's `expected`, else these."""
    return make_tool_grader("tool_sequence", {"expected": expected, "mode": mode, "arguments": arguments})
