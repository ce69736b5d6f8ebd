"""What a local agent's model is shown: the parts that never change first, what changes after them.

The few-shots are those that were measured on SmolLM2 (see `examples/fruit-preferences`): one fact is stored, one is
corrected, one question leaves memory alone. They speak of a city, whatever the agent's own blocks are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stateval.llm import ChatMessage
from stateval.records.encoding import dump_json
from stateval.records.state import AgentState, Block

LONGEST_VALUE = 200
NO_STEP = "none"
STEP_TOOLS = {"memory_insert": "new_string", "memory_rethink": "new_memory"}
"""The tools that a step may name, and the argument that its `value` becomes."""

_STEP_SYSTEM = (
    "You keep the memory of an assistant. Write new facts about the user into memory. When the user corrects a fact, "
    "replace it."
)
_FEW_SHOTS: Sequence[tuple[str, str, str, str]] = (
    ("", "Please remember that I live in Oslo.", "memory_insert", "The user lives in Oslo."),
    (
        "The user lives in Oslo.",
        "Actually, sorry, I meant I live in Rome.",
        "memory_rethink",
        "The user lives in Rome.",
    ),
    ("The user lives in Rome.", "What is the capital of France?", NO_STEP, ""),
)


def step_messages(state: AgentState, message: str) -> tuple[ChatMessage, ...]:
    """The request for one memory step, answered as JSON that follows `step_schema`."""
    return (*_FIXED, ChatMessage("user", _question(state, message)))


def step_schema(labels: Sequence[str]) -> dict[str, Any]:
    """The schema of a step: which tool, which of the blocks that may be written, which text."""
    properties = {
        "tool": {"enum": [*STEP_TOOLS, NO_STEP]},
        "label": {"enum": list(labels)},
        "value": {"type": "string", "maxLength": LONGEST_VALUE},
    }
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def answer_message(state: AgentState, message: str) -> ChatMessage:
    """The user's message with the agent's memory before it."""
    return ChatMessage("user", f"Memory:\n{_lines(state)}\n\n{message}" if state.blocks else message)


def system_with_memory(system: str, state: AgentState) -> ChatMessage:
    """The instructions of an agent whose model calls tools, with its blocks."""
    if not state.blocks:
        return ChatMessage("system", system)
    blocks = "\n".join(_block_text(block) for block in state.blocks)
    return ChatMessage(
        "system",
        f"{system}\n\nYour memory is below. You alone can change it, with the memory tools, and it is all that you "
        f"will still know in a later conversation: store what the user tells you before you answer.\n\n{blocks}",
    )


def fingerprint() -> dict[str, Any]:
    """Everything fixed in the prompts."""
    state = AgentState(blocks=[Block(label="label", value="value", limit=1, description="text", read_only=True)])
    return {
        "steps": [message.content for message in step_messages(state, "message")],
        "schema": step_schema(["label"]),
        "answer": answer_message(state, "message").content,
        "system": system_with_memory("system", state).content,
    }


def _question(state: AgentState, message: str) -> str:
    return f"Memory:\n{_lines(state)}\nUser says: {message}"


def _lines(state: AgentState) -> str:
    return "\n".join(
        f"{block.label}{f' ({block.description})' if block.description else ''}: {block.value or '(empty)'}"
        for block in state.blocks
    )


def _block_text(block: Block) -> str:
    facts = {"description": block.description, "limit": block.limit, "read_only": block.read_only}
    attributes = "".join(f' {key}="{value}"' for key, value in facts.items() if value)
    return f'<block label="{block.label}"{attributes}>\n{block.value}\n</block>'


def _few_shots() -> tuple[ChatMessage, ...]:
    messages = [ChatMessage("system", _STEP_SYSTEM)]
    for value, said, tool, new_value in _FEW_SHOTS:
        state = AgentState.of({"city": value})
        step: Mapping[str, str] = {"tool": tool, "label": "city", "value": new_value}
        answer = dump_json(step).decode().replace('":"', '": "').replace('","', '", "')
        messages += [ChatMessage("user", _question(state, said)), ChatMessage("assistant", answer)]
    return tuple(messages)


_FIXED = _few_shots()
