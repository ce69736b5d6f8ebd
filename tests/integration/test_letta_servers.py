"""What the target and the judge take for granted of Letta servers and `letta-client`, with nothing of ours between.

When another release of either is pinned, these tests tell which of it has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import letta_client
import pytest
from letta_client import Letta

from tests.integration.letta_servers import RunningServer

BLOCKS = [{"label": "human", "value": "Called Ada."}, {"label": "persona", "value": "Kind."}]


@pytest.fixture
def client(server: RunningServer) -> Letta:
    """A client that tries once: a message that is sent again reaches the agent twice."""
    return server.client


@pytest.fixture
def agent_id(client: Letta, server: RunningServer) -> Iterator[str]:
    """An agent that knows Ada; it and its blocks are deleted afterwards."""
    agent_id = create(client, server)
    yield agent_id
    delete(client, agent_id)


def create(client: Letta, server: RunningServer, **fields: Any) -> str:
    given = {"name": "ada", "agent_type": server.agent_type, "memory_blocks": BLOCKS, **server.model_settings, **fields}
    return client.agents.create(**{name: value for name, value in given.items() if value is not None}).id


def delete(client: Letta, agent_id: str) -> None:
    blocks = client.agents.blocks.list(agent_id).items
    client.agents.delete(agent_id)
    for block in blocks:
        client.blocks.delete(str(block.id))


def turn(client: Letta, agent_id: str, text: str, **options: Any) -> list[Any]:
    """The chunks of a turn, without the pings that some releases send."""
    messages: Any = [{"role": "user", "content": text}]
    with pytest.deprecated_call():  # What the client would rather have, `create(streaming=True)`, older servers ignore.
        stream = client.agents.messages.stream(agent_id, messages=messages, stream_tokens=False, **options)
    with stream:
        return [chunk for chunk in stream if chunk.message_type != "ping"]


def said(chunks: list[Any]) -> list[str]:
    return [chunk.content for chunk in chunks if chunk.message_type == "assistant_message"]


def human(client: Letta, agent_id: str) -> str:
    return client.agents.blocks.retrieve("human", agent_id=agent_id).value


def exported(client: Letta, agent_id: str) -> dict[str, Any]:
    """The agent file, which is handed out as text or as what the text says."""
    content: Any = client.agents.export_file(agent_id)
    content = json.loads(content) if isinstance(content, str) else content
    assert isinstance(content, dict)
    return content


def imported(client: Letta, content: dict[str, Any]) -> str:
    file = ("ada.af", json.dumps(content).encode())
    (agent_id,) = client.agents.import_file(file=file, append_copy_suffix=False).agent_ids
    return agent_id


def test_a_turn_is_streamed_message_by_message(client: Letta, server: RunningServer, agent_id: str) -> None:
    chunks = turn(client, agent_id, "remember likes pears")
    kinds = [chunk.message_type for chunk in chunks if chunk.message_type != "reasoning_message"]
    spoken = ["tool_call_message", "tool_return_message", "assistant_message"]
    assert kinds == [*spoken, "stop_reason", "usage_statistics"]
    by_kind = {chunk.message_type: chunk for chunk in chunks}
    message = by_kind["tool_call_message"]
    assert (message.tool_calls is None) == server.is_old
    (call,) = message.tool_calls or [message.tool_call]
    assert call.name == "memory_insert"
    assert json.loads(call.arguments)["new_str" if server.is_old else "new_string"] == "likes pears"
    assert by_kind["tool_return_message"].status == "success"
    assert by_kind["assistant_message"].content == "Noted."
    assert by_kind["stop_reason"].stop_reason == "end_turn"
    assert by_kind["usage_statistics"].step_count == 2
    assert by_kind["usage_statistics"].total_tokens > 0
    run_ids = {chunk.run_id for chunk in chunks if chunk.message_type in spoken}
    assert len(run_ids) == 1
    assert (run_ids == {None}) == server.is_old
    assert human(client, agent_id).split("\n") == ["Called Ada.", "likes pears"]


def test_older_servers_stream_at_an_address_of_its_own_only(
    client: Letta, server: RunningServer, agent_id: str
) -> None:
    messages: Any = [{"role": "user", "content": "Hi"}]
    with client.agents.messages.create(agent_id, messages=messages, streaming=True) as stream:
        chunks = list(stream)
    assert (said(chunks) == []) == server.is_old, chunks


def test_blocks_and_tools_come_when_they_are_asked_for(client: Letta, server: RunningServer, agent_id: str) -> None:
    plain = client.agents.retrieve(agent_id)
    asked = client.agents.retrieve(agent_id, include=["agent.blocks", "agent.tools"])
    assert {block.label for block in asked.memory.blocks} == {"human", "persona"}
    assert "memory_insert" in {tool.name for tool in asked.tools}
    assert bool(plain.memory.blocks) == bool(plain.tools) == server.is_old


def test_only_the_first_page_of_an_agents_blocks_can_be_trusted(
    client: Letta, server: RunningServer, agent_id: str
) -> None:
    first = client.agents.blocks.list(agent_id)
    assert {block.label for block in first.items} == {"human", "persona"}
    second = first.get_next_page()
    assert bool(second.items) == server.is_old, "older servers hand out the same page for ever"


def test_an_agent_file_makes_an_agent_with_blocks_of_its_own(client: Letta, agent_id: str) -> None:
    content = exported(client, agent_id)
    assert {block["label"]: block["value"] for block in content["blocks"]} == {
        "human": "Called Ada.",
        "persona": "Kind.",
    }
    first, second = imported(client, content), imported(client, content)
    assert len({first, second, agent_id}) == 3
    assert client.agents.retrieve(first).name == content["agents"][0]["name"] == "ada"
    turn(client, first, "remember likes pears")
    assert "pears" in human(client, first)
    assert human(client, second) == human(client, agent_id) == "Called Ada."
    delete(client, first)
    delete(client, second)


def test_an_imported_agent_may_not_see_its_memory_until_its_prompt_is_rendered(
    client: Letta, server: RunningServer, agent_id: str
) -> None:
    content = exported(client, agent_id)
    next(block for block in content["blocks"] if block["label"] == "human")["value"] = "Called Bea."
    clone = imported(client, content)
    assert human(client, clone) == "Called Bea."
    (first,) = said(turn(client, clone, "recall"))
    assert first.endswith("Called Bea." if server.is_old else "Called Ada.")
    if not server.is_old:
        client.agents.recompile(clone)
        assert said(turn(client, clone, "recall")) == ["Called Bea."]
    delete(client, clone)


def test_only_newer_servers_accept_keys_of_tools_that_they_do_not_know(
    client: Letta, server: RunningServer, agent_id: str
) -> None:
    content = exported(client, agent_id)
    content["tools"][0]["enable_parallel_execution"] = False
    if server.is_old:
        with pytest.raises(letta_client.BadRequestError):
            imported(client, content)
    else:
        delete(client, imported(client, content))


def test_blocks_outlive_their_agent(client: Letta, server: RunningServer) -> None:
    agent_id = create(client, server)
    ids = [str(block.id) for block in client.agents.blocks.list(agent_id).items]
    client.agents.delete(agent_id)
    with pytest.raises(letta_client.NotFoundError):
        client.agents.retrieve(agent_id)
    with pytest.raises(letta_client.NotFoundError):
        client.agents.delete(agent_id)
    for block_id in ids:
        assert client.blocks.retrieve(block_id).value in {"Called Ada.", "Kind."}
        client.blocks.delete(block_id)
        with pytest.raises(letta_client.NotFoundError):
            client.blocks.retrieve(block_id)


def test_a_failing_model_is_raised_from_the_stream(client: Letta, server: RunningServer, agent_id: str) -> None:
    with pytest.raises(letta_client.APIStatusError) as raised:
        turn(client, agent_id, "fail")
    if server.is_old:
        assert isinstance(raised.value, letta_client.InternalServerError)
        assert "error" in str(raised.value)
    else:
        assert isinstance(raised.value.body, dict)
        assert raised.value.body["error_type"] == "llm_error"
        assert "the scripted model refuses" in str(raised.value.body)


def test_a_turn_of_too_many_steps_says_so(client: Letta, agent_id: str) -> None:
    chunks = turn(client, agent_id, "remember likes pears", max_steps=1)
    assert [chunk.stop_reason for chunk in chunks if chunk.message_type == "stop_reason"] == ["max_steps"]
    assert said(chunks) == []


def test_a_reset_forgets_the_turns_and_keeps_the_memory(client: Letta, server: RunningServer, agent_id: str) -> None:
    turn(client, agent_id, "remember likes pears")
    client.agents.messages.reset(agent_id, add_default_initial_messages=False)
    (recalled,) = said(turn(client, agent_id, "recall"))
    assert "Called Ada." in recalled
    assert "likes pears" in recalled
    assert not any("remember likes pears" in str(message) for message in server.model.requests[-1].messages[1:])


def test_only_newer_servers_have_conversations(client: Letta, server: RunningServer, agent_id: str) -> None:
    turn(client, agent_id, "remember likes pears")
    if server.is_old:
        with pytest.raises(letta_client.NotFoundError):
            client.conversations.create(agent_id=agent_id)
        return
    conversation = client.conversations.create(agent_id=agent_id)
    messages: Any = [{"role": "user", "content": "recall"}]
    with client.conversations.messages.create(conversation.id, messages=messages, streaming=True) as stream:
        assert said(list(stream)) == ["Called Ada. likes pears"]
    assert not any("remember likes pears" in str(message) for message in server.model.requests[-1].messages[1:])


def test_each_generation_has_agent_types_and_model_names_of_its_own(client: Letta, server: RunningServer) -> None:
    assert "openai-proxy/other" in {model.handle for model in client.models.list()}
    agent_id = create(client, server, llm_config=None, model=server.handle("other"), context_window_limit=16_000)
    turn(client, agent_id, "Hi")
    assert server.model.requests[-1].body["model"] == "other"
    delete(client, agent_id)
    if server.is_old:
        with pytest.raises(letta_client.UnprocessableEntityError, match="memgpt_v2_agent"):
            create(client, server, agent_type="letta_v1_agent")
        with pytest.raises(letta_client.InternalServerError):
            create(client, server, model="openai-proxy/other", llm_config=None)
