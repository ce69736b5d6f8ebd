"""Graders that compare JSON values and numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field

from stateval.errors import GradingError
from stateval.extractors.json_answer import json_in
from stateval.graders.inputs import expected_of, shown, truth_of
from stateval.graders.json_difference import difference
from stateval.loading.options import Options
from stateval.records.grade import GradeResult
from stateval.records.protocols import GradeRequest

_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<!\d)[-+])?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?|(?<![\w.])[-+]?\.\d+(?:e[-+]?\d+)?",
    re.IGNORECASE,
)
_LONGEST = 400
_LARGEST_EXPONENT = 400


class JsonMatchOptions(Options):
    """What is compared, and how strictly."""

    mode: Literal["equal", "subset"] = Field(
        default="equal", description="`equal`, or `subset`: the answer may have further keys"
    )
    expected: Any = Field(default=None, description="the JSON value, for rows without `expected`")


class NumericOptions(Options):
    """Which number of the submission counts, and how near it must be."""

    tolerance: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="the largest difference")
    relative: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="the largest difference as a share of the truth"
    )
    number: Literal["last", "first", "only"] = Field(
        default="last", description="which number counts: the `last`, the `first`, or `only`: there is nothing else"
    )


def json_match(request: GradeRequest, options: JsonMatchOptions) -> GradeResult:
    """The submission is JSON and equal to `expected` (else the ground truth, read as JSON), or has it as a part.

    A fenced block is read too. `1` and `1.0` are the same; `true` and `1` are not; the order of keys does not count.
    """
    expected, source = expected_of(request, options.expected, lambda value: value)
    if source == "`ground_truth`":
        expected = _json_truth(expected)
    try:
        actual = json_in(request.submission)
    except ValueError as error:
        return GradeResult(score=0.0, rationale=f"the submission {shown(request.submission)}: {error}")
    found = difference(expected, actual, subset=options.mode == "subset")
    if found:
        return GradeResult(score=0.0, rationale=f"compared with {source}: {found}")
    return GradeResult(score=1.0, rationale=f"the submission matches {source} ({options.mode})")


def numeric_match(request: GradeRequest, options: NumericOptions) -> GradeResult:
    """A number in the submission is the ground truth, within a tolerance.

    Numbers are compared exactly, as decimals, and never evaluated; infinite ones and those beyond 400 digits are none.
    """
    truth_text = truth_of(request)
    truth = _whole_number(truth_text)
    if truth is None:
        raise GradingError(f"the ground truth {shown(truth_text)} is no number")
    found = _number_text(request.submission, options.number)
    if found is None:
        return GradeResult(score=0.0, rationale=f"no number to compare in {shown(request.submission)}")
    value = _value(found)
    if value is None:
        return GradeResult(score=0.0, rationale=f"{shown(found)} is too large or too small to be compared")
    allowed = max(_exact(options.tolerance), _exact(options.relative) * abs(truth))
    near = abs(value - truth) <= allowed
    within = f" (tolerance {float(min(allowed, Fraction(10) ** 300)):g})" if allowed else ""
    rationale = f"found {shown(found)}, expected {shown(truth_text)}{within}"
    return GradeResult(score=float(near), rationale=rationale, metadata={"found": found})


def json_problem(truth: str) -> str | None:
    """What is wrong with a truth as JSON."""
    try:
        json_in(truth)
    except ValueError as error:
        return f"the ground truth {shown(truth)}: {error}"
    return None


def number_problem(truth: str) -> str | None:
    """What is wrong with a truth as a number."""
    return f"the ground truth {shown(truth)} is no finite number" if _whole_number(truth) is None else None


def _json_truth(text: str) -> Any:
    try:
        return json_in(text)
    except ValueError as error:
        raise GradingError(f"the ground truth {shown(text)}: {error}") from None


def _number_text(submission: str, which: str) -> str | None:
    text = submission.replace("\u2212", "-")
    if which == "only":
        match = _NUMBER.fullmatch(text.strip())
        return match.group() if match else None
    numbers = _NUMBER.findall(text)
    return (numbers[-1] if which == "last" else numbers[0]) if numbers else None


def _whole_number(text: str) -> Fraction | None:
    found = _number_text(text, "only")
    return None if found is None else _value(found)


def _value(number: str) -> Fraction | None:
    if len(number) > _LONGEST:
        return None
    exponent = re.search(r"e([-+]?\d+)\Z", number, re.IGNORECASE)
    if exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT:
        return None
    return Fraction(Decimal(number.replace(",", "")))


def _exact(number: float) -> Fraction:
    return Fraction(Decimal(repr(number)))
