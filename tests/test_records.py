"""Records are read back as they were written, and refuse what they cannot mean."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from stateval.records.chat import messages_from_reply
from stateval.records.encoding import dump_json, json_text, load_json, plain
from stateval.records.grade import GradeResult, PerTurnGrade, RewardOutput
from stateval.records.marks import Mark, agent_factory, extractor, grader, mark_of, reward_composer, suite_setup
from stateval.records.message import (
    AssistantMessage,
    EventMessage,
    Message,
    OtherMessage,
    ReasoningMessage,
    SummaryMessage,
    SystemMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturn,
    ToolReturnMessage,
    UserMessage,
    messages_of,
    text_of,
)
from stateval.records.record import Record
from stateval.records.result import ErrorCategory
from stateval.records.rollout import Rollout, TurnTokenData
from stateval.records.sample import NewConversation, Sample, SimulatedInput, Simulation, UserTurn, Wait
from stateval.records.state import AgentState, Block, BlockChange, ChangeKind, Snapshot, changes_between
from stateval.records.summary import ErrorSummary, Ledger, MetricSummary, ModelSummary, PerRunSummary, Summary
from stateval.records.usage import Timing, TimingStats, Usage
from stateval.records.verdict import GateVerdict, Outcome

texts = st.text(st.characters(), max_size=12)  # surrogates and NUL included
finite = st.floats(allow_nan=False, allow_infinity=False)
seconds = st.floats(0, 1e9)
scores = st.floats(0, 1)
counts = st.integers(0, 2**65)
scalars = st.none() | st.booleans() | st.integers() | finite | texts
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=6)
objects = st.dictionaries(texts, values, max_size=3)
dates = st.datetimes(timezones=st.just(UTC))
contents = st.none() | texts | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=2)


def perhaps(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


calls = st.builds(ToolCall, name=texts, arguments=texts, tool_call_id=texts)
common = {"id": texts, "date": perhaps(dates), "name": perhaps(texts), "seq_id": perhaps(st.integers())}
messages = st.one_of(
    st.builds(AssistantMessage, content=contents, **common),
    st.builds(UserMessage, content=contents, **common),
    st.builds(SystemMessage, content=contents, **common),
    st.builds(ReasoningMessage, reasoning=texts, **common),
    st.builds(SummaryMessage, summary=texts, **common),
    st.builds(EventMessage, event_type=texts, event_data=objects, **common),
    st.builds(ToolCallMessage, tool_call=perhaps(calls), tool_calls=perhaps(st.lists(calls, max_size=2)), **common),
    st.builds(
        ToolReturnMessage,
        tool_call_id=texts,
        tool_return=values,
        status=st.sampled_from(["success", "error"]),
        tool_returns=perhaps(st.lists(st.builds(ToolReturn, tool_call_id=texts, tool_return=texts), max_size=2)),
        **common,
    ),
    st.builds(OtherMessage, message_type=st.just("of_tomorrow"), **common),
)
blocks = st.builds(Block, label=texts, value=texts, limit=perhaps(st.integers()), read_only=perhaps(st.booleans()))
states = st.builds(AgentState, id=perhaps(texts), blocks=st.lists(blocks, max_size=3))
tokens = st.integers(0, 10**15)
usages = st.builds(Usage, prompt_tokens=tokens, completion_tokens=tokens, cost=perhaps(seconds))
rollouts = st.builds(
    Rollout,
    trajectory=st.lists(st.lists(messages, max_size=3), max_size=3),
    agent_state=perhaps(states),
    snapshots=perhaps(st.lists(st.builds(Snapshot, turn=st.integers(-1, 9), state=states), max_size=2)),
    conversations=perhaps(st.lists(st.integers(0, 9), max_size=2)),
    agent_usage=perhaps(st.lists(objects, max_size=2)),
    usage=perhaps(usages),
    token_data=perhaps(st.lists(st.builds(TurnTokenData, role=texts), max_size=1)),
    context=perhaps(objects),
)
turns = st.one_of(
    texts,
    st.builds(UserTurn, user=texts, ground_truth=perhaps(texts), graders=perhaps(st.lists(texts).map(tuple))),
    st.builds(NewConversation, new_conversation=st.just(True)),
    st.builds(Wait, wait=seconds),
)
inputs = st.one_of(
    texts,
    st.builds(lambda first, rest: [first, *rest], texts, st.lists(turns, max_size=3)),
    st.builds(SimulatedInput, simulate=st.builds(Simulation, persona=perhaps(texts), facts=values)),
)
samples = st.builds(
    Sample,
    id=texts | st.integers(),
    input=inputs,
    ground_truth=perhaps(texts),
    agent_args=perhaps(objects),
    expected=values,
    tags=st.lists(texts, max_size=2).map(tuple),
    metadata=perhaps(objects),
    cluster=perhaps(texts),
)
grades = st.builds(
    GradeResult,
    score=scores,
    rationale=perhaps(texts),
    metadata=objects,
    per_turn_grades=perhaps(st.lists(st.builds(PerTurnGrade, turn=st.integers(0, 9), score=scores), max_size=2)),
)
verdicts = st.recursive(
    st.builds(
        GateVerdict,
        condition=texts,
        outcome=st.sampled_from(Outcome),
        measured=perhaps(finite),
        interval=perhaps(st.tuples(finite, finite)),
        n=perhaps(counts),
    ),
    lambda children: st.builds(
        GateVerdict, condition=texts, outcome=st.sampled_from(Outcome), children=st.lists(children, max_size=2)
    ),
    max_leaves=4,
)
timings = st.builds(TimingStats, mean_total=seconds, mean_target=seconds, p50_total=seconds, p95_total=seconds)
summaries = st.builds(
    Summary,
    suite=texts,
    models=st.lists(
        st.builds(
            ModelSummary,
            model=texts,
            n_total=counts,
            n_attempted=counts,
            reward=perhaps(scores),
            per_metric=st.dictionaries(texts, scores, max_size=2),
            usage=usages,
            timing=perhaps(timings),
            errors=perhaps(st.builds(ErrorSummary, total_errors=counts)),
            runs=perhaps(st.lists(st.builds(PerRunSummary, run=st.integers(1, 9), reward=perhaps(scores)), max_size=1)),
            metrics=st.dictionaries(
                texts, st.builds(MetricSummary, n_scored=counts, n_counted=counts, mean_scored=perhaps(scores))
            ),
            ledgers=st.dictionaries(
                texts,
                st.builds(Ledger, planned=counts, errored=st.dictionaries(st.sampled_from(ErrorCategory), counts)),
            ),
        ),
        max_size=2,
    ),
    gates=st.lists(verdicts, max_size=2),
)


@pytest.mark.parametrize(
    "records",
    [samples, rollouts, grades, states, usages, verdicts, summaries, st.builds(RewardOutput, score=scores)],
    ids=["sample", "rollout", "grade", "state", "usage", "verdict", "summary", "reward"],
)
@given(data=st.data())
def test_a_record_is_read_back_equal(records: st.SearchStrategy[Record], data: st.DataObject) -> None:
    record = data.draw(records)
    line = record.to_json()
    assert b"\n" not in line
    assert type(record).from_json(line) == record
    assert type(record).from_json(line.decode("utf-8")) == record


@given(message=messages)
def test_a_message_is_read_back_by_its_type(message: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Message)
    read = adapter.validate_python(load_json(message.to_json()))
    assert type(read) is type(message)
    assert read == message


def test_keys_of_other_releases_are_kept_in_messages_and_ignored_elsewhere() -> None:
    message = {"message_type": "assistant_message", "id": "m", "content": "x", "of_tomorrow": {"a": 1}}
    assert load_json(AssistantMessage.model_validate(message).to_json())["of_tomorrow"] == {"a": 1}
    assert Usage.from_json('{"prompt_tokens": 3, "of_tomorrow": 1}').prompt_tokens == 3


def test_absent_fields_are_left_out_but_a_null_inside_data_stays() -> None:
    sample = Sample(id=1, input="x", expected={"deep": None}, metadata={"also": [None]})
    assert load_json(sample.to_json()) == {
        "id": 1,
        "input": "x",
        "expected": {"deep": None},
        "tags": [],
        "metadata": {"also": [None]},
    }


@pytest.mark.parametrize(
    ("truth", "text"),
    [(4, "4"), (True, "true"), ({"a": [1]}, '{"a":[1]}'), (1.10, "1.1"), ("007", "007"), (10**25, "1" + "0" * 25)],
)
def test_fault_17_a_truth_is_the_text_of_its_json(truth: Any, text: str) -> None:
    assert Sample(id=1, input="x", ground_truth=truth).ground_truth == text
    assert Sample(id=1, input=["x"], ground_truth=[truth]).ground_truth == [text]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"input": "x", "ground_truth": ["a"]}, "put a list of accepted values into `expected`"),
        ({"input": ["x", {"wait": 1}], "ground_truth": ["a", "b"]}, "2 items for 1 user turns"),
        ({"input": [{"new_conversation": True}]}, "no user turn"),
        ({"input": []}, "no user turn"),
        ({"input": [{"user": "x", "grounds": "y"}]}, "grounds"),
        ({"input": [{"wait": -1}]}, "wait"),
    ],
)
def test_samples_that_mean_nothing_are_refused(row: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Sample(id=1, **row)


@pytest.mark.parametrize("row", [{"input": "  "}, {"input": ["a", "a"]}, {"input": ["", "b"]}])
def test_fault_101_empty_and_doubled_turns_are_kept(row: dict[str, Any]) -> None:
    said = row["input"] if isinstance(row["input"], list) else [row["input"]]
    assert [turn.user for turn in Sample(id=1, **row).user_turns] == said


def test_turn_truths() -> None:
    assert Sample(id=1, input=["a", "b"], ground_truth=["x", None]).turn_truths == ["x", None]
    assert Sample(id=1, input=["a", {"user": "b", "ground_truth": 4}]).turn_truths == [None, "4"]
    assert Sample(id=1, input=["a", "b"], ground_truth="x").turn_truths is None
    assert Sample(id=1, input="a", ground_truth="x").turn_truths is None


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1, "0.5", None, [1]])
def test_fault_23_a_score_is_a_finite_number_from_0_to_1(score: Any) -> None:
    for kind in (GradeResult, RewardOutput):
        with pytest.raises(ValidationError):
            kind(score=score)


def test_true_and_false_are_scores() -> None:
    assert (GradeResult(score=True).score, GradeResult(score=False).score) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ("a", "a"),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "refusal", "refusal": "no"}], ""),
        ({"a": 1}, ""),
        (7, ""),
    ],
)
def test_fault_100_only_text_counts_in_content(content: Any, text: str) -> None:
    assert text_of(content) == text


def test_calls_and_returns_come_in_either_field() -> None:
    one, two = ToolCall(name="a"), ToolCall(name="b")
    assert ToolCallMessage(tool_call=one).calls == [one]
    assert ToolCallMessage(tool_call=one, tool_calls=[one, two]).calls == [one, two]
    assert ToolCallMessage(tool_calls=two).calls == [two]
    assert ToolCallMessage().calls == []
    assert ToolReturnMessage(tool_call_id="c", tool_return="r").returns[0].tool_return == "r"
    assert [turn for turn, _ in messages_of([[AssistantMessage()], [ToolCallMessage()]], ToolCallMessage)] == [1]


@given(before=states, after=states)
def test_changes_between_states_tell_the_whole_difference(before: AgentState, after: AgentState) -> None:
    told = {change.label: change for change in changes_between(before, after)}
    rebuilt = {block.label: block.value for block in before.blocks}
    for change in told.values():
        if change.kind is ChangeKind.REMOVED:
            assert rebuilt.pop(change.label) == change.before
        else:
            assert rebuilt.get(change.label) == change.before
            rebuilt[change.label] = change.after or ""
    assert rebuilt == {block.label: block.value for block in after.blocks}


def test_missing_and_empty_blocks_differ() -> None:
    state = AgentState.of({"a": ""})
    assert state.block("a") == Block(label="a", value="")
    assert state.block("b") is None
    assert changes_between(AgentState(), state) == [BlockChange(label="a", kind=ChangeKind.ADDED, after="")]


def test_one_turn_of_a_rollout_has_the_state_of_that_turn() -> None:
    rollout = Rollout(
        trajectory=[[AssistantMessage(content="a")], [AssistantMessage(content="b")]],
        agent_state=AgentState.of({"x": "2"}),
        snapshots=[Snapshot(turn=0, state=AgentState.of({"x": "1"}))],
    )
    assert rollout.only_turn(0).agent_state == AgentState.of({"x": "1"})
    assert rollout.only_turn(1).agent_state is None
    assert not rollout.only_turn(5).has_messages


def test_a_sum_of_costs_is_known_only_where_both_are() -> None:
    assert (Usage(cost=1) + Usage(cost=2)).cost == 3
    assert (Usage(cost=1) + Usage(prompt_tokens=1)).cost is None


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "1e999", "{", "", "{'a': 1}"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        load_json(text)


def test_plain_makes_json_of_anything() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    value = {1: float("nan"), "b": b"\xff", "s": {2}, "t": moment, "r": Usage(prompt_tokens=1), None: Outcome.PASS}
    assert load_json(dump_json(plain(value))) == {
        "1": "nan",
        "b": "/w==",
        "s": [2],
        "t": "2026-01-02T00:00:00+00:00",
        "r": {
            "prompt_tokens": 1,
            "completion_tokens": 0,
            "cached_input_tokens": 0,
            "cache_write_tokens": 0,
            "reasoning_tokens": 0,
        },
        "null": "pass",
    }
    assert json_text(b"caf\xc3\xa9") == "café"


@given(reply=texts | values | st.lists(messages, max_size=3))
def test_any_reply_but_none_becomes_messages_with_ids(reply: Any) -> None:
    if reply is None:
        with pytest.raises(ValueError, match="returned None"):
            messages_from_reply(reply)
    else:
        for message in messages_from_reply(reply):
            assert message.id


def _pieces():
    yield "a piece"


async def _pieces_in_time():
    yield "a piece"


async def _answer():
    return "an answer"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (_pieces(), "a generator; join the pieces into a string"),
        (_pieces_in_time(), "an async generator; join the pieces into a string"),
        ([_answer()], "a coroutine that nobody waited for"),
        ({"answer": _answer}, "`_answer` itself; call it"),
        (pytest, "the type `module`"),
        (object(), "the type `object`"),
        ({"role": "assistant", "content": [{"type": "text", "text": _pieces()}]}, "a generator"),
        (AssistantMessage(content=[object()]), "the type `object`"),
        ({"message_type": "tool_return_message", "tool_return": object()}, "the type `object`"),
    ],
)
def test_a_reply_that_is_no_data_is_refused_rather_than_graded_by_its_repr(reply: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        messages_from_reply(reply)


def _nested(levels: int) -> Any:
    value: Any = "deep down"
    for number in range(levels):
        value = [value] if number % 2 else {"in": value}
    return value


def test_nesting_has_a_limit() -> None:
    assert plain(_nested(200)) == _nested(200)
    itself: list[Any] = []
    itself.append(itself)
    for value in (_nested(201), _nested(900), _nested(100_000), itself):
        with pytest.raises(ValueError, match="nested too deeply"):
            plain(value)
    with pytest.raises(ValueError, match="nested too deeply"):
        dump_json(_nested(900))
    with pytest.raises(ValidationError, match="nested too deeply"):
        GradeResult(score=1, metadata={"itself": itself})


def test_a_number_too_long_to_be_written_becomes_a_text_that_says_so() -> None:
    assert plain({"n": 10**5000, 10**5000: -(10**4000)}) == {
        "n": "a whole number of 5,001 digits",
        "a whole number of 5,001 digits": "a whole number of 4,001 digits",
    }
    assert load_json(dump_json([10**3999])) == [10**3999]
    assert json_text(10**5000) == "a whole number of 5,001 digits"


def test_marks_check_signatures_and_change_nothing() -> None:
    def judge(sample: Any, submission: str) -> float:
        return 1.0

    assert grader(judge) is judge
    assert mark_of(judge) is Mark.GRADER
    assert mark_of(len) is None
    for decorate, wrong in [
        (grader, lambda sample: 1),
        (extractor, lambda trajectory: ""),
        (extractor, lambda trajectory, config, colour: ""),
        (reward_composer, lambda context: 1),
        (agent_factory, lambda: 1),
        (suite_setup, lambda a, b, c: None),
    ]:
        with pytest.raises(TypeError, match="take"):
            decorate(wrong)
    assert mark_of(extractor(lambda trajectory, config, context, agent_state: "")) is Mark.EXTRACTOR
    assert mark_of(agent_factory(lambda client, sample: "")) is Mark.AGENT_FACTORY
    assert Timing(total=1, target=1).extraction is None


@given(
    st.floats(0.1, 9.9),
    st.integers(300, 420),
    st.sampled_from(["e", "E", "e+", "E+"]),
    st.sampled_from(["{}", "[{}]", '{{"a": {}}}', '{{"a":-{}, "b": "3da47e331"}}', "[1,\n{}]"]),
)
def test_fault_23_numbers_too_large_are_refused_wherever_they_stand(
    mantissa: float, exponent: int, sign: str, place: str
) -> None:
    number = f"{mantissa:.3f}{sign}{exponent}"
    text = place.format(number)
    if math.isinf(float(number)):
        with pytest.raises(ValueError, match="too large"):
            load_json(text)
        with pytest.raises(ValueError, match="too large"):
            load_json(text.encode())
    else:
        assert load_json(text) == load_json(text.encode()) == json.loads(text)
