"""The grader of tool calls: which tools were called, with which arguments, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, field_validator

from stateval.errors import GradingError, UsageError
from stateval.extractors.json_answer import json_in
from stateval.extractors.patterns import TIMEOUT, compiled
from stateval.graders.inputs import expected_of, shown
from stateval.graders.json_difference import difference
from stateval.graders.matching import largest_matching
from stateval.loading.options import Options, read_options
from stateval.records.encoding import json_text
from stateval.records.grade import GradeResult
from stateval.records.protocols import GradeRequest

How = Literal["exact", "subset", "ignore"]


class ExpectedCall(Options):
    """One call that is expected. Without `arguments`, any will do."""

    name: str = Field(description="the name of the tool")
    arguments: dict[str, Any] | None = Field(default=None, description="values or matchers by argument name")
    match: How | None = Field(default=None, description="`exact`, `subset` or `ignore`, instead of the grader's")

    @field_validator("arguments")
    @classmethod
    def _known_matchers(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        for expected in (value or {}).values():
            _matcher(expected)
        return value


class SequenceOptions(Options):
    """Which calls are expected, and how the agent's calls are compared with them."""

    mode: Literal["strict", "unordered", "subset", "superset"] = Field(
        default="strict",
        description="`strict`: these calls in this order; `unordered`: these calls; "
        "`subset`: no other calls; `superset`: at least these calls",
    )
    arguments: How = Field(
        default="exact", description="`exact`: no other arguments; `subset`: at least these; `ignore`: any"
    )
    expected: Any = Field(default=None, description="the list of calls, for rows without `expected`")

    @field_validator("expected")
    @classmethod
    def _calls(cls, value: Any) -> Any:
        return None if value is None else [call.model_dump() for call in expected_calls(value)]


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: Any


def tool_sequence(request: GradeRequest, options: SequenceOptions) -> GradeResult:
    """The tool calls (from the extractor `tool_calls`) are those of `expected`.

    An expected call is a tool's name or `{"name", "arguments", "match"}`; an argument is a value, or a matcher:
    `{"$any": true}`, `{"$regex": "..."}`, `{"$contains": "..."}`. Each call is paired with at most one expected call,
    and the pairing is the largest one there is. No call at all never satisfies a list that has some.
    """
    expected, _ = expected_of(request, options.expected, expected_calls)
    actual = _actual_calls(request.submission)
    pairs = _pairs(expected, actual, options)
    missing = [call for number, call in enumerate(expected) if number not in pairs]
    paired = set(pairs.values())
    unexpected = [call for number, call in enumerate(actual) if number not in paired]
    metadata = {"mode": options.mode, "expected": len(expected), "actual": len(actual), "matched": len(pairs)}
    complaint = _complaint(expected, actual, missing, unexpected, options)
    if complaint:
        return GradeResult(score=0.0, rationale=complaint, metadata=metadata)
    rationale = f"{len(pairs)} of {len(actual)} calls match the {len(expected)} expected ones ({options.mode})"
    return GradeResult(score=1.0, rationale=rationale, metadata=metadata)


def expected_calls(value: Any) -> list[ExpectedCall]:
    """The calls that a list of names and objects describes. Raises ValueError that says which is wrong, and how."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"write a list of tool calls, not {shown(json_text(value))}")
    return [_expected_call(item, number) for number, item in enumerate(value)]


def _expected_call(item: Any, number: int) -> ExpectedCall:
    if isinstance(item, str):
        return ExpectedCall(name=item)
    if not isinstance(item, dict):
        raise ValueError(f"call {number} is {shown(json_text(item))}, neither a tool's name nor an object")
    try:
        return read_options(ExpectedCall, item, f"call {number}")
    except UsageError as error:
        raise ValueError(str(error)) from None


def _actual_calls(submission: str) -> list[_Call]:
    try:
        calls = json_in(submission)
    except ValueError:
        calls = None
    if not isinstance(calls, list) or any(not isinstance(c, dict) or "name" not in c for c in calls):
        raise GradingError(
            f"the submission {shown(submission)} is no list of tool calls: write `extractor: tool_calls` beside it"
        )
    return [_Call(str(call["name"]), call.get("arguments")) for call in calls]


def _pairs(expected: Sequence[ExpectedCall], actual: Sequence[_Call], options: SequenceOptions) -> dict[int, int]:
    """Which expected call is met by which of the agent's calls, by position."""
    if options.mode == "strict":
        both = range(min(len(expected), len(actual)))
        return {i: i for i in both if _mismatch(expected[i], actual[i], options.arguments) is None}
    fits = [
        [number for number, call in enumerate(actual) if _mismatch(wanted, call, options.arguments) is None]
        for wanted in expected
    ]
    return largest_matching(fits)


