"""What each grader says of a submission, what it asks of a row, and what it makes of users' functions."""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from stateval import graders
from stateval.errors import GradingError, UsageError
from stateval.graders import BUILTIN, make_tool_grader, risky_truth
from stateval.graders.folding import folded
from stateval.graders.json_difference import difference
from stateval.graders.matching import largest_matching
from stateval.loading.user_code import LoadedFunction
from stateval.records.grade import GradeResult
from stateval.records.protocols import Grader, GradeRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample


def request(submission: str, truth: str | None = None, expected: Any = None) -> GradeRequest:
    sample = Sample(id=1, input="the input", ground_truth=truth, expected=expected)
    return GradeRequest(sample, submission, Rollout(), truth, expected)


def grade(grader: Grader, submission: str, truth: str | None = None, expected: Any = None) -> GradeResult:
    result = anyio.run(grader.grade, request(submission, truth, expected))
    assert result.rationale
    return result


def score(grader: Grader, submission: str, truth: str | None = None, expected: Any = None) -> float:
    return grade(grader, submission, truth, expected).score


@pytest.mark.parametrize(
    "grader, submission, truth, wanted",
    [
        (graders.exact_match(), " apples\n", "apples ", 1),
        (graders.exact_match(), "Apples", "apples", 0),
        (graders.exact_match(), "", "", 1),
        (graders.contains(), "I like APPLES.", "apples", 1),
        (graders.contains(), "", "apples", 0),
        (graders.not_contains(), "I like Apples", "apples", 0),
        (graders.not_contains(), "", "apples", 1),
        (graders.regex_match(), "order 66", r"\d+$", 1),
        (graders.regex_match(), "order", r"\d+$", 0),
        (graders.regex_match(), "ORDER", r"(?i)order", 1),
        (graders.ascii_printable_only(), "a ~\r\n", None, 1),
        (graders.ascii_printable_only(), "", None, 1),
        (graders.ascii_printable_only(), "a\tb", None, 0),
        (graders.ascii_printable_only(), "naïve", None, 0),
        (graders.similarity(), "apples", "APPLES", 1),
        (graders.similarity(), "abcd", "wxyz", 0),
        (graders.similarity(threshold=0.8), "apples!", "apples", 1),
        (graders.similarity(threshold=0.8), "pears", "apples", 0),
        (graders.similarity(method="token_sort_ratio"), "b a", "a b", 1),
    ],
)
def test_text_graders(grader: Grader, submission: str, truth: str | None, wanted: float) -> None:
    assert score(grader, submission, truth) == wanted


@pytest.mark.parametrize(
    "submission, truth, in_it, as_a_word",
    [
        pytest.param("14", "4", 1, 0, id="fault-40-4-in-14"),
        pytest.param("25", "5", 1, 0, id="fault-40-5-in-25"),
        pytest.param("it is 4.5", "4", 1, 0, id="fault-40-decimal"),
        pytest.param("it is 1,400", "400", 1, 0, id="fault-40-thousands"),
        pytest.param("it is 4.", "4", 1, 1, id="fault-40-end-of-sentence"),
        pytest.param("14 or 4", "4", 1, 1, id="fault-40-later-word"),
        pytest.param("cafe\u0301", "caf\u00e9", 1, 1, id="fault-40-NFD-in-NFC"),
        pytest.param("CAF\u00c9", "cafe\u0301", 1, 1, id="fault-40-NFC-in-NFD"),
        pytest.param("cafe\u0301", "cafe", 0, 0, id="fault-40-another-letter"),
        pytest.param("STRASSE", "straße", 1, 1, id="fault-40-sharp-s"),
        pytest.param("Straße", "STRASSE", 1, 1, id="fault-40-sharp-s-other-way"),
        pytest.param("pineapples", "apples", 1, 0, id="part-of-a-word"),
        pytest.param("is it $4?", "$4", 1, 1, id="sign"),
    ],
)
def test_contains(submission: str, truth: str, in_it: float, as_a_word: float) -> None:
    assert score(graders.contains(), submission, truth) == in_it
    assert score(graders.contains(whole=True), submission, truth) == as_a_word
    assert score(graders.not_contains(), submission, truth) == 1 - in_it


