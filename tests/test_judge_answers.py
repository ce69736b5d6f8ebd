"""What a judge's words for a score mean, and the schema it is asked to follow."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.graders.judging.answers import (
    criteria_reader,
    criteria_schema,
    read_score,
    single_reader,
    single_schema,
)
from stateval.llm.schema import InvalidAnswer, violation

SHARE = (0.0, 1.0)
STARS = (1.0, 5.0)


@pytest.mark.parametrize(
    "scale, said, meant",
    [
        pytest.param(SHARE, 0, 0.0, id="fault-44-zero"),
        pytest.param(SHARE, "0", 0.0, id="fault-44-zero-as-text"),
        pytest.param(SHARE, 1, 1.0, id="whole"),
        pytest.param(SHARE, "0.8", 0.8, id="fault-26-text"),
        pytest.param(SHARE, " .8 ", 0.8, id="fault-26-no-zero"),
        pytest.param(SHARE, "80%", 0.8, id="fault-26-percent"),
        pytest.param(SHARE, "80 %", 0.8, id="fault-26-percent-with-space"),
        pytest.param(SHARE, "4/5", 0.8, id="fault-26-fraction"),
        pytest.param(SHARE, "9 / 10", 0.9, id="fault-26-tenths"),
        pytest.param(SHARE, "8e-1", 0.8, id="exponent"),
        pytest.param(STARS, 4, 4.0, id="scale"),
        pytest.param(STARS, "4", 4.0, id="scale-text"),
        pytest.param(STARS, "4/5", 4.0, id="fault-26-fraction-of-the-scale"),
        pytest.param((-1.0, 1.0), "-0.5", -0.5, id="negative-scale"),
        pytest.param(SHARE, None, None, id="null"),
        pytest.param(SHARE, "Cannot tell.", None, id="cannot-tell"),
        pytest.param(SHARE, "N/A", None, id="not-applicable"),
    ],
)
def test_a_score_that_is_meant(scale, said, meant) -> None:
    assert read_score(said, scale) == (None if meant is None else pytest.approx(meant))


@pytest.mark.parametrize(
    "scale, said",
    [
        pytest.param(SHARE, 9, id="fault-26-nine"),
        pytest.param(SHARE, "9", id="fault-26-nine-as-text"),
        pytest.param(SHARE, -0.1, id="fault-26-negative"),
        pytest.param(SHARE, True, id="fault-26-true"),
        pytest.param(SHARE, False, id="fault-26-false"),
        pytest.param(SHARE, "true", id="fault-26-true-as-text"),
        pytest.param(SHARE, "180%", id="fault-26-too-many-percent"),
        pytest.param(SHARE, "6/5", id="fault-26-more-than-whole"),
        pytest.param(SHARE, "4/0", id="fault-26-divided-by-zero"),
        pytest.param(STARS, "80%", id="fault-26-percent-of-a-scale"),
        pytest.param(STARS, "4/10", id="fault-26-another-scale"),
        pytest.param(STARS, 0, id="fault-26-below-the-scale"),
        pytest.param(STARS, "6/5", id="fault-26-above-the-scale"),
        pytest.param(SHARE, math.nan, id="fault-23-nan"),
        pytest.param(SHARE, "nan", id="fault-23-nan-as-text"),
        pytest.param(SHARE, math.inf, id="fault-23-infinite"),
        pytest.param(SHARE, "1e999", id="fault-41-too-large"),
        pytest.param(SHARE, 10**400, id="fault-41-far-too-large"),
        pytest.param(SHARE, "Not yes", id="fault-32-not-yes"),
        pytest.param(SHARE, "yes", id="fault-32-yes"),
        pytest.param(SHARE, "yesterday it was wrong", id="fault-32-yesterday"),
        pytest.param(SHARE, "1 of the best", id="fault-32-number-in-words"),
        pytest.param(SHARE, "0.8, or 0.9", id="fault-29-two-numbers"),
        pytest.param(SHARE, "GRADE: C", id="fault-29-not-on-the-menu"),
        pytest.param(SHARE, "", id="empty"),
        pytest.param(SHARE, "\u0661", id="other-digits"),
        pytest.param(SHARE, [1], id="fault-31-list"),
        pytest.param(SHARE, {"value": 1}, id="fault-31-object"),
    ],
)
def test_what_is_no_score_is_said_to_be_none(scale, said) -> None:
    with pytest.raises(InvalidAnswer, match="score"):
        read_score(said, scale)


@given(st.text())
def test_a_text_is_a_score_within_the_scale_or_refused(text: str) -> None:
    for scale in (SHARE, STARS):
        try:
            score = read_score(text, scale)
        except InvalidAnswer:
            continue
        assert score is None or scale[0] <= score <= scale[1]


@given(st.floats(0, 1), st.floats(-1000, 1000), st.floats(0.001, 1000))
def test_every_number_on_a_scale_is_read_as_it_is(share: float, low: float, width: float) -> None:
    scale = (low, low + width)
    number = min(max(low + share * width, scale[0]), scale[1])
    assert read_score(number, scale) == number
    assert read_score(repr(number), scale) == number


def test_fault_34_the_reasons_come_first() -> None:
    schema = single_schema(SHARE)
    assert list(schema["properties"]) == schema["required"] == ["rationale", "score"]
    for verdict in criteria_schema(["a", "b"], STARS)["properties"].values():
        assert list(verdict["properties"]) == verdict["required"] == ["rationale", "score"]


@pytest.mark.parametrize("schema", [single_schema(SHARE), criteria_schema(["b", "a"], STARS)])
def test_schemas_are_of_the_kind_that_strict_endpoints_take(schema) -> None:
    def check(part) -> None:
        assert not {"minimum", "maximum", "pattern", "oneOf"} & part.keys()
        if part["type"] == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
            for inner in part["properties"].values():
                check(inner)

    check(schema)


@given(st.text(), st.floats(0, 1))
def test_what_is_read_follows_the_schema_and_reads_the_same_again(rationale: str, score: float) -> None:
    one = single_reader(SHARE)({"score": score, "rationale": rationale, "more": 1})
    assert violation(one, single_schema(SHARE)) is None
    assert single_reader(SHARE)(json.loads(json.dumps(one))) == one == {"rationale": rationale, "score": score}
    several = criteria_reader(["a", "b"], SHARE)({"a": one, "b": {"score": "cannot tell", "rationale": "r"}})
    assert violation(several, criteria_schema(["a", "b"], SHARE)) is None
    assert criteria_reader(["a", "b"], SHARE)(several) == several


@pytest.mark.parametrize(
    "answer, complaint",
    [
        ([], "no JSON object"),
        (0.8, "no JSON object"),
        ({}, "no `score`"),
        ({"rationale": "good"}, "no `score`"),
        ({"rationale": "good", "score": None}, "`score` is no number from 0 to 1"),
        ({"rationale": "good", "score": "n/a"}, "`score` is no number from 0 to 1"),
    ],
)
def test_an_answer_without_a_score_says_what_is_missing(answer, complaint) -> None:
    with pytest.raises(InvalidAnswer, match=complaint):
        single_reader(SHARE)(answer)


@pytest.mark.parametrize(
    "answer, complaint",
    [
        ({"a": {"rationale": "r", "score": 1}}, "lacks `b`"),
        ({"a": 1, "b": 1}, "`a` is no JSON object"),
        ({"a": {"score": 1}, "b": {"score": 2}}, "in `b` `score` is 2"),
        ({"a": {"score": 1}, "b": {}}, "`b` has no `score`"),
    ],
)
def test_an_answer_that_lacks_a_criterion_says_which(answer, complaint) -> None:
    with pytest.raises(InvalidAnswer, match=complaint):
        criteria_reader(["a", "b"], SHARE)(answer)
