"""Structured answers, as models really send them: one that is meant, asked for again, or an error. Never a repair."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.errors import PermanentModelError
from stateval.llm import ChatMessage, ChatRequest, Retries, open_model
from stateval.llm.schema import InvalidAnswer, read_answer
from tests.support.model_server import ModelServer, Reply, refused

SCHEMA = {
    "type": "object",
    "properties": {"rationale": {"type": "string"}, "score": {"type": "number"}},
    "required": ["rationale", "score"],
    "additionalProperties": False,
}
GOOD = '{"rationale": "fine", "score": 1}'
HELLO = ChatRequest((ChatMessage("user", "hello"),))


def number(value: Any) -> float:
    """Reads `score`, which may be a text."""
    try:
        return float(value["score"])
    except (TypeError, KeyError, ValueError) as error:
        raise InvalidAnswer("it has no score") from error


def structured(server: ModelServer, **options: Any):
    async def run():
        retries = Retries(tries=2, first_wait=0.001, longest_wait=0.002, jitter=0)
        model = open_model("scripted", base_url=server.base_url, retries=retries)
        try:
            return await model.structured(HELLO, SCHEMA, **options)
        finally:
            await model.close()

    return anyio.run(run)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure, here it is: {GOOD} I hope that helps.",
        f"{{not json}} {GOOD}",
        f"{GOOD}\n\n{GOOD}",
        f'{{"score": 7}} No. {GOOD}',
        '{"rationale": "fine", "score": 1, "score": 1}',
        f'<think>It may be {{"rationale": "a draft", "score": 0}}.</think>\n{GOOD}',
        f"<think>maybe {{'score': 0}}</think>{GOOD}",
    ],
    ids="fault-25-{}".format,
)
def test_one_valid_answer_is_found_in_what_judges_send(text):
    with ModelServer(text) as server:
        value, _ = structured(server)
    assert value == {"rationale": "fine", "score": 1}
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (Reply(""), "it is empty"),
        (Reply("   "), "it is empty"),
        (Reply("I cannot judge that."), "no JSON object"),
        (Reply(refusal="I will not grade this."), "declined"),
        (Reply('{"rationale": "fi', finish_reason="length"), "cut off"),
        (Reply(f'{GOOD} or rather {{"rationale": "bad", "score": 0}}'), "2 different answers"),
        (Reply('{"rationale": "fine", "score": 0, "score": 1}'), "gives `score` twice"),
        (Reply('So: {"rationale": "fine", "score": 0, "score": 1}.'), "gives `score` twice"),
        (Reply('{"rationale": "fine", "score": 1e999}'), "no JSON object"),
        (Reply('{"rationale": "fine"}'), "no `score`"),
        (Reply('{"rationale": "fine", "score": true}'), "not of type number"),
    ],
    ids="fault-29-{}".format,
)
def test_what_is_no_answer_is_asked_for_again_and_told_why(first, told):
    with ModelServer([first, GOOD]) as server:
        value, _ = structured(server)
    assert value["score"] == 1
    again = server.requests[1]
    assert told in again.last
    assert [message["role"] for message in again.messages] == ["user", "assistant", "user"]
    assert all(message["content"] for message in again.messages)
    assert ("shorter" in again.last) == (first.finish_reason == "length")


def test_only_the_last_answer_that_was_none_is_shown_again():
    with ModelServer(["first nonsense", "second nonsense", GOOD]) as server:
        structured(server)
    third = server.requests[2].messages
    assert [message["content"] for message in third[:2]] == ["hello", "second nonsense"]
    assert len(third) == 3


def test_three_tries_are_all_and_the_error_says_what_came_and_what_it_took():
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    answer = Reply(refusal="I will not grade this.", usage=usage)
    told = r"in 3 tries.*declined.*I will not grade this"
    with ModelServer(answer) as server, pytest.raises(PermanentModelError, match=told) as caught:
        structured(server)
    assert len(server.requests) == 3
    assert caught.value.usage is not None
    assert (caught.value.usage.prompt_tokens, caught.value.usage.completion_tokens) == (15, 6)


def test_usage_before_a_failing_call_is_kept_with_its_error():
    with ModelServer(["nonsense", refused(400, "no")]) as server, pytest.raises(PermanentModelError) as caught:
        structured(server)
    assert caught.value.usage is not None
    assert caught.value.usage.completion_tokens == 1


def test_an_answer_that_was_cut_off_after_its_end_is_taken():
    with ModelServer(Reply(f"{GOOD} and so I thin", finish_reason="length")) as server:
        assert structured(server)[0]["score"] == 1


def test_accept_says_what_counts_and_what_two_answers_mean():
    texts = ['{"score": "1"} and again {"score": 1.0}', '{"score": "one"}', '{"score": 1} {"score": 2}', '{"score": 2}']
    with ModelServer(texts) as server:
        assert structured(server, accept=number)[0] == 1.0
    with ModelServer(texts[1:]) as server:
        assert structured(server, accept=number)[0] == 2.0
        assert "no score" in server.requests[1].last
        assert "2 different answers" in server.requests[2].last


TEXTS = st.text(max_size=60)
OBJECTS = st.fixed_dictionaries({"rationale": TEXTS, "score": st.floats(0, 1)})
PROSE = st.text(st.characters(exclude_characters="{}", codec="utf-8"), max_size=60)


@given(OBJECTS, PROSE, PROSE, st.booleans())
def test_a_valid_answer_is_read_as_it_is_whatever_stands_around_it(value, before, after, fenced):
    text = json.dumps(value, ensure_ascii=False)
    shown = f"{before}\n```json\n{text}\n```\n{after}" if fenced else f"{before}{text}{after}"
    assert read_answer(shown, SCHEMA) == value


@given(OBJECTS, OBJECTS)
def test_an_answer_in_the_words_of_a_rationale_is_no_second_answer(outer, inner):
    quoted = {**outer, "rationale": f"It says {json.dumps(inner)} and ```json\n{json.dumps(inner)}\n```"}
    for text in (json.dumps(quoted), f"Here: {json.dumps(quoted)}"):
        assert read_answer(text, SCHEMA) == quoted


@given(OBJECTS, OBJECTS, PROSE)
def test_two_different_answers_are_none(one, other, between):
    shown = f"x {json.dumps(one)}{between}{json.dumps(other)}"
    if one == other:
        assert read_answer(shown, SCHEMA) == one
    else:
        with pytest.raises(InvalidAnswer, match="2 different"):
            read_answer(shown, SCHEMA)


@given(st.one_of(st.text(), st.text('{}[]",: \\0123456789truefalsn', max_size=40)))
def test_no_text_breaks_the_reading(text):
    try:
        value = read_answer(text, SCHEMA)
    except InvalidAnswer as error:
        assert str(error)
    else:
        assert set(value) == {"rationale", "score"}