@given(st.text(), st.text(min_size=1).filter(str.strip), st.text())
def test_what_was_put_between_is_contained(before: str, truth: str, after: str) -> None:
    assert score(graders.contains(), f"{before}\n{truth}\n{after}", truth) == 1
    assert score(graders.contains(whole=True), f"{before}\n{truth}\n{after}", truth) == 1
    assert folded(folded(truth)) == folded(truth)


@pytest.mark.parametrize(
    "grader, submission, expected, wanted",
    [
        (graders.contains_any(), "I like apples", ["pears", "Apples"], 1),
        (graders.contains_any(), "I like plums", ["pears", "apples"], 0),
        (graders.contains_all(), "pears and apples", ["pears", "apples"], 1),
        (graders.contains_all(), "pears", ["pears", "apples"], 0),
        (graders.contains_all(whole=True), "14 pears", [4, "pears"], 0),
        (graders.not_contains(), "pears", ["plums", "apples"], 1),
        (graders.not_contains(), "apples", "apples", 0),
        (graders.contains_any(["apples"]), "apples", None, 1),
        (graders.contains_any(["apples"]), "apples", ["pears"], 0),
    ],
)
def test_lists_of_texts(grader: Grader, submission: str, expected: Any, wanted: float) -> None:
    assert score(grader, submission, None, expected) == wanted
    assert score(grader, submission, "the truth is not looked at", expected) == wanted


@pytest.mark.parametrize(
    "name, reads", [("contains", "the truth"), ("exact_match", "the truth"), ("contains_any", "the expected")]
)
@pytest.mark.parametrize("field", ["the input", "the truth", "the expected"], ids=lambda field: f"fault-22-{field}")
def test_each_grader_reads_its_own_field(name: str, reads: str, field: str) -> None:
    rationale = grade(make_tool_grader(name), "the output", "the truth", "the expected").rationale or ""
    assert "the output" in rationale
    assert (field in rationale) is (field == reads)


@pytest.mark.parametrize(
    "grader, submission, truth, expected, message",
    [
        (graders.contains(), "x", None, ["x"], "no `ground_truth`"),
        (graders.contains(), "x", "", None, "the ground truth is empty"),
        (graders.contains_any(), "x", None, None, "no `expected`"),
        (graders.contains_any(), "x", None, [], "empty list"),
        (graders.contains_any(), "x", None, {"a": 1}, "a text or a list of texts"),
        (graders.regex_match(), "x", "(", None, "no regular expression"),
        (graders.regex_match(timeout=0.05), "a" * 60 + "!", r"(?:(?:a|aa)+)+$(?<!x)b", None, "took longer"),
        (graders.numeric_match(), "4", "four", None, "is no number"),
        (graders.json_match(), "{}", "{", None, "not JSON"),
        (graders.tool_sequence(), "no list", None, ["f"], "write `extractor: tool_calls`"),
        (graders.tool_sequence(), "[]", "f", None, 'not "f"'),
    ],
)
def test_what_cannot_be_compared_is_an_error(
    grader: Grader, submission: str, truth: str | None, expected: Any, message: str
) -> None:
    with pytest.raises(GradingError) as caught:
        grade(grader, submission, truth, expected)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "submission, truth, wanted",
    [
        ("The answer is 42.", "42", 1),
        ("42", "42.0", 1),
        ("it costs $1,234.50 today", "1234.5", 1),
        ("-3", "3", 0),
        ("\u22123", "-3", 1),
        ("5-3", "3", 1),
        ("first 4 then 14", "14", 1),
        ("first 4 then 14", "4", 0),
        ("gpt4", "4", 0),
        ("none", "4", 0),
        ("", "4", 0),
        ("1e3", "1000", 1),
        (".5", "0.5", 1),
        ("12345678901234567891", "12345678901234567890", 0),
        pytest.param("1e999", "1", 0, id="fault-41-1e999"),
        pytest.param("1e999999999999", "1", 0, id="fault-41-huge-exponent"),
        pytest.param("9" * 100_000, "1", 0, id="fault-41-long-number"),
        pytest.param("inf", "1", 0, id="fault-41-inf"),
        pytest.param("nan", "1", 0, id="fault-41-nan"),
        pytest.param("10**10**9", "10", 0, id="fault-41-power"),
        pytest.param("__import__('os').system('false')", "0", 0, id="fault-41-code"),
    ],
)
def test_numeric_match(submission: str, truth: str, wanted: float) -> None:
    assert score(graders.numeric_match(), submission, truth) == wanted


