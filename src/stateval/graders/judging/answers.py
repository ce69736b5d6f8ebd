"""What a judge answers: the schema it is asked to follow, and what its words for a score mean."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stateval.llm.chat import Schema
from stateval.llm.schema import InvalidAnswer
from stateval.records.encoding import json_text

Scale = tuple[float, float]
Verdict = dict[str, Any]
"""`{"rationale": text or None, "score": number on the judge's scale, or None for "cannot tell"}`."""

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_PLAIN = re.compile(_NUMBER, re.ASCII)
_PERCENT = re.compile(rf"({_NUMBER})\s*%", re.ASCII)
_FRACTION = re.compile(rf"({_NUMBER})\s*/\s*({_NUMBER})", re.ASCII)
_CANNOT_TELL = frozenset({"cannot tell", "can't tell", "can not tell", "n/a", "null"})
_ROUNDING = 1e-9


def single_schema(scale: Scale) -> Schema:
    """The schema of one verdict, its reasons first."""
    return _verdict_schema("number", f"from {scale[0]:g} to {scale[1]:g}")


def criteria_schema(keys: Sequence[str], scale: Scale) -> Schema:
    """The schema of one verdict for each criterion, in order."""
    verdict = _verdict_schema(["number", "null"], f"from {scale[0]:g} to {scale[1]:g}, or null: cannot tell")
    return _object(dict.fromkeys(keys, verdict))


def single_reader(scale: Scale) -> Callable[[Any], Verdict]:
    """Reads an answer of `single_schema`. What it returns it reads as the same again. Raises InvalidAnswer."""

    def read(answer: Any) -> Verdict:
        verdict = _read_verdict(answer, scale, "the answer")
        if verdict["score"] is None:
            raise InvalidAnswer(f"`score` is no number from {scale[0]:g} to {scale[1]:g}")
        return verdict

    return read


def criteria_reader(keys: Sequence[str], scale: Scale) -> Callable[[Any], dict[str, Verdict]]:
    """Reads an answer of `criteria_schema`. What it returns it reads as the same again. Raises InvalidAnswer."""

    def read(answer: Any) -> dict[str, Verdict]:
        if not isinstance(answer, Mapping):
            raise InvalidAnswer("the answer is no JSON object")
        missing = [key for key in keys if key not in answer]
        if missing:
            raise InvalidAnswer(f"the answer lacks {', '.join(f'`{key}`' for key in missing)}")
        return {key: _read_verdict(answer[key], scale, f"`{key}`") for key in keys}

    return read


def read_score(value: Any, scale: Scale) -> float | None:
    """The number that is meant, within the scale, or None for "cannot tell".

    Numbers may be texts: `"0.8"`, `"4/5"`, and where the scale is 0 to 1 `"80%"`. On another scale the second number of
    `"4/5"` must be the best score, and the first is the score.

    Raises InvalidAnswer that says what to write.
    """
    wanted = f"a number from {scale[0]:g} to {scale[1]:g}"
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidAnswer(f"`score` is {json_text(value)}, not {wanted}")
    if isinstance(value, str) and value.strip().casefold().rstrip(".") in _CANNOT_TELL:
        return None
    number = _number_in(value.strip(), scale) if isinstance(value, str) else _as_float(value)
    if number is None or not math.isfinite(number):
        raise InvalidAnswer(f"`score` is {json_text(value)[:80]!r}, not {wanted}")
    if not scale[0] - _ROUNDING <= number <= scale[1] + _ROUNDING:
        raise InvalidAnswer(f"`score` is {json_text(value)[:80]}, which is not within {scale[0]:g} and {scale[1]:g}")
    return min(max(number, scale[0]), scale[1])


def _number_in(text: str, scale: Scale) -> float | None:
    if _PLAIN.fullmatch(text):
        return float(text)
    is_share = scale == (0.0, 1.0)
    if found := _PERCENT.fullmatch(text):
        return float(found[1]) / 100 if is_share else None
    if found := _FRACTION.fullmatch(text):
        number, most = float(found[1]), float(found[2])
        if is_share:
            return number / most if most > 0 and math.isfinite(most) else None
        return number if most == scale[1] else None
    return None


def _as_float(number: float) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def _read_verdict(answer: Any, scale: Scale, place: str) -> Verdict:
    if not isinstance(answer, Mapping):
        raise InvalidAnswer(f"{place} is no JSON object with `rationale` and `score`")
    if "score" not in answer:
        raise InvalidAnswer(f"{place} has no `score`")
    try:
        score = read_score(answer["score"], scale)
    except InvalidAnswer as error:
        raise InvalidAnswer(f"in {place} {error}") from None
    rationale = answer.get("rationale")
    return {"rationale": None if rationale is None else json_text(rationale), "score": score}


def _verdict_schema(kind: Any, range_of_score: str) -> Schema:
    return _object(
        {
            "rationale": {"type": "string", "description": "The reasons, in a few sentences, before the score."},
            "score": {"type": kind, "description": f"The score, {range_of_score}."},
        }
    )


def _object(properties: Mapping[str, Any]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
