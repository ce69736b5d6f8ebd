"""Lines of letta-evals' results files as SampleResults.

Two kinds of lines are known: those of the reward era (a SampleResult each), and those of the gate era
(`{"type": "result", "result": {...}}`, with the whole sample in each). Lines of stateval itself are of the first kind.

What letta-evals writes as a grade of 0 although nothing was graded (an empty submission, a judge that failed) becomes
an error here: a failure is no score. Seconds that were not taken are NaN, for they are not 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stateval.records.encoding import load_json
from stateval.records.result import ErrorCategory, SampleResult
from stateval.records.usage import Usage

DEFAULT_METRIC = "default"
"""What the one grade of a line is called that does not say whose it is."""

_BODY = ("trajectory", "agent_state", "token_data", "agent_usage", "snapshots", "context", "submissions")
_NOTHING_TO_GRADE = ("Empty trajectory", "Empty submission")
_CATEGORIES = {str(category) for category in ErrorCategory}
_UNKNOWN_SECONDS = {"total": math.nan, "target": math.nan}
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")


def line_of(text: bytes) -> dict[str, Any] | None:
    """One line as a dict; None for the header and the summary that may stand between the results.

    Raises ValueError for what is no JSON object.
    """
    line = load_json(text)
    if not isinstance(line, dict):
        raise ValueError("the line is no JSON object")
    return None if line.get("type") in ("header", "summary") else line


def is_of_gate_era(line: Mapping[str, Any]) -> bool:
    """Whether the line has the sample in it, as letta-evals wrote them up to 0.16."""
    return line.get("type") == "result"


def result_of(
    line: Mapping[str, Any], *, run: int = 1, metric: str = DEFAULT_METRIC, body: bool = True
) -> SampleResult:
    """The result in one line. Raises ValueError where the line is something else.

    Args:
        run: of which run the line is, where it does not say so itself.
        metric: what the grade is called of a line that has one grade without a name.
        body: whether the messages, states and submissions are wanted; without them it is quicker.
    """
    fields = _of_gate_era(line, metric) if is_of_gate_era(line) else dict(line)
    if "run" not in fields:  # stateval says it in every line, letta-evals in none
        _tell_failures_from_grades(fields)
        fields["run"] = run
    if not body:
        for name in _BODY:
            fields.pop(name, None)
    return SampleResult.model_validate({name: value for name, value in fields.items() if value is not None})


def sample_of(line: Mapping[str, Any]) -> dict[str, Any] | None:
    """The sample in a line of the gate era; None in others."""
    sample = line["result"].get("sample") if is_of_gate_era(line) else None
    return sample if isinstance(sample, dict) else None


def _of_gate_era(line: Mapping[str, Any], metric: str) -> dict[str, Any]:
    said = line.get("result")
    if not isinstance(said, dict) or not isinstance(said.get("sample"), dict):
        raise ValueError("a line of type `result` has no sample in it")
    grades, submissions, error = said.get("grades"), said.get("submissions"), said.get("error") or _unnamed_error(said)
    if grades is None:
        grades = {} if error or said.get("grade") is None else {metric: said["grade"]}
    return {
        "sample_id": said["sample"].get("id"),
        "agent_id": said.get("agent_id"),
        "model_handle": said.get("model_name"),
        "trajectory": said.get("trajectory"),
        "agent_state": said.get("agent_state"),
        "agent_usage": said.get("agent_usage"),
        "submissions": submissions if submissions is not None else dict.fromkeys(grades, said.get("submission") or ""),
        "grades": grades,
        "usage": _usage(said),
        "timing": _timing(said),
        "error": error,
    }


def _unnamed_error(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """The error that releases before 0.13 wrote as a grade of 0 of a sample without an agent and a conversation."""
    grade = said.get("grade")
    rationale = str(grade.get("rationale") or "") if isinstance(grade, dict) else ""
    if said.get("agent_id") is not None or said.get("trajectory") or not rationale.startswith("Error: "):
        return None
    return {"category": "unknown", "exception_type": "Exception", "message": rationale.removeprefix("Error: ")}


def _usage(said: Mapping[str, Any]) -> Usage | None:
    found = {name: said[name] for name in (*_TOKENS, "cost") if said.get(name) is not None}
    return Usage.model_validate(found) if found else None


def _timing(said: Mapping[str, Any]) -> dict[str, Any]:
    seconds = {
        "total": said.get("total_time"),
        "target": said.get("target_time"),
        "extraction": said.get("extraction_time"),
        "per_grader": said.get("per_grader_time"),
    }
    return _UNKNOWN_SECONDS | {name: value for name, value in seconds.items() if value is not None}


def _tell_failures_from_grades(fields: dict[str, Any]) -> None:
    error, grades = _mapping(fields.get("error")), _mapping(fields.get("grades"))
    failed = {key: reason for key, grade in grades.items() if (reason := _failure(fields, key, grade, error))}
    if failed:
        fields["grades"] = {key: grade for key, grade in grades.items() if key not in failed}
        fields["grade_errors"] = _mapping(fields.get("grade_errors")) | failed
        error = error or next(iter(failed.values()))
    if error:
        fields["error"] = _known_error(error)
        fields["timing"] = _timing_of_an_error(fields.get("timing"))


def _failure(fields: Mapping[str, Any], key: str, grade: Any, error: Mapping[str, Any]) -> dict[str, Any] | None:
    """Why this grade is none: the judge failed, or there was nothing to grade."""
    if not isinstance(grade, dict) or grade.get("score") != 0:
        return None
    reason = str(grade.get("rationale") or "")
    judge_failed = _mapping(grade.get("metadata")).get("error")
    if judge_failed:
        return {"category": "grading", "exception_type": "GradingError", "message": str(judge_failed)}
    empty = error.get("category") == "extraction" and not _mapping(fields.get("submissions")).get(key)
    if empty or (reason.startswith(_NOTHING_TO_GRADE) and not _mapping(fields.get("submissions")).get(key)):
        message = reason or str(error.get("message") or "nothing to grade")
        return {"category": "extraction", "exception_type": "ExtractionError", "message": message}
    return None


def _known_error(error: Mapping[str, Any]) -> dict[str, Any]:
    category, kind, message = error.get("category"), error.get("exception_type"), str(error.get("message") or "")
    timed_out = error.get("timed_out") or (
        category == "target" and (kind == "TimeoutError" or "timed out after" in message.lower())
    )
    return {
        "category": category if category in _CATEGORIES else "unknown",
        "exception_type": str(kind or "Exception"),
        "message": message,
        "timed_out": timed_out or None,
    }


def _timing_of_an_error(timing: Any) -> Any:
    """letta-evals writes 0 seconds of the target where an exception ended the sample, whichever stage raised it."""
    if isinstance(timing, dict) and timing.get("target") == 0:
        return timing | {"target": math.nan}
    return timing


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