@pytest.mark.parametrize(
    "grader, submission, truth, wanted",
    [
        (graders.numeric_match(tolerance=0.1), "0.4", "0.3", 1),
        (graders.numeric_match(tolerance=0.1), "0.41", "0.3", 0),
        (graders.numeric_match(relative=0.1), "110", "100", 1),
        (graders.numeric_match(relative=0.1), "-110", "-100", 1),
        (graders.numeric_match(relative=0.1), "111", "100", 0),
        (graders.numeric_match(number="first"), "4 of 12", "4", 1),
        (graders.numeric_match(number="only"), " 4 ", "4", 1),
        (graders.numeric_match(number="only"), "4 apples", "4", 0),
        (graders.numeric_match(tolerance=1e300), "1e400", "1e399", 0),
    ],
)
def test_tolerances(grader: Grader, submission: str, truth: str, wanted: float) -> None:
    assert score(grader, submission, truth) == wanted


@given(st.integers(-(10**30), 10**30), st.text(alphabet="ab \n"))
def test_an_integer_after_words_is_found_exactly(number: int, words: str) -> None:
    assert score(graders.numeric_match(), f"{words} {number}", str(number)) == 1
    assert score(graders.numeric_match(), f"{words} {number}", str(number + 1)) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3).map(lambda x: round(x, 1)) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "mode, expected, submission, wanted",
    [
        ("equal", {"a": 1, "b": [True]}, '{"b": [true], "a": 1.0}', 1),
        ("equal", {"a": 1}, '{"a": true}', 0),
        ("equal", {"a": True}, '{"a": 1}', 0),
        ("equal", {"a": None}, "{}", 0),
        ("equal", {"a": 1}, '{"a": 1, "b": 2}', 0),
        ("equal", [1, 2], "[2, 1]", 0),
        ("equal", {"a": 1}, '```json\n{"a": 1}\n```', 1),
        ("equal", {"a": 1}, "not JSON", 0),
        ("equal", {"a": 1}, "", 0),
        ("equal", "text", '"text"', 1),
        ("equal", 12345678901234567890123, "12345678901234567890123", 1),
        ("subset", {"a": {"b": 1}}, '{"a": {"b": 1, "c": 2}, "d": 3}', 1),
        ("subset", {"a": [{"b": 1}]}, '{"a": [{"b": 1, "c": 2}]}', 1),
        ("subset", {"a": [1]}, '{"a": [1, 2]}', 0),
        ("subset", {"a": 1, "b": 2}, '{"a": 1}', 0),
    ],
)
def test_json_match(mode: Any, expected: Any, submission: str, wanted: float) -> None:
    assert score(graders.json_match(mode=mode), submission, None, expected) == wanted
    assert score(graders.json_match(mode=mode), submission, json.dumps(expected)) == wanted


@given(JSON, JSON)
def test_json_equality_is_that_of_the_written_values(one: Any, other: Any) -> None:
    assert difference(one, one) is None
    written = [json.dumps(value, sort_keys=True).replace(".0", "").replace("-0", "0") for value in (one, other)]
    if "." not in written[0] + written[1]:
        assert (difference(one, other) is None) == (written[0] == written[1])
    assert (difference(one, other) is None) == (difference(other, one) is None)
    assert difference({"a": one}, {"a": one, "b": other}, subset=True) is None


def calls(*made: Any) -> str:
    return json.dumps([{"name": c, "arguments": {}} if isinstance(c, str) else c for c in made])


def call(name: str, arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "call_id": "c", "turn": 0}


MODES = ["strict", "unordered", "subset", "superset"]