def _complaint(
    expected: Sequence[ExpectedCall],
    actual: Sequence[_Call],
    missing: Sequence[ExpectedCall],
    unexpected: Sequence[_Call],
    options: SequenceOptions,
) -> str | None:
    """Why the calls do not match, or None where they do."""
    if expected and not actual:
        return f"no tool was called; expected {_names(expected)}"
    parts = []
    if missing and options.mode != "subset":
        parts.append(f"expected but not called: {_names(missing)}")
    if unexpected and options.mode != "superset":
        parts.append(f"called but not expected: {_names(unexpected)}")
    if not parts:
        return None
    if options.mode == "strict":
        parts.append(f"expected in order {_names(expected)}, called {_names(actual)}")
    reasons = [_nearest_reason(wanted, unexpected, options.arguments) for wanted in missing]
    return "; ".join(parts + [reason for reason in reasons if reason])


def _nearest_reason(wanted: ExpectedCall, calls: Sequence[_Call], how: How) -> str | None:
    reasons = [_mismatch(wanted, call, how) for call in calls if call.name == wanted.name]
    return f"`{wanted.name}`: {reasons[0]}" if reasons and reasons[0] else None


def _names(calls: Sequence[ExpectedCall] | Sequence[_Call]) -> str:
    listed = ", ".join(f"`{call.name}`" for call in calls[:20]) or "nothing"
    return listed if len(calls) <= 20 else f"{listed} and {len(calls) - 20} more"


def _mismatch(expected: ExpectedCall, actual: _Call, default: How) -> str | None:
    """Why a call is not the expected one, or None where it is."""
    how = expected.match or default
    if expected.name != actual.name:
        return f"another tool, `{actual.name}`"
    if expected.arguments is None or how == "ignore":
        return None
    arguments = {} if actual.arguments in (None, "") else actual.arguments
    if not isinstance(arguments, dict):
        return f"its arguments are no JSON object: {shown(json_text(arguments))}"
    for name, wanted in expected.arguments.items():
        found = _argument_mismatch(name, wanted, arguments, how)
        if found:
            return found
    further = [name for name in arguments if name not in expected.arguments]
    return f"it has the unexpected argument `{further[0]}`" if further and how == "exact" else None


def _argument_mismatch(name: str, wanted: Any, arguments: dict[str, Any], how: How) -> str | None:
    if name not in arguments:
        return f"the argument `{name}` is missing"
    matcher = _matcher(wanted)
    if matcher is None:
        return difference(wanted, arguments[name], subset=how == "subset", path=name)
    if matcher(json_text(arguments[name])):
        return None
    return f"{name} is {shown(json_text(arguments[name]))}, expected {json_text(wanted)}"


def _matcher(wanted: Any) -> Callable[[str], bool] | None:
    """The test that a matcher object stands for, or None for a plain value. Raises ValueError for a wrong matcher."""
    if not isinstance(wanted, dict) or len(wanted) != 1:
        return None
    ((kind, value),) = wanted.items()
    if not kind.startswith("$"):
        return None
    match kind, value:
        case "$any", True:
            return lambda text: True
        case "$regex", str():
            expression = compiled(value)
            return lambda text: _searched(expression, text)
        case "$contains", str():
            return lambda text: value in text
    raise ValueError(
        f'{json_text(wanted)} is no matcher: write {{"$any": true}}, {{"$regex": "..."}} or {{"$contains": "..."}}'
    )


def _searched(expression: Any, text: str) -> bool:
    try:
        return expression.search(text, timeout=TIMEOUT) is not None
    except TimeoutError:
        raise GradingError(f"searching for `{expression.pattern}` took longer than {TIMEOUT:g} s") from None
