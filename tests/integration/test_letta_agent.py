"""Target `letta_agent` against real Letta servers of both generations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stateval.errors import ExitStatus
from tests.integration.letta_servers import RunningServer
from tests.support.evaltester import EvalTester

CONTAINS = {"kind": "tool", "function": "contains"}
IN_MEMORY = {**CONTAINS, "extractor": "memory_block", "extractor_config": {"block_label": "human"}}


def new_agent(server: RunningServer, **fields: Any) -> str:
    """The id of an agent that knows Ada."""
    blocks = [{"label": "human", "value": "Called Ada."}, {"label": "persona", "value": "Kind."}]
    given = {"name": "tester", "agent_type": server.agent_type, "memory_blocks": blocks, **server.model_settings}
    return server.client.agents.create(**{**given, **fields}).id


def agent_file(server: RunningServer, directory: Path) -> str:
    """A file with that agent, in this directory."""
    client = server.client
    agent_id = new_agent(server)
    exported = client.agents.export_file(agent_id)
    for block in client.agents.blocks.list(agent_id).items:
        client.blocks.delete(str(block.id))
    client.agents.delete(agent_id)
    (directory / "ada.af").write_text(exported if isinstance(exported, str) else json.dumps(exported), "utf-8")
    return "ada.af"


def left_on(server: RunningServer) -> tuple[set[str], set[str]]:
    """The ids of the agents and blocks on the server."""
    client = server.client
    agents = {agent.id for agent in client.agents.list(limit=500).items}
    return agents, {str(block.id) for block in client.blocks.list(limit=500).items}


def write(tester: EvalTester, server: RunningServer, rows: list[dict[str, Any]], **fields: Any) -> str:
    target: Mapping[str, Any] = {"kind": "letta_agent", "base_url": server.base_url, **fields.pop("target", {})}
    if not target.keys() & {"agent_file", "agent_id", "agent_script"}:
        target = {**target, "agent_file": agent_file(server, tester.path)}
    fields.setdefault("graders", {"said": CONTAINS})
    return tester.write_suite(rows, target=dict(target), **fields)


def test_clones_remember_and_leave_nothing_behind(evaltester: EvalTester, server: RunningServer) -> None:
    rows = [
        {"input": "remember likes pears", "ground_truth": "likes pears"},
        {"input": ["remember likes pears", "correct pears -> plums"], "ground_truth": "likes plums"},
        {"input": "Hi", "ground_truth": "Called Ada."},
    ]
    suite = write(evaltester, server, rows, graders={"memory": IN_MEMORY}, cleanup=True)
    before = left_on(server)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    assert server.base_url in finished.output
    results = list(evaltester.results().values())
    assert {result.grades["memory"].score for result in results} == {1.0}
    assert len({result.agent_id for result in results}) == 3
    calls = [
        call["name"] for turn in evaltester.results()["1"].trajectory for message in turn for call in _calls(message)
    ]
    assert [name for name in calls if name != "send_message"] == ["memory_insert", "memory_replace"]
    assert all(result.usage and result.usage.prompt_tokens > 0 for result in results)
    assert left_on(server) == before


def _calls(message: Any) -> list[dict[str, Any]]:
    return [call.model_dump() for call in getattr(message, "calls", ())]


def test_a_clone_sees_its_memory_and_only_that_in_a_new_conversation(
    evaltester: EvalTester, server: RunningServer
) -> None:
    turns = ["recall", "remember likes pears", {"new_conversation": True}, "recall"]
    rows = [{"input": turns, "ground_truth": ["Called Ada.", "Noted.", "likes pears"]}]
    suite = write(evaltester, server, rows, cleanup=True)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    (result,) = evaltester.results().values()
    assert result.grades["said"].score == 1.0
    assert result.conversations == [2]
    last = server.model.requests[-1]
    assert not any("remember likes pears" in str(message.get("content")) for message in last.messages[1:])


def test_snapshots_show_the_memory_turn_by_turn(evaltester: EvalTester, server: RunningServer) -> None:
    rows = [{"input": ["Hi", "remember likes pears"], "ground_truth": "Noted."}]
    suite = write(evaltester, server, rows, snapshots="every_turn", cleanup=True)
    assert evaltester.run(suite).status == ExitStatus.PASSED
    (result,) = evaltester.results().values()
    values = [snapshot.state.block("human").value for snapshot in result.snapshots]
    assert ["pears" in value for value in values] == [False, False, True]


def test_agents_that_stay_are_counted_and_named(evaltester: EvalTester, server: RunningServer) -> None:
    suite = write(evaltester, server, [{"input": "Hi", "ground_truth": "Hello."}] * 2)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    assert "2 agents of this run are left" in " ".join(finished.output.split())
    ids = {str(result.agent_id) for result in evaltester.results().values()}
    assert ids <= left_on(server)[0]


def test_a_live_agent_is_talked_to_in_order_and_stays(evaltester: EvalTester, server: RunningServer) -> None:
    agent_id = new_agent(server)
    rows = [{"input": f"remember item{number}", "ground_truth": f"item{number}"} for number in range(4)]
    suite = write(evaltester, server, rows, target={"agent_id": agent_id}, graders={"memory": IN_MEMORY}, cleanup=True)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    results = evaltester.results()
    seen = [results[str(n)].agent_state.block("human").value.count("item") for n in range(4)]
    assert seen == [1, 2, 3, 4]
    assert agent_id in left_on(server)[0]
    assert {result.agent_id for result in results.values()} == {agent_id}
    (model,) = evaltester.summary().models
    assert model.metrics["memory"].interval is None


FACTORY = """
from stateval import agent_factory, suite_setup