@pytest.mark.parametrize(
    "expected, actual, wanted",
    [
        (["f", "g"], ["f", "g"], [1, 1, 1, 1]),
        (["f", "g"], ["g", "f"], [0, 1, 1, 1]),
        (["f", "g"], ["f"], [0, 0, 1, 0]),
        (["f"], ["f", "g"], [0, 0, 0, 1]),
        (["f"], ["f", "f"], [0, 0, 0, 1]),
        (["f", "f"], ["f"], [0, 0, 1, 0]),
        (["f"], ["h"], [0, 0, 0, 0]),
        pytest.param(["f"], [], [0, 0, 0, 0], id="fault-97-no-call"),
        pytest.param([], ["f"], [0, 0, 0, 1], id="fault-97-nothing-expected"),
        pytest.param([], [], [1, 1, 1, 1], id="fault-97-both-empty"),
    ],
)
def test_modes_of_tool_sequence(expected: list[str], actual: list[str], wanted: list[float]) -> None:
    found = [score(graders.tool_sequence(mode=mode), calls(*actual), None, expected) for mode in MODES]  # type: ignore[arg-type]
    assert found == wanted


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=lambda order: f"fault-98-{order}")
@pytest.mark.parametrize("arguments", ["exact", "subset", "ignore"])
def test_the_order_of_calls_does_not_decide(order: tuple[int, ...], arguments: Any) -> None:
    actual = [call("f", {"x": 1}), call("f", {"x": 2}), call("f", {"x": 3})]
    expected = [
        {"name": "f", "arguments": {"x": {"$any": True}}},
        {"name": "f", "arguments": {"x": 1}},
        {"name": "f", "arguments": {"x": {"$regex": "^[13]$"}}, "match": "exact"},
    ]
    grader = graders.tool_sequence(mode="unordered", arguments=arguments)
    shuffled = [expected[i] for i in order]
    assert score(grader, calls(*actual), None, shuffled) == 1
    assert score(grader, calls(*[actual[i] for i in order]), None, expected) == 1
    wrong = calls(call("f", {"x": 2}), call("f", {"x": 2}), call("f", {"x": 2}))
    assert score(grader, wrong, None, shuffled) == 0


