"""The target `local_agent`: a scripted model over real HTTP, with tool calls and without."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st

from stateval.errors import ModelUnavailable, TargetError, TargetTimeout, UsageError
from stateval.records.message import AssistantMessage, ReasoningMessage, ToolCallMessage, ToolReturnMessage
from stateval.records.protocols import RolloutRequest, Snapshots, Target
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.targets.agent_definition import AgentDefinition
from stateval.targets.agent_loop import MOST_STEPS
from stateval.targets.local_agent import LocalAgentTarget
from stateval.targets.memory_tools import MEMORY_TOOLS, Memory, ToolFailure
from tests.support.model_server import ModelServer, Reply, Request, refused

AGENT = {
    "system": "You are kind.",
    "blocks": {
        "human": {"value": "likes tea", "limit": 60, "description": "about the user"},
        "rules": {"value": "never lie", "read_only": True},
    },
}
TURNS = ["I like bananas.", "Sorry, apples.", {"new_conversation": True}, "What do I like?"]


def run(server: ModelServer, turns, *, agent=AGENT, request: RolloutRequest | None = None, **settings) -> Rollout:
    async def lead() -> Rollout:
        source = {} if "agent_file" in settings else {"agent": agent}
        target = LocalAgentTarget(model="scripted", base_url=server.base_url, **source, **settings)
        try:
            return await target.run(Sample(id="s", input=turns), request or RolloutRequest(state=True))
        finally:
            await target.close()

    return anyio.run(lead)


def storing(request: Request) -> Reply:
    """Stores whatever the user says, then repeats it; asked a question it says what its memory holds."""
    if request.messages[-1]["role"] == "tool":
        return Reply("noted")
    if request.last.endswith("?"):
        return Reply(request.system.partition('limit="60">')[2].partition("<")[0].strip())
    return Reply(tool_calls=[("memory_rethink", {"label": "human", "new_memory": request.last})])


def value(rollout: Rollout, label: str = "human") -> str:
    return rollout.agent_state.block(label).value


def test_it_is_a_target():
    target = LocalAgentTarget(model="m", agent=AGENT, base_url="http://127.0.0.1:1/v1")
    assert isinstance(target, Target)
    assert (target.kind, target.model_handle) == ("local_agent", "m")


def test_memory_survives_a_new_conversation_and_the_history_does_not():
    with ModelServer(storing) as server:
        rollout = run(server, TURNS, request=RolloutRequest(state=True, snapshots=Snapshots.EVERY_TURN))
    kinds = [[type(message) for message in turn] for turn in rollout.trajectory]
    assert kinds == [[ToolCallMessage, ToolReturnMessage, AssistantMessage]] * 2 + [[AssistantMessage]]
    assert rollout.trajectory[2][0].content == "Sorry, apples."
    assert rollout.conversations == [2]
    assert [s.state.block("human").value for s in rollout.snapshots] == [
        "likes tea",
        "I like bananas.",
        "Sorry, apples.",
        "Sorry, apples.",
    ]
    assert [message["role"] for message in server.requests[-1].messages] == ["system", "user"]
    assert "I like bananas." in str(server.requests[2].messages)
    assert rollout.agent_id.startswith("agent-local-")
    assert rollout.model_handle == "scripted"


def test_the_model_sees_its_blocks_as_they_are_now_and_the_tools():
    with ModelServer(storing) as server:
        run(server, "I like figs.")
    first, second = server.requests
    assert first.system.startswith("You are kind.")
    assert '<block label="human" description="about the user" limit="60">\nlikes tea' in first.system
    assert "I like figs." in second.system
    assert first.tools == list(MEMORY_TOOLS)
    assert (first.body["temperature"], first.body["seed"]) == (0.0, 1)


def test_ends_are_kept_and_state_only_where_it_is_asked_for():
    with ModelServer(storing) as server:
        ends = run(server, TURNS, request=RolloutRequest(snapshots=Snapshots.ENDS))
        nothing = run(server, TURNS, request=RolloutRequest())
    assert [snapshot.turn for snapshot in ends.snapshots] == [-1, 2]
    assert (nothing.snapshots, nothing.agent_state) == (None, None)


def test_usage_per_turn_and_in_all():
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    with ModelServer(lambda request: Reply("ok", usage=usage)) as server:
        rollout = run(server, ["a", "b"])
    assert [(u["step_count"], u["total_tokens"]) for u in rollout.agent_usage] == [(1, 12), (1, 12)]
    assert (rollout.usage.prompt_tokens, rollout.usage.completion_tokens, rollout.usage.cost) == (20, 4, None)


def test_two_samples_know_nothing_of_each_other():
    async def lead():
        target = LocalAgentTarget(model="scripted", agent=AGENT, base_url=server.base_url)
        rollouts = {}

        async def one(name):
            rollouts[name] = await target.run(Sample(id=name, input=[name, "well?"]), RolloutRequest(state=True))

        async with anyio.create_task_group() as group:
            for name in "abcdef":
                group.start_soon(one, name)
        await target.close()
        return rollouts

    with ModelServer(storing) as server:
        rollouts = anyio.run(lead)
    assert {name: value(rollout) for name, rollout in rollouts.items()} == {name: name for name in "abcdef"}


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("memory_insert", {"label": "rules", "new_string": "x"}, "read only"),
        ("memory_insert", {"label": "humans", "new_string": "x"}, "available sections: human, rules"),
        ("memory_rethink", {"label": "human", "new_memory": "x" * 61}, "at most 60 characters; 61"),
        ("memory_replace", {"label": "human", "old_string": "coffee", "new_string": "x"}, "0 times"),
        ("core_memory_replace", {"label": "human", "old_content": "coffee", "new_content": "x"}, "not in block"),
        ("memory_insert", {"label": "human", "new_string": "x", "insert_line": 9}, "has 1 lines"),
        ("memory_insert", {"label": "human"}, "needs the argument `new_string`"),
        ("memory_insert", {"label": "human", "new_string": "x", "where": "y"}, "no argument `where`"),
        ("memory_insert", {"label": "human", "new_string": 7}, "must be a string"),
        ("memory_forget", {}, "there is no tool `memory_forget`"),
        ("memory_insert", '{"label": "human"', "not valid JSON"),
        ("memory_insert", '{"label": "human", "new_string": "x"}"', "not valid JSON"),
        ("memory_insert", "[1]", "must be a JSON object"),
        ("memory_insert", "", "needs the argument"),
        ("memory_insert", "null", "needs the argument"),
    ],
    ids=[*"abcdefghij", *(f"{text}-fault-92" for text in ("open", "quote", "list", "empty", "null"))],
)
def test_a_failing_tool_says_why_to_the_model_and_in_the_record(name, arguments, told):
    with ModelServer([Reply(tool_calls=[(name, arguments)]), "sorry"]) as server:
        rollout = run(server, "do it")
    call, returned, answer = rollout.trajectory[0]
    assert returned.status == "error"
    assert told in returned.tool_return
    assert told in server.requests[1].last
    assert call.calls[0].arguments == (arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert (value(rollout), answer.content) == ("likes tea", "sorry")


@pytest.mark.parametrize(
    ("name", "arguments", "after"),
    [
        ("memory_insert", {"label": "human", "new_string": "x"}, "likes tea\nx"),
        ("memory_insert", {"label": "human", "new_str": "x", "insert_line": 0}, "x\nlikes tea"),
        ("memory_replace", {"label": "human", "old_string": "tea", "new_string": "milk"}, "likes milk"),
        ("memory_replace", {"label": "human", "old_str": "tea", "new_str": "milk"}, "likes milk"),
        ("memory_rethink", {"label": "human", "new_memory": "all new"}, "all new"),
        ("core_memory_append", {"label": "human", "content": "x"}, "likes tea\nx"),
        ("core_memory_replace", {"label": "human", "old_content": "likes ", "new_content": ""}, "tea"),
    ],
)
def test_the_tools_that_users_know(name, arguments, after):
    with ModelServer([Reply(tool_calls=[(name, arguments)]), "ok"]) as server:
        rollout = run(server, "do it")
    assert rollout.trajectory[0][1].status == "success"
    assert value(rollout) == after


def test_parallel_calls_text_beside_them_and_reasoning():
    calls = [("core_memory_append", {"label": "human", "content": text}) for text in ("a", "b")]
    with ModelServer([Reply("one moment", tool_calls=calls, reasoning="hm"), "done"]) as server:
        turn = run(server, "do it").trajectory[0]
    assert [type(message) for message in turn] == [
        ReasoningMessage,
        AssistantMessage,
        ToolCallMessage,
        ToolReturnMessage,
        ToolReturnMessage,
        AssistantMessage,
    ]
    assert [call.tool_call_id for call in turn[2].calls] == [turn[3].tool_call_id, turn[4].tool_call_id]
    assert [m["role"] for m in server.requests[1].messages] == ["system", "user", "assistant", "tool", "tool"]


def test_a_model_that_only_calls_tools_has_to_answer_in_the_end():
    def answer(request: Request) -> Reply:
        if request.body["tool_choice"] == "none":
            return Reply("enough")
        return Reply(tool_calls=[("core_memory_append", {"label": "human", "content": "x"})])

    with ModelServer(answer) as server:
        rollout = run(server, "go")
    assert len(server.requests) == MOST_STEPS + 1
    assert rollout.trajectory[0][-1].content == "enough"


def step(tool: str, text: str) -> str:
    return json.dumps({"tool": tool, "label": "human", "value": text})


def without_tools(request: Request) -> Reply | str:
    if request.tools:
        return refused(400, "this model does not support tools")
    if request.schema is not None:
        text = request.last.rpartition("User says: ")[2]
        return step("none" if text.endswith("?") else "memory_rethink", text)
    return request.last


def test_an_endpoint_without_tools_takes_one_step_under_a_schema_and_then_answers():
    with ModelServer(without_tools) as server:
        rollout = run(server, TURNS)
    kinds = [[type(message) for message in turn] for turn in rollout.trajectory]
    assert kinds == [[ToolCallMessage, ToolReturnMessage, AssistantMessage]] * 2 + [[AssistantMessage]]
    assert "Sorry, apples." in rollout.trajectory[2][0].content
    assert len(server.requests) == 7
    schemas = [request.schema for request in server.requests if request.schema]
    assert schemas[0]["properties"]["label"] == {"enum": ["human"]}


def test_fixed_messages_come_first_so_that_a_prompt_cache_hits():
    with ModelServer(without_tools) as server:
        run(server, ["one", "two"])
    steps = [request.messages for request in server.requests if request.schema]
    assert steps[0][:-1] == steps[1][:-1]
    assert len(steps[0]) == 8


def test_a_wrong_step_is_carried_out_as_it_is():
    def answer(request: Request) -> Reply | str:
        if request.tools:
            return refused(400, "tools are not supported")
        return step("memory_rethink", "nonsense") if request.schema else "ok"

    with ModelServer(answer) as server:
        assert value(run(server, "I like figs.")) == "nonsense"


def test_a_failing_model_is_a_target_error_with_what_was_finished():
    with ModelServer(["fine", refused(400, "no more")]) as server, pytest.raises(TargetError) as failed:
        run(server, ["a", "b"])
    assert failed.value.cause_type == "StatusError"
    assert "no more" in str(failed.value)
    assert len(failed.value.rollout.trajectory) == 1


def test_a_slow_model_runs_out_of_time_and_what_was_finished_is_kept():
    with (
        ModelServer(lambda request: Reply("ok", delay=5 if request.last == "b" else 0)) as server,
        pytest.raises(TargetTimeout, match="1 of 2 turns") as failed,
    ):
        run(server, ["a", "b"], request=RolloutRequest(timeout=2))
    assert len(failed.value.rollout.trajectory) == 1


def test_waits_do_not_count():
    with ModelServer("ok") as server:
        rollout = run(server, ["a", {"wait": 2.2}, "b"], request=RolloutRequest(timeout=2))
    assert len(rollout.trajectory) == 2


def test_nobody_at_the_endpoint_stops_the_run():
    with ModelServer() as server:
        pass
    with stamina.set_testing(True), pytest.raises(ModelUnavailable):
        run(server, "a")


def test_a_reply_that_is_cut_off_says_so():
    with ModelServer(Reply("and then", finish_reason="length")) as server:
        message = run(server, "a").trajectory[0][0]
    assert (message.content, message.to_dict()["finish_reason"]) == ("and then", "length")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "exactly one"),
        ({"agent": AGENT, "agent_file": "x.af"}, "exactly one"),
        ({"agent": {"sytem": "x"}}, "sytem"),
        ({"agent": {"blocks": {"a": {"value": "long", "limit": 2}}}}, "more than its `limit`"),
        ({"agent": AGENT, "generation": {"temprature": 1}}, "temprature"),
        ({"agent": AGENT, "generation": {"temperature": -1}}, "temperature"),
        ({"agent_file": "missing.af"}, "cannot be read"),
    ],
)
def test_wrong_settings(settings, told):
    with pytest.raises(UsageError, match=told):
        LocalAgentTarget(model="m", base_url="http://127.0.0.1:1/v1", **settings)


def test_the_fingerprint_changes_with_all_that_matters():
    base = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "agent": AGENT}
    others = [
        {**base, "model": "n"},
        {**base, "base_url": "http://127.0.0.1:2/v1"},
        {**base, "agent": {**AGENT, "system": "Be rude."}},
        {**base, "generation": {"temperature": 1}},
        {**base, "generation": {"seed": 2}},
    ]
    prints = {json.dumps(LocalAgentTarget(**settings).fingerprint, sort_keys=True) for settings in [base, *others]}
    assert len(prints) == 6
    again = json.dumps(LocalAgentTarget(**base).fingerprint, sort_keys=True)
    assert again in prints


def letta_file(path: Path, **changes) -> Path:
    content = {
        "agents": [
            {
                "id": "agent-0",
                "system": "You are from a file.",
                "block_ids": ["block-0"],
                "tool_ids": ["tool-0"],
                "llm_config": {"model": "gpt", "max_tokens": 77},
            }
        ],
        "blocks": [{"id": "block-0", "label": "human", "value": "tea", "limit": 100, "read_only": False, "extra": 1}],
        "tools": [
            {"id": "tool-0", "name": "memory_insert", "tool_type": "letta_sleeptime_core", "source_code": None},
            {"id": "tool-1", "name": "unused", "tool_type": "custom", "source_code": "def unused(): pass"},
        ],
        **changes,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_letta_agent_file(tmp_path):
    with ModelServer("ok") as server:
        rollout = run(server, "hi", agent_file=letta_file(tmp_path / "a.af"))
    assert value(rollout) == "tea"
    request = server.requests[0]
    assert request.system.startswith("You are from a file.")
    assert request.tools == ["memory_insert"]
    assert request.body["max_tokens"] == 77


def test_our_own_agent_file(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(AGENT), encoding="utf-8-sig")
    with ModelServer("ok") as server:
        assert value(run(server, "hi", agent_file=tmp_path / "a.json")) == "likes tea"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"agents": []}', "0 agents"),
        ('{"agents": [{}]}', "not as Letta writes"),
        ('{"agents": [{"system": "s", "block_ids": ["b-9"]}]}', "b-9"),
        ('{"system": "s", "memory": {}}', "memory"),
    ],
)
def test_a_wrong_agent_file(tmp_path, text, told):
    (tmp_path / "a.af").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=told):
        LocalAgentTarget(model="m", base_url="http://127.0.0.1:1/v1", agent_file=tmp_path / "a.af")


def with_a_tool(path: Path, source: str) -> Path:
    tool = {
        "id": "tool-0",
        "name": "roll",
        "tool_type": "custom",
        "source_code": source,
        "json_schema": {
            "description": "Rolls.",
            "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}},
        },
    }
    return letta_file(path, tools=[tool])


def test_a_tool_with_source_runs_only_where_it_is_allowed(tmp_path):
    file = with_a_tool(tmp_path / "a.af", "def roll(sides):\n    return {'rolled': 12 // sides}")
    with pytest.raises(UsageError, match=r"`roll`.*allow_tools"):
        LocalAgentTarget(model="m", base_url="http://127.0.0.1:1/v1", agent_file=file)
    calls = [Reply(tool_calls=[("roll", {"sides": sides}) for sides in (6, 0)]), "ok"]
    with ModelServer(calls) as server:
        turn = run(server, "roll", agent_file=file, allow_tools=True).trajectory[0]
    assert (turn[1].tool_return, turn[1].status) == ('{"rolled":2}', "success")
    assert (turn[2].status, "ZeroDivisionError" in turn[2].tool_return) == ("error", True)


@pytest.mark.parametrize("source", ["def roll(:", "raise KeyError('x')", "x = 1"])
def test_source_that_defines_no_tool(tmp_path, source):
    with pytest.raises(UsageError, match="roll"):
        LocalAgentTarget(
            model="m",
            base_url="http://127.0.0.1:1/v1",
            agent_file=with_a_tool(tmp_path / "a.af", source),
            allow_tools=True,
        )


texts = st.text(max_size=20)


@given(texts, st.integers(1, 20), st.lists(st.tuples(st.sampled_from(["insert", "rethink", "append"]), texts)))
def test_no_step_breaks_a_limit(start, limit, steps):
    limit = max(limit, len(start))
    memory = Memory(AgentDefinition(blocks={"a": {"value": start, "limit": limit}}))
    for kind, text in steps:
        name, argument = {
            "insert": ("memory_insert", "new_string"),
            "rethink": ("memory_rethink", "new_memory"),
            "append": ("core_memory_append", "content"),
        }[kind]
        before = memory.value("a")
        try:
            MEMORY_TOOLS[name].call(memory, {"label": "a", argument: text})
        except ToolFailure:
            assert memory.value("a") == before
        assert len(memory.value("a")) <= limit


@given(texts, texts, texts)
def test_replace_and_back_gives_the_same_text(before, old, new):
    memory = Memory(AgentDefinition(blocks={"a": before + old}))
    replace = MEMORY_TOOLS["memory_replace"]
    try:
        replace.call(memory, {"label": "a", "old_string": old, "new_string": new})
        replace.call(memory, {"label": "a", "old_str": new, "new_str": old})
    except ToolFailure:
        return
    assert memory.value("a") == before + old
