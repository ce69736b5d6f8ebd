"""What each extractor takes out of a trajectory, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval import extractors
from stateval.errors import ExtractionError, UsageError
from stateval.extractors import builtin, make_extractor
from stateval.loading.user_code import LoadedFunction
from stateval.records.marks import Mark, extractor
from stateval.records.message import (
    ApprovalRequestMessage,
    AssistantMessage,
    ReasoningMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturn,
    ToolReturnMessage,
)
from stateval.records.protocols import Extraction, Extractor, Needs
from stateval.records.rollout import Rollout
from stateval.records.state import AgentState, Snapshot


def said(*turns: Any) -> Rollout:
    """A rollout with one list of assistant contents per turn."""
    return Rollout(trajectory=[[AssistantMessage(content=content) for content in turn] for turn in turns])


def took(extractor: Extractor, rollout: Rollout) -> Extraction:
    return anyio.run(extractor.extract, rollout)


def text(extractor: Extractor, rollout: Rollout) -> str:
    return took(extractor, rollout).submission


THREE = said(["one"], ["two", "three 3"])
CALLS = Rollout(
    trajectory=[
        [
            ReasoningMessage(reasoning="first look"),
            ToolCallMessage(
                tool_calls=[
                    ToolCall(name="search", arguments='{"q": "x", "n": 1}', tool_call_id="c1"),
                    ToolCall(name="save", arguments="{}", tool_call_id="c2"),
                ]
            ),
            ToolReturnMessage(
                tool_returns=[
                    ToolReturn(tool_call_id="c2", tool_return="saved"),
                    ToolReturn(tool_call_id="c1", tool_return=[{"type": "text", "text": "found x"}], status="error"),
                ]
            ),
        ],
        [
            ApprovalRequestMessage(tool_call=ToolCall(name="delete", arguments='{"all": tru', tool_call_id="c3")),
            ToolCallMessage(tool_call=ToolCall(name="delete", arguments='{"all": tru', tool_call_id="c3")),
            ToolReturnMessage(tool_call_id="c3", tool_return={"gone": 2}),
            ReasoningMessage(reasoning="then deleted"),
            AssistantMessage(content="done"),
        ],
    ]
)


@pytest.mark.parametrize(
    "extractor, submission",
    [
        (extractors.last_assistant(), "three 3"),
        (extractors.first_assistant(), "one"),
        (extractors.all_assistant(), "one\ntwo\nthree 3"),
        (extractors.all_assistant(separator="|"), "one|two|three 3"),
        (extractors.last_turn(), "two\nthree 3"),
        (extractors.pattern(r"t(w)o"), "two"),
        (extractors.pattern(r"t(w|h)", group=1), "h"),
        (extractors.pattern(r"(?P<digit>\d)", group="digit"), "3"),
        (extractors.pattern("nothing"), ""),
        (extractors.pattern(r"\w+", search_all=True), "three 3"),
        (extractors.pattern(r"(t)(h)", search_all=True, group=1), "h"),
        (extractors.pattern(r"t(h)", search_all=True), "h"),
        (extractors.after_marker("t"), "hree 3"),
        (extractors.after_marker("tw"), "o"),
        (extractors.after_marker("tw", include_marker=True), "two"),
        (extractors.after_marker("nowhere"), ""),
    ],
)
def test_what_the_agent_said(extractor: Extractor, submission: str) -> None:
    assert text(extractor, THREE) == submission


@pytest.mark.parametrize(
    "content, submission",
    [
        (None, ""),
        ("", ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "refusal", "refusal": "no"}], ""),
        ("ok \ud83d\x00", "ok \ud83d\x00"),
    ],
)
@pytest.mark.parametrize(
    "name", ["last_assistant", "first_assistant", "all_assistant", "last_turn"], ids=lambda name: f"fault-100-{name}"
)
def test_content_that_is_no_string(name: str, content: Any, submission: str) -> None:
    assert text(make_extractor(name), said([content])) == submission


@pytest.mark.parametrize("name", ["last_assistant", "tool_calls", "memory_block", "memory_diff", "reasoning"])
@pytest.mark.parametrize("trajectory", [[], [[]], [[], []]])
def test_a_trajectory_without_any_message_is_an_error(name: str, trajectory: list[list[Any]]) -> None:
    config = {"block_label": "x"} if name == "memory_block" else {}
    with pytest.raises(ExtractionError, match="no message at all"):
        took(make_extractor(name, config), Rollout(trajectory=trajectory, agent_state=AgentState()))


def test_an_agent_that_only_called_tools_submits_nothing() -> None:
    silent = Rollout(trajectory=[[ToolCallMessage(tool_call=ToolCall(name="f"))]])
    assert [text(make_extractor(name), silent) for name in ("last_assistant", "all_assistant")] == ["", ""]


def test_tool_calls_keep_parallel_ones_and_count_an_approved_call_once() -> None:
    assert json.loads(text(extractors.tool_calls(), CALLS)) == [
        {"name": "search", "arguments": {"q": "x", "n": 1}, "call_id": "c1", "turn": 0},
        {"name": "save", "arguments": {}, "call_id": "c2", "turn": 0},
        {"name": "delete", "arguments": '{"all": tru', "call_id": "c3", "turn": 1},
    ]
    assert [call["name"] for call in json.loads(text(extractors.tool_calls("save"), CALLS))] == ["save"]
    assert text(extractors.tool_calls("other"), CALLS) == "[]"


def test_tool_returns_are_named_after_their_calls() -> None:
    assert json.loads(text(extractors.tool_returns(), CALLS)) == [
        {"name": "save", "content": "saved", "status": "success", "call_id": "c2", "turn": 0},
        {"name": "search", "content": "found x", "status": "error", "call_id": "c1", "turn": 0},
        {"name": "delete", "content": '{"gone":2}', "status": "success", "call_id": "c3", "turn": 1},
    ]


@pytest.mark.parametrize(
    "arguments, value",
    [
        ('{"a": 1', '{"a": 1'),
        ('{"a":1}"', '{"a":1}"'),
        ("", ""),
        ("null", None),
        ("[1]", [1]),
        ("{}", {}),
        ("NaN", "NaN"),
        ("[" * 100_000, "[" * 100_000),
        ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
    ],
    ids=lambda value: f"fault-92-{str(value)[:8]}",
)
def test_tool_arguments_that_are_no_object(arguments: str, value: Any) -> None:
    rollout = Rollout(trajectory=[[ToolCallMessage(tool_call=ToolCall(name="f", arguments=arguments))]])
    (call,) = json.loads(text(extractors.tool_calls(), rollout))
    assert call["arguments"] == value
    assert text(extractors.tool_arguments("f"), rollout) == arguments


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(ToolCallMessage(tool_calls=[ToolCall(name="f", arguments="{}")]), id="fault-95-one-of-several"),
        pytest.param(ToolCallMessage(tool_call=ToolCall(name="f")), id="fault-95-single"),
        pytest.param(ApprovalRequestMessage(tool_call=ToolCall(name="f")), id="fault-95-waiting-for-approval"),
    ],
)
def test_a_call_without_arguments_is_a_call(message: Any) -> None:
    rollout = Rollout(trajectory=[[message]])
    assert json.loads(text(extractors.tool_calls(), rollout)) == [
        {"name": "f", "arguments": {}, "call_id": "", "turn": 0}
    ]


@pytest.mark.parametrize(
    "extractor, submission",
    [
        (extractors.tool_arguments("search"), '{"q": "x", "n": 1}'),
        (extractors.tool_arguments("save"), "{}"),
        (extractors.tool_arguments("other"), "{}"),
        (extractors.tool_output("search"), "found x"),
        (extractors.tool_output("save"), "saved"),
        (extractors.tool_output("delete"), '{"gone":2}'),
        (extractors.tool_output("other"), ""),
        (extractors.reasoning(), "first look\nthen deleted"),
        (extractors.reasoning(separator=" "), "first look then deleted"),
    ],
)
def test_one_tool_and_reasoning(extractor: Extractor, submission: str) -> None:
    assert text(extractor, CALLS) == submission


@pytest.mark.parametrize(
    "content, config, submission",
    [
        ('{"a": "x"}', {"field": "a"}, "x"),
        ('{"a": true}', {"field": "a"}, "true"),
        ('{"a": null}', {"field": "a"}, "null"),
        ('{"a": {"b": [1, 2.0]}}', {"field": "a"}, '{"b":[1,2.0]}'),
        ('{"a": {"b": [1, 2]}}', {"path": "$.a.b[0]"}, "1"),
        ('{"a": {"b": [1, 2]}}', {"path": "$.a.b[*]"}, "[1,2]"),
        ('Here it is:\n```json\n{"a": "x"}\n```\nBye {}', {"field": "a"}, "x"),
        ("```\nno\n```\n```\n[7]\n```", {"path": "$[0]"}, "7"),
    ],
)
def test_json(content: str, config: dict[str, Any], submission: str) -> None:
    assert took(make_extractor("json", config), said([content])) == Extraction(submission)


@pytest.mark.parametrize(
    "content, config, reason",
    [
        ("no JSON", {"field": "a"}, "the last message: it is not JSON"),
        ("", {"field": "a"}, "the last message: it is not JSON"),
        ('{"b": 1}', {"field": "a"}, "no field `a`"),
        ("[1]", {"field": "a"}, "no field `a`"),
        ('{"b": 1}', {"path": "$.a"}, "nothing at $.a"),
        ("[" * 100_000, {"field": "a"}, "nested too deeply"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_that_is_not_there_is_an_empty_submission_with_a_reason(
    content: str, config: dict[str, Any], reason: str
) -> None:
    found = took(make_extractor("json", config), said([content]))
    assert found.submission == "" and found.metadata["missing"] is True and reason in found.metadata["reason"]


class TestMemory:
    STATES = [
        AgentState.of({"fruit": "", "old": "x"}),
        AgentState.of({"fruit": "bananas\nyellow", "old": "x"}),
        AgentState.of({"fruit": "apples\nyellow", "new": "n"}),
    ]
    ROLLOUT = said(["ok"], ["noted"]).model_copy(
        update={
            "agent_state": STATES[-1],
            "snapshots": [Snapshot(turn=turn - 1, state=state) for turn, state in enumerate(STATES)],
        }
    )

    @pytest.mark.parametrize(
        "label, turn, submission, missing",
        [
            ("fruit", None, "apples\nyellow", False),
            ("fruit", 0, "bananas\nyellow", False),
            ("fruit", -1, "", False),
            ("new", 0, "", True),
            ("other", None, "", True),
        ],
    )
    def test_a_missing_block_and_an_empty_one_differ(
        self, label: str, turn: int | None, submission: str, missing: bool
    ) -> None:
        found = took(extractors.memory_block(label, turn=turn), self.ROLLOUT)
        assert (found.submission, found.metadata["missing"]) == (submission, missing)

    def test_what_changed(self) -> None:
        assert text(extractors.memory_diff(), self.ROLLOUT) == (
            "fruit changed:\n+ apples\n+ yellow\nold removed:\n- x\nnew added:\n+ n"
        )
        assert text(extractors.memory_diff("fruit", turn=1), self.ROLLOUT) == "fruit changed:\n- bananas\n+ apples"
        assert text(extractors.memory_diff("old", turn=0), self.ROLLOUT) == ""
        assert json.loads(text(extractors.memory_diff("new", format="json"), self.ROLLOUT)) == [
            {"label": "new", "kind": "added", "after": "n"}
        ]

    def test_a_view_of_one_turn_uses_that_turns_state(self) -> None:
        assert text(extractors.memory_block("fruit"), self.ROLLOUT.only_turn(0)) == "bananas\nyellow"

    @pytest.mark.parametrize(
        "extractor, update",
        [
            (extractors.memory_block("fruit"), {"agent_state": None}),
            (extractors.memory_block("fruit", turn=7), {}),
            (extractors.memory_diff(), {"agent_state": None}),
            (extractors.memory_diff(), {"snapshots": None}),
        ],
    )
    def test_a_state_that_could_not_be_had_is_an_error(self, extractor: Extractor, update: dict[str, Any]) -> None:
        with pytest.raises(ExtractionError, match="state"):
            took(extractor, self.ROLLOUT.model_copy(update=update))


@pytest.mark.parametrize(
    "extractor, needs",
    [
        (extractors.last_assistant(), Needs.NOTHING),
        (extractors.memory_block("a"), Needs.STATE),
        (extractors.memory_block("a", turn=0), Needs.EVERY_TURN),
        (extractors.memory_diff(), Needs.ENDS),
        (extractors.memory_diff(turn=0), Needs.EVERY_TURN),
        (make_extractor(lambda trajectory, config: ""), Needs.NOTHING),
        (make_extractor(lambda trajectory, config: "", {"turn": 1}), Needs.NOTHING),
        (make_extractor(lambda trajectory, config, agent_state: ""), Needs.STATE),
        (make_extractor(lambda trajectory, config, agent_state: "", {"turn": 1}), Needs.EVERY_TURN),
    ],
)
def test_what_is_needed_of_the_state(extractor: Extractor, needs: Needs) -> None:
    assert extractor.needs is needs


@pytest.mark.parametrize(
    "name, config, message",
    [
        ("last_asistant", {}, "did you mean `last_assistant`?"),
        ("last_assistant", {"x": 1}, "there is no setting `x`, it has none"),
        ("all_assistant", {"seperator": ""}, "did you mean `separator`?"),
        ("pattern", {}, "`pattern` is missing (a regular expression)"),
        ("pattern", {"pattern": "("}, "is no regular expression: missing ) at position 1"),
        ("pattern", {"pattern": "a", "group": 1}, "has no group 1"),
        ("pattern", {"pattern": "a", "group": -1}, "has no group -1"),
        ("pattern", {"pattern": "a", "search_all": "no"}, "`search_all` is 'no'"),
        ("after_marker", {"marker": ""}, "`marker` is ''"),
        ("json", {}, "write exactly one of `field` and `path`"),
        ("json", {"field": "a", "path": "$"}, "write exactly one of `field` and `path`"),
        ("json", {"path": "$.["}, "is no JSONPath"),
        ("tool_output", {}, "`tool_name` is missing"),
        ("memory_block", {"label": "human"}, "`block_label`"),
        ("memory_block", {"block_label": "human", "turn": -2}, "`turn` is -2"),
    ],
)
def test_wrong_settings_say_what_to_write(name: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_extractor(name, config)
    assert message in str(caught.value)


def test_a_pattern_that_cannot_finish_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stateval.extractors.assistant.TIMEOUT", 0.05)
    with pytest.raises(ExtractionError, match="took longer"):
        took(extractors.pattern(r"(?:(?:a|aa)+)+$(?<!x)b"), said(["a" * 60 + "!"]))


class TestCustom:
    @pytest.mark.parametrize("order", ["agent_state, context", "context, agent_state"])
    def test_state_and_context_are_handed_over_by_name(self, order: str) -> None:
        names: dict[str, Any] = {}
        exec(f"def f(trajectory, config, {order}):\n    return context['k'] + agent_state.block('a').value", names)
        rollout = said(["x"]).model_copy(update={"agent_state": AgentState.of({"a": "A"}), "context": {"k": "K"}})
        assert text(make_extractor(names["f"]), rollout) == "KA"

    def test_async_ones_are_awaited_and_loaded_ones_keep_their_name(self) -> None:
        async def shout(trajectory: Any, config: Any) -> str:
            return builtin.last_assistant(trajectory, {}).upper() + config["mark"]

        loaded = LoadedFunction(shout, "x.py:shout", Mark.EXTRACTOR, {"sha256": "1"})
        made = make_extractor(loaded, {"mark": "!"})
        assert (text(made, THREE), made.name) == ("THREE 3!", "x.py:shout")
        assert made.fingerprint == {"extractor": {"sha256": "1"}, "config": {"mark": "!"}}

    @pytest.mark.parametrize(
        "returned",
        [None, {"a": 1}, ["a"], b"bytes", 3, AgentState()],
        ids=lambda value: f"fault-31-{type(value).__name__}",
    )
    def test_only_text_may_be_returned(self, returned: Any) -> None:
        with pytest.raises(ExtractionError, match=f"returned a {type(returned).__name__}, not text"):
            took(make_extractor(lambda trajectory, config: returned), THREE)

    def test_an_exception_keeps_its_type(self) -> None:
        with pytest.raises(ExtractionError, match=r"raised ZeroDivisionError.*test_extractors\.py") as caught:
            took(make_extractor(lambda trajectory, config: str(1 / 0)), THREE)
        assert caught.value.cause_type == "ZeroDivisionError"

    def test_a_missing_state_is_an_error_unless_it_is_optional(self) -> None:
        def optional(trajectory: Any, config: Any, agent_state: Any = None) -> str:
            return str(agent_state)

        assert text(make_extractor(optional), THREE) == "None"
        with pytest.raises(ExtractionError, match="state could not be had"):
            took(make_extractor(lambda trajectory, config, agent_state: ""), THREE)

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["fault-46-sync", "fault-46-async"])
    def test_one_sample_cannot_change_the_settings_of_the_next(self, asynchronous: bool) -> None:
        def counting(trajectory: Any, config: Any) -> str:
            config["seen"].append(1)
            return str(len(config["seen"]))

        async def awaited(trajectory: Any, config: Any) -> str:
            return counting(trajectory, config)

        made = make_extractor(awaited if asynchronous else counting, {"seen": []})
        assert [text(made, THREE), text(made, THREE)] == ["1", "1"]

    def test_a_plain_built_in_function_is_the_built_in(self) -> None:
        assert make_extractor(builtin.last_turn, {"separator": " "}).name == "last_turn"

    @pytest.mark.parametrize("function", [lambda: "", lambda a: "", lambda a, b, c: ""])
    def test_other_signatures_are_refused(self, function: Any) -> None:
        with pytest.raises(UsageError, match=r"must take \(trajectory, config\)"):
            make_extractor(function)


def test_every_built_in_is_described_and_has_a_maker() -> None:
    for name, described in builtin.BUILTIN.items():
        assert described.description.endswith("."), name
        assert callable(getattr(extractors, name)), name
        assert all(option.description for option in described.option_descriptions), name


def test_fingerprints_tell_settings_apart() -> None:
    a, b, c = (extractors.memory_block(label) for label in "aab")
    assert a.fingerprint == b.fingerprint != c.fingerprint


@given(st.lists(st.lists(st.text(), max_size=3), min_size=1, max_size=3).filter(any))
def test_texts_are_kept_exactly(turns: list[list[str]]) -> None:
    rollout = said(*turns)
    every = [content for turn in turns for content in turn]
    assert builtin.last_assistant(rollout.trajectory, {}) == every[-1]
    assert builtin.first_assistant(rollout.trajectory, {}) == every[0]
    assert builtin.all_assistant(rollout.trajectory, {"separator": "\x00"}) == "\x00".join(every)


@extractor
def marked(trajectory: Any, config: Any) -> str:
    return "marked"


def test_a_marked_function_of_this_process_works() -> None:
    assert text(make_extractor(marked), THREE) == "marked"


def test_what_a_users_extractor_changes_is_changed_for_itself_alone() -> None:
    def vandal(trajectory: Any, config: Any, agent_state: Any, context: Any) -> str:
        trajectory[0][0].content.clear()
        trajectory[0].clear()
        trajectory.clear()
        agent_state.blocks.clear()
        context["in"].append(vandal)
        return "said"

    rollout = said([["parts"]]).model_copy(update={"agent_state": AgentState.of({"a": "A"}), "context": {"in": []}})
    before = rollout.model_copy(deep=True)
    assert text(make_extractor(vandal), rollout) == "said"
    assert rollout == before


@pytest.mark.parametrize("metadata", [{"odd": {1: Rollout}}, {"deep": None}])
def test_the_metadata_of_an_extraction_becomes_data(metadata: dict[str, Any]) -> None:
    metadata["deep"] = [metadata] if "deep" in metadata else None
    maker = make_extractor(lambda trajectory, config: Extraction("x", metadata))
    if metadata["deep"]:
        with pytest.raises(ExtractionError, match="nested too deeply"):
            took(maker, THREE)
    else:
        assert took(maker, THREE).metadata == {"odd": {"1": str(Rollout)}, "deep": None}


@pytest.mark.parametrize("extraction", [Extraction(5), Extraction("x", [])])  # type: ignore[arg-type]
def test_an_extraction_of_something_else_is_an_error(extraction: Extraction) -> None:
    with pytest.raises(ExtractionError, match="returned"):
        took(make_extractor(lambda trajectory, config: extraction), THREE)