@pytest.mark.parametrize(
    "how, expected, actual, wanted",
    [
        ("exact", {"x": 1}, {"x": 1.0}, 1),
        ("exact", {"x": 1}, {"x": True}, 0),
        ("exact", {"x": 1}, {"x": 1, "y": 2}, 0),
        ("subset", {"x": 1}, {"x": 1, "y": 2}, 1),
        ("subset", {"x": {"a": 1}}, {"x": {"a": 1, "b": 2}}, 1),
        ("exact", {"x": {"a": 1}}, {"x": {"a": 1, "b": 2}}, 0),
        ("ignore", {"x": 1}, {"y": 2}, 1),
        ("exact", {"x": {"$contains": "ppl"}}, {"x": "apples"}, 1),
        ("exact", {"x": {"$regex": "^a.*s$"}}, {"x": "apples"}, 1),
        ("exact", {"x": {"$regex": "^a.*s$"}}, {"x": "pears"}, 0),
        ("exact", {"x": {"$any": True}}, {}, 0),
        ("exact", None, {"x": 1}, 1),
        pytest.param("exact", {}, {}, 1, id="fault-95-no-arguments"),
        pytest.param("exact", {}, {"x": 1}, 0, id="fault-95-further-argument"),
        pytest.param("exact", {"a": 1}, '{"a": 1', 0, id="fault-92-cut-off"),
        pytest.param("exact", {"a": 1}, '{"a":1}"', 0, id="fault-92-trailing-quote"),
        pytest.param("exact", {"a": 1}, [1], 0, id="fault-92-list"),
        pytest.param("exact", {}, "", 1, id="fault-92-empty"),
        pytest.param("exact", {}, None, 1, id="fault-92-null"),
        pytest.param("exact", {"a": 1}, None, 0, id="fault-92-null-but-expected"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_arguments(mode: Any, how: Any, expected: Any, actual: Any, wanted: float) -> None:
    grader = graders.tool_sequence([{"name": "f", "arguments": expected}], mode=mode, arguments=how)
    assert score(grader, calls(call("f", actual))) == wanted


def test_it_says_why_calls_do_not_match() -> None:
    result = grade(graders.tool_sequence(), calls(call("f", {"x": 2}), call("h", {})), None, [call_f(1), "g"])
    assert result.rationale == (
        "expected but not called: `f`, `g`; called but not expected: `f`, `h`; "
        "expected in order `f`, `g`, called `f`, `h`; `f`: x is 2, expected 1"
    )
    assert result.metadata == {"mode": "strict", "expected": 2, "actual": 2, "matched": 0}


def call_f(x: Any) -> dict[str, Any]:
    return {"name": "f", "arguments": {"x": x}}


@given(st.lists(st.sets(st.integers(0, 5)), max_size=5))
def test_the_pairing_is_the_largest(fits: list[set[int]]) -> None:
    found = largest_matching([sorted(options) for options in fits])
    assert all(right in fits[left] for left, right in found.items())
    assert len(set(found.values())) == len(found)
    assert len(found) == most_pairs(fits)


def most_pairs(fits: list[set[int]]) -> int:
    if not fits:
        return 0
    first, *rest = fits
    return max([most_pairs(rest)] + [1 + most_pairs([options - {right} for options in rest]) for right in first])


def test_a_thousand_calls_are_paired() -> None:
    fits = [[i - 1, i] if i else [0] for i in range(3000)]
    assert len(largest_matching(list(reversed(fits)))) == 3000


@pytest.mark.parametrize(
    "name, config, message",
    [
        ("contians", {}, "did you mean `contains`?"),
        ("contains", {"hole": True}, "did you mean `whole`?"),
        ("contains", {"whole": 1}, "`whole` is 1"),
        ("exact_match", {"x": 1}, "it has none"),
        ("regex_match", {"timeout": 0}, "`timeout` is 0"),
        ("similarity", {"threshold": 1.5}, "`threshold` is 1.5"),
        ("similarity", {"method": "x"}, "`method` is 'x'"),
        ("numeric_match", {"tolerance": -1}, "`tolerance` is -1"),
        ("contains_any", {"expected": []}, "`expected`: an empty list"),
        ("tool_sequence", {"mode": "fuzzy"}, "`mode` is 'fuzzy'"),
        ("tool_sequence", {"expected": "f"}, "write a list of tool calls"),
        ("tool_sequence", {"expected": [3]}, 'call 0 is "3"'),
        ("tool_sequence", {"expected": ["f", {"nam": "f"}]}, "call 1: `name` is missing"),
        ("tool_sequence", {"expected": [{"name": "f", "arguments": {"x": {"$regx": "a"}}}]}, "is no matcher"),
        ("tool_sequence", {"expected": [{"name": "f", "arguments": {"x": {"$regex": "("}}}]}, "no regular expression"),
    ],
)
def test_wrong_settings_say_what_to_write(name: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_tool_grader(name, config)
    assert message in str(caught.value)


def sample(**fields: Any) -> Sample:
    return Sample(**{"id": 1, "input": "hi", **fields})


TWO_TURNS = ["a", "b"]


@pytest.mark.parametrize(
    "grader, row, complaint",
    [
        (graders.contains(), sample(ground_truth="x"), None),
        (graders.contains(), sample(), "needs a `ground_truth`"),
        (graders.contains(), sample(expected="x"), "needs a `ground_truth`"),
        (graders.contains(), sample(ground_truth=" "), "the ground truth is empty"),
        (graders.contains(), sample(input=TWO_TURNS, ground_truth=["x", None]), None),
        (graders.contains(), sample(input=TWO_TURNS, ground_truth=[None, None]), "needs a `ground_truth`"),
        (graders.contains(), sample(input=["a", {"user": "b", "ground_truth": "x"}]), None),
        (graders.contains(), sample(input={"simulate": {"goal": "x"}}), "needs a `ground_truth`"),
        (graders.regex_match(), sample(ground_truth="("), "no regular expression"),
        (graders.regex_match(), sample(input=TWO_TURNS, ground_truth=["x", "("]), "no regular expression"),
        (graders.numeric_match(), sample(ground_truth="1e999"), "is no finite number"),
        (graders.numeric_match(), sample(ground_truth="inf"), "is no finite number"),
        (graders.ascii_printable_only(), sample(), None),
        (graders.contains_any(), sample(expected=["x"]), None),
        (graders.contains_any(), sample(expected=[]), "cannot use `expected`"),
        (graders.contains_any(), sample(expected={"metric": ["x"]}), None),
        (graders.contains_any(["x"]), sample(), None),
        (graders.contains_any(), sample(), "or `expected` in the row"),
        (graders.json_match(), sample(ground_truth="{"), "not JSON"),
        (graders.tool_sequence(), sample(ground_truth="f"), "needs `expected`"),
        (graders.tool_sequence(), sample(expected=[{"name": 1}]), "`name` is 1"),
        (graders.tool_sequence(["f"]), sample(), None),
        pytest.param(graders.contains(), sample(ground_truth=4), None, id="fault-17-number"),
        pytest.param(graders.contains(), sample(ground_truth=True), None, id="fault-17-boolean"),
        pytest.param(graders.contains(), sample(ground_truth={}), None, id="fault-17-object"),
        pytest.param(graders.contains(), sample(ground_truth=None), "needs a `ground_truth`", id="fault-17-null"),
    ],
)
def test_what_a_row_lacks(grader: Grader, row: Sample, complaint: str | None) -> None:
    found = grader.check(row)
    assert (found is None) if complaint is None else (found is not None and complaint in found)


@pytest.mark.parametrize(
    "truth, text", [(4, "4"), (True, "true"), ({"a": 1}, '{"a":1}')], ids=lambda value: f"fault-17-{value}"
)
def test_truths_that_are_no_text_are_compared_as_json(truth: Any, text: str) -> None:
    row = sample(ground_truth=truth)
    assert isinstance(row.ground_truth, str)
    assert score(graders.exact_match(), text, row.ground_truth) == 1


class HasScore:
    score = 0.5
    rationale = "half"


class ModelWithScore(BaseModel):
    score: float
    comment: str


class TestCustom:
    @pytest.mark.parametrize(
        "returned, wanted",
        [
            (GradeResult(score=0.5, rationale="r"), 0.5),
            (0.5, 0.5),
            (0, 0),
            (True, 1),
            (np.float32(0.5), 0.5),
            (np.bool_(True), 1),
            ({"score": 0.5, "rationale": "r"}, 0.5),
            (HasScore(), 0.5),
            (ModelWithScore(score=0.5, comment="c"), 0.5),
        ],
    )
    def test_what_may_be_returned(self, returned: Any, wanted: float) -> None:
        result = anyio.run(make_tool_grader(lambda sample, submission: returned).grade, request("x"))
        assert result.score == wanted

    @pytest.mark.parametrize(
        "returned",
        [
            *[float("nan"), float("inf"), [1, float("nan")], "nan", {"score": float("nan")}, {"score": "nan"}],
            *[2, -0.1, None, "1", [1], {}, {"score": None}, object(), np.array([1, 2]), GradeResult],
            GradeResult.model_construct(score=float("nan")),
            {"score": 1, "metadata": 3},
        ],
        ids=lambda value: f"fault-23-{str(value)[:12]}",
    )
    def test_whatever_is_no_score_is_an_error(self, returned: Any) -> None:
        with pytest.raises(GradingError, match="grader `<lambda>`"):
            anyio.run(make_tool_grader(lambda sample, submission: returned).grade, request("x"))

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["fault-47-sync", "fault-47-async"])
    def test_an_exception_never_becomes_a_score(self, asynchronous: bool) -> None:
        def plain(sample: Any, submission: str) -> float:
            return {"ok": 1.0}[submission]

        async def awaited(sample: Any, submission: str) -> float:
            return plain(sample, submission)

        grader = make_tool_grader(awaited if asynchronous else plain)
        outcomes = []
        for submission in ("ok", "ok", "bad", "ok", "ok"):
            try:
                outcomes.append(anyio.run(grader.grade, request(submission)).score)
            except GradingError as error:
                outcomes.append((error.cause_type, "KeyError: 'bad'" in str(error)))
        assert outcomes == [1, 1, ("KeyError", True), 1, 1]

    @pytest.mark.parametrize("fine", [1, 7], ids=["fault-46-two-at-once", "fault-46-eight-at-once"])
    def test_samples_at_once_do_not_meet(self, fine: int) -> None:
        barrier = threading.Barrier(fine + 1, timeout=10)

        def slow(sample: Sample, submission: str) -> dict[str, Any]:
            barrier.wait()
            if submission == "raise":
                raise ValueError("this one alone")
            return {"score": 1, "rationale": submission}

        grader = make_tool_grader(slow)
        seen: dict[str, Any] = {}

        async def one(submission: str) -> None:
            try:
                seen[submission] = (await grader.grade(request(submission))).rationale
            except GradingError as error:
                seen[submission] = error.cause_type

        async def together() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(one, "raise")
                for number in range(fine):
                    group.start_soon(one, f"fine {number}")

        anyio.run(together)
        assert seen.pop("raise") == "ValueError"
        assert len(seen) == fine and all(rationale == submission for submission, rationale in seen.items())

    def test_the_sample_shows_the_truth_that_is_used(self) -> None:
        row = sample(ground_truth="row", extra_vars={"other": "used"})
        asked = GradeRequest(row, "used", Rollout(), ground_truth="used")
        grader = make_tool_grader(lambda sample, submission: sample.ground_truth == submission)
        assert anyio.run(grader.grade, asked).score == 1
        assert row.ground_truth == "row"

    def test_what_cannot_be_called_as_a_grader_is_refused(self) -> None:
        with pytest.raises(UsageError, match="must take"):
            make_tool_grader(lambda submission: 1.0)
        with pytest.raises(UsageError, match="cannot be handed `grader_config`"):
            make_tool_grader(lambda sample, submission: 1.0, {"a": 1})

    def test_a_loaded_one_keeps_its_reference_and_fingerprint(self) -> None:
        loaded = LoadedFunction(lambda sample, submission: 1.0, "g.py:f", None, {"sha256": "1"})
        assert make_tool_grader(loaded).fingerprint == {"grader": {"sha256": "1"}}


@pytest.mark.parametrize(
    "name, config, truth, risky",
    [
        ("contains", {}, "4", True),
        ("contains", {}, "1,234.5", True),
        ("contains", {}, "ok", True),
        ("contains", {}, "apples", False),
        ("contains", {"whole": True}, "4", False),
        ("not_contains", None, "4", True),
        ("numeric_match", {}, "4", False),
        ("exact_match", {}, "yes", False),
        ("exact_match", {}, "a whole sentence " * 5, True),
        ("regex_match", {}, "a*", True),
        ("regex_match", {}, "a+", False),
        ("regex_match", {}, "(", False),
    ],
)
def test_risky_truths(name: str, config: Any, truth: str, risky: bool) -> None:
    assert (risky_truth(name, config, truth) is not None) is risky


def test_every_built_in_is_described_and_has_a_maker() -> None:
    for name, described in BUILTIN.items():
        assert described.description.endswith("."), name
        assert callable(getattr(graders, name)), name
        assert all(option.description for option in described.option_descriptions), name


def test_fingerprints_tell_settings_apart() -> None:
    one, same, other = graders.contains(), graders.contains(whole=False), graders.contains(whole=True)
    assert one.fingerprint == same.fingerprint != other.fingerprint


class Unpicklable:
    """What a row in memory may hold and nobody can copy."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("no copies")


def test_what_a_users_grader_changes_is_changed_for_itself_alone() -> None:
    held = Unpicklable()
    sample = Sample(id=1, input=["a", "b"], expected={"keep": [1]}, metadata={"keep": ["me"], "held": held})

    def vandal(sample: Any, submission: str) -> float:
        assert isinstance(sample.metadata["held"], Unpicklable)
        sample.metadata["keep"].clear()
        sample.input.clear()
        sample.expected["new"] = object()
        return 1.0

    for metadata in (sample.metadata, {"keep": ["me"]}):
        own = sample.model_copy(update={"metadata": metadata})
        anyio.run(make_tool_grader(vandal_of(vandal)).grade, GradeRequest(own, "x", Rollout()))
        assert own.metadata is not None
        assert (own.metadata["keep"], own.input, own.expected) == (["me"], ["a", "b"], {"keep": [1]})


def vandal_of(function: Any) -> Any:
    def vandal(sample: Any, submission: str) -> float:
        sample.metadata.setdefault("held", Unpicklable())
        return float(function(sample, submission))

    return vandal


def test_a_grade_that_was_spoilt_after_it_was_made_is_an_error_or_mended() -> None:
    def spoilt(sample: Any, submission: str) -> GradeResult:
        grade = GradeResult(score=1)
        grade.metadata["odd"] = {1: Rollout}
        return grade

    def unchecked(sample: Any, submission: str) -> GradeResult:
        return GradeResult.model_construct(score=7, rationale=5, metadata=[])

    result = anyio.run(make_tool_grader(spoilt).grade, request("x"))
    assert result.metadata == {"odd": {"1": str(Rollout)}}
    with pytest.raises(GradingError, match="less than or equal to 1"):
        anyio.run(make_tool_grader(unchecked).grade, request("x"))
