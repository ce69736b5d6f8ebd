"""Agents in files: Letta's `.af`, and a JSON object in the form that a suite file uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stateval.errors import UsageError
from stateval.records.encoding import load_json
from stateval.targets.agent_definition import AgentDefinition
from stateval.targets.custom_tools import CustomTool
from stateval.targets.memory_tools import MEMORY_TOOLS


@dataclass(frozen=True, slots=True)
class AgentFile:
    """What a file says of an agent.

    `memory_tools` are the names of those it has, None where the file does not say. Of a Letta file's model settings
    `max_tokens` is taken; the model and its temperature are the suite's to choose.
    """

    definition: AgentDefinition
    memory_tools: tuple[str, ...] | None = None
    custom_tools: tuple[CustomTool, ...] = ()
    max_tokens: int | None = None


def read_agent_file(path: Path, *, allow_tools: bool = False) -> AgentFile:
    """The agent in a file.

    Raises UsageError: the file cannot be read, holds no agent or several, or a tool with source code of its own while
    `allow_tools` is False.
    """
    try:
        content = load_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"the agent file {path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"the agent file {path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"the agent file {path} must hold a JSON object")
    try:
        if "agents" in content:
            return _from_letta(content, path, allow_tools)
        return AgentFile(AgentDefinition.model_validate(content))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UsageError(f"the agent file {path} is wrong: {problems}") from error
    except (LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"the agent file {path} is not as Letta writes them ({error!r})") from error


def _from_letta(content: Mapping[str, Any], path: Path, allow_tools: bool) -> AgentFile:
    agents = content["agents"]
    if len(agents) != 1:
        raise UsageError(f"the agent file {path} holds {len(agents)} agents; a local agent is made from one")
    agent = agents[0]
    tools = [tool for tool in content.get("tools") or () if tool["id"] in (agent.get("tool_ids") or ())]
    return AgentFile(
        definition=AgentDefinition(system=agent["system"], blocks=_blocks(content, agent)),
        memory_tools=tuple(tool["name"] for tool in tools if tool["name"] in MEMORY_TOOLS) or None,
        custom_tools=_custom_tools(tools, path, allow_tools),
        max_tokens=(agent.get("llm_config") or {}).get("max_tokens"),
    )


def _blocks(content: Mapping[str, Any], agent: Mapping[str, Any]) -> dict[str, Any]:
    by_id = {block["id"]: block for block in content.get("blocks") or ()}
    chosen = [by_id[block_id] for block_id in agent.get("block_ids") or ()]
    kept = ("value", "limit", "description", "read_only")
    return {block["label"]: {key: block[key] for key in kept if block.get(key) is not None} for block in chosen}


def _custom_tools(tools: list[dict[str, Any]], path: Path, allow_tools: bool) -> tuple[CustomTool, ...]:
    custom = [tool for tool in tools if tool.get("source_code") and tool["name"] not in MEMORY_TOOLS]
    custom = [tool for tool in custom if tool.get("tool_type") in (None, "custom")]
    if custom and not allow_tools:
        names = ", ".join(f"`{tool['name']}`" for tool in custom)
        raise UsageError(
            f"the agent file {path} brings source code for {names}, which would run in this process; if you trust the "
            "file, set `allow_tools: true`"
        )
    return tuple(CustomTool.from_letta(tool) for tool in custom)
