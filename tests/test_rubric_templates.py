"""Rubrics as templates: what is a placeholder, what is text, and what a sample must give."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from stateval.graders import model_judge
from stateval.graders.judging import Criterion, JudgeSettings
from stateval.graders.judging.prompt import Prompts, input_text
from stateval.graders.judging.template import Placeholder, read_template
from stateval.records.protocols import GradeRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from tests.support.judge_prompts import parsed

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


def text_of(source: str, **values: object) -> str:
    """The rubric with its values; reserved placeholders stay as they are written."""
    parts = read_template(source).with_values(values)
    return "".join(part.source if isinstance(part, Placeholder) else part for part in parts)


def prompt_of(settings: JudgeSettings, sample: Sample, submission: str = "the answer") -> str:
    prompts = Prompts(settings)
    truth = sample.ground_truth if isinstance(sample.ground_truth, str) else None
    request = GradeRequest(sample, submission, Rollout(), truth)
    assert prompts.problem(sample, has_truth=truth is not None) is None
    return prompts.messages(prompts.shown(request), prompts.questions[0])[1].content


def complaint(prompt: str, *, listed: tuple[str, ...] | None = None, **fields: object) -> str | None:
    judge = model_judge(prompt, rubric_vars=listed, model="m", base_url="http://127.0.0.1:9/v1", cache=False)
    return judge.check(Sample(**{"id": 1, "input": "the question", **fields}))


@pytest.mark.parametrize(
    "source, shown",
    [
        ("{style}", "formal"),
        ("{{style}}", "{style}"),
        ("{{{style}}}", "{formal}"),
        ("{ style } {} {0} {style.x} {style[0]} {style!r} {style:>9}", None),
        ('{"a": {"b": [1, {}]}}', None),
        ('{"a": {"b": {"c": {}}}} and {"d": 1}', None),
        ('{{"a": {{"b": 1}}}}', '{"a": {"b": 1}}'),
        ('{"style": {style}}', '{"style": formal}'),
        ('{{"style": {{"is": {style}}}}}', '{"style": {"is": formal}}'),
        ("a }} b {{ c", "a } b { c"),
        ("a } b { c", None),
        ("{nobody}", None),
    ],
)
def test_only_an_identifier_in_braces_is_a_placeholder(source: str, shown: str | None) -> None:
    assert text_of(source, style="formal") == (source if shown is None else shown)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(string.printable.replace("{", "").replace("}", "")),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters), inner, max_size=3),
    ),
    st.sampled_from([None, 2]),
)
def test_json_in_a_rubric_stays_as_it_is(value: object, indent: int | None) -> None:
    source = f"Answer like {json.dumps(value, indent=indent)} and no other."
    assert text_of(source) == source


@given(st.text())
def test_doubled_braces_give_any_text_back(text: str) -> None:
    assert text_of(text.replace("{", "{{").replace("}", "}}"), x="value") == text


@given(st.text())
def test_every_text_is_a_rubric(text: str) -> None:
    assert all(name.isidentifier() for name in read_template(text).names)
    assert text_of(text.replace("}}", "}").replace("{{", "{")).count("\n") == text.count("\n")


@given(NAMES.filter(lambda name: name not in ("input", "ground_truth", "submission")), st.text())
def test_what_a_value_holds_is_never_read_again(name: str, value: str) -> None:
    assert text_of(f"<{{{name}}}>", **{name: value}) == f"<{value}>"
    tricky = f"{value}{{{name}}}{{submission}}{{{{"
    assert text_of(f"<{{{name}}}>", **{name: tricky}) == f"<{tricky}>"


class _Person(BaseModel):
    name: str = "Ada"


@pytest.mark.parametrize(
    "value, shown",
    [
        pytest.param({"a": [1, None]}, '{"a":[1,null]}', id="fault-31-dict"),
        pytest.param(["x", 2.5], '["x",2.5]', id="fault-31-list"),
        pytest.param(b"bytes", "bytes", id="fault-31-bytes"),
        pytest.param(_Person(), '{"name":"Ada"}', id="fault-31-model"),
        pytest.param(True, "true", id="fault-31-boolean"),
        pytest.param(0, "0", id="fault-44-zero-is-a-value"),
        pytest.param("", "", id="fault-44-empty-is-a-value"),
    ],
)
def test_values_that_are_no_text_become_their_json(value: object, shown: str) -> None:
    assert text_of("<{value}>", value=value) == f"<{shown}>"
    assert complaint("{submission} <{value}>", rubric_vars={"value": value}) is None


@pytest.mark.parametrize(
    "prompt, listed, given_values, lacking",
    [
        ("{submission} in {style}", None, None, ["style"]),
        ("{submission} in {style} and {tone}", None, {"style": "s"}, ["tone"]),
        ("{submission} {b} {a} {b}", None, {}, ["b", "a"]),
        ("{submission} in {style}", None, {"style": None}, ["style"]),
        ("{input} in {style}", None, None, ["style"]),
        ("{submission} in {style} and {tone}", ("style",), {"style": "s"}, []),
        ("{submission} in {style} and {tone}", ("style",), {"tone": "t"}, ["style"]),
        ("{submission} in {style}", (), None, []),
        ("In {style}", None, None, []),
        ("In {style}", ("style",), None, ["style"]),
        ("In {style}", None, {"style": "s"}, []),
    ],
)
def test_a_placeholder_without_a_value_is_an_error_of_the_row(prompt, listed, given_values, lacking) -> None:
    found = complaint(prompt, listed=listed, rubric_vars=given_values)
    if not lacking:
        assert found is None
    else:
        assert found and f"the rubric has {', '.join(f'`{{{name}}}`' for name in lacking)}, of which" in found
        assert "`rubric_vars`" in found


@pytest.mark.parametrize("name", ["input", "ground_truth", "submission"])
def test_a_row_may_not_fill_what_the_sample_fills(name: str) -> None:
    found = complaint("{submission}", rubric_vars={name: "mine"})
    assert found and f"`rubric_vars` may not hold `{name}`" in found


def test_a_truth_that_the_rubric_wants_must_be_there() -> None:
    assert "no `ground_truth`" in (complaint("{submission} {ground_truth}") or "")
    assert complaint("{submission} {ground_truth}", ground_truth="x") is None
    assert complaint("{submission} {ground_truth}", input=["a", "b"], ground_truth=["x", None]) is None
    assert complaint("{submission}") is None


def test_a_rows_own_rubric_is_checked_in_place_of_the_graders() -> None:
    assert "{own}" in (complaint("{submission} {style}", rubric="{submission} {own}") or "")
    assert complaint("{submission} {style}", rubric="Is it kind?") is None
    assert "{style}" in (complaint("{submission} {style}", rubric=" \n") or "")


def test_each_value_stands_where_the_rubric_has_it() -> None:
    sample = Sample(id=1, input="the question", ground_truth="the truth", rubric_vars={"style": "formal"})
    rubric = 'Asked: {input}\nFact: {ground_truth}\nStyle {style}, form {"score": 1}.\nSaid: {submission}\nNow grade.'
    prompt = parsed(prompt_of(JudgeSettings(prompt=rubric), sample))
    assert prompt.data == {"input": "the question", "ground_truth": "the truth", "submission": "the answer"}
    order = [
        "Asked: ",
        "<input>",
        "Fact: ",
        "<ground_truth>",
        'Style formal, form {"score": 1}.',
        "Said: ",
        "Now grade.",
    ]
    places = [prompt.frame.index(text) for text in order]
    assert places == sorted(places)


def test_a_rubric_without_the_submission_gets_what_it_does_not_place() -> None:
    sample = Sample(id=1, input="the question", ground_truth="the truth")
    for rubric, names in [
        ("Is it {kind}?", ["input", "ground_truth", "submission"]),
        ("Asked {input}. Is it right?", ["input", "ground_truth", "submission"]),
        ("Is {submission} right?", ["submission"]),
    ]:
        assert list(parsed(prompt_of(JudgeSettings(prompt=rubric), sample)).data) == names
    without_truth = Sample(id=1, input="the question")
    assert list(parsed(prompt_of(JudgeSettings(prompt="Is it?"), without_truth)).data) == ["input", "submission"]


def test_data_that_is_placed_twice_has_two_fences() -> None:
    prompt = parsed(prompt_of(JudgeSettings(prompt="{submission} or {submission}"), Sample(id=1, input="q")))
    assert prompt.data == {"submission": "the answer", "submission_2": "the answer"}


def test_turns_are_shown_one_by_one() -> None:
    turns = ["I like apples", {"new_conversation": True}, {"wait": 60}, {"user": "What do I like?"}]
    shown = "Turn 1:\nI like apples\n\n(A new conversation begins.)\n\n(60 seconds pass.)\n\nTurn 2:\nWhat do I like?"
    assert input_text(Sample(id=1, input=turns)) == shown
    simulated = Sample(id=1, input={"simulate": {"goal": "book a table"}})
    assert json.loads(input_text(simulated))["simulate"]["goal"] == "book a table"


def test_beside_criteria_a_rows_own_rubric_comes_first() -> None:
    settings = JudgeSettings(criteria={"clear": Criterion(description="It is {clear}.")})
    sample = Sample(id=1, input="q", rubric="Be strict about {what}.", rubric_vars={"what": "names"})
    frame = parsed(prompt_of(settings, sample)).frame
    assert frame.index("Be strict about names.") < frame.index("- clear: It is {clear}.")