@agent_factory
async def make(client, sample):
    fields = {fields}
    blocks = [{{"label": "human", "value": sample.agent_args["knows"]}}]
    agent = await client.agents.create(name="made", memory_blocks=blocks, **fields)
    return agent.id, {{"wanted": sample.agent_args["knows"], "env": {{"TOKEN": "very-secret-token"}}}}

@suite_setup
async def set_up(client):
    assert (await client.health()).status == "ok"

@suite_setup
async def set_up_each(client, model_handle):
    print("set up for", model_handle, (await client.health()).version)
"""


SHARING_FACTORY = """
from stateval import agent_factory

@agent_factory
async def make(client, sample):
    agent = await client.agents.create(name="made", block_ids=["{block}"], memory_blocks=[], **{fields})
    return agent.id
"""


def test_a_block_that_another_agent_has_too_outlives_the_clones(evaltester: EvalTester, server: RunningServer) -> None:
    client = server.client
    shared = client.blocks.create(label="human", value="Called Ada.")
    keeper = new_agent(server, memory_blocks=[], block_ids=[str(shared.id)])
    fields = {"agent_type": server.agent_type, **server.model_settings}
    evaltester.write("agents.py", SHARING_FACTORY.format(block=shared.id, fields=repr(fields)))
    rows = [{"input": "recall", "ground_truth": "Called Ada."}] * 2
    suite = write(evaltester, server, rows, target={"agent_script": "agents.py:make"}, cleanup=True)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    assert all(result.grades["said"].score == 1.0 for result in evaltester.results().values())
    agents, blocks = left_on(server)
    assert keeper in agents
    assert str(shared.id) in blocks
    assert agents.isdisjoint(str(result.agent_id) for result in evaltester.results().values())


@pytest.mark.parametrize("setup", ["set_up", "set_up_each"])
def test_a_factory_makes_the_agent_of_each_sample(evaltester: EvalTester, server: RunningServer, setup: str) -> None:
    fields = {"agent_type": server.agent_type, **server.model_settings}
    evaltester.write("agents.py", FACTORY.format(fields=repr(fields)))
    rows = [{"input": "recall", "agent_args": {"knows": word}, "ground_truth": word} for word in ("tea", "milk")]
    target = {"agent_script": "agents.py:make", "model_handles": [server.handle("other")]}
    suite = write(evaltester, server, rows, target=target, setup_script=f"agents.py:{setup}", cleanup=True)
    before = left_on(server)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    results = evaltester.results(server.handle("other")).values()
    assert {result.context["wanted"] for result in results} == {"tea", "milk"}
    written = [path.read_text("utf-8") for path in evaltester.results_path.rglob("*") if path.is_file()]
    assert "very-secret-token" not in finished.output + "".join(written)
    assert {request.body["model"] for request in server.model.requests} == {"other"}
    assert left_on(server) == before
