"""What is taken out of a trajectory to be judged.

Each function here makes one of the built-in extractors: `extractors.memory_block("fruit_preferences")`. A function of
your own is handed over as it is, or through `make_extractor`.
"""

from __future__ import annotations

from typing import Literal

from stateval.extractors.bound import make_extractor
from stateval.extractors.builtin import BUILTIN, BuiltinExtractor
from stateval.records.protocols import Extractor

__all__ = [
    "BUILTIN",
    "BuiltinExtractor",
    "after_marker",
    "all_assistant",
    "first_assistant",
    "json",
    "last_assistant",
    "last_turn",
    "make_extractor",
    "memory_block",
    "memory_diff",
    "pattern",
    "reasoning",
    "tool_arguments",
    "tool_calls",
    "tool_output",
    "tool_returns",
]


def last_assistant() -> Extractor:
    """The text of the agent's last message to the user."""
    return make_extractor("last_assistant")


def first_assistant() -> Extractor:
    """The text of the agent's first message to the user."""
    return make_extractor("first_assistant")


def all_assistant(separator: str = "\n") -> Extractor:
    """All messages of the agent to the user, joined."""
    return make_extractor("all_assistant", {"separator": separator})


def last_turn(separator: str = "\n") -> Extractor:
    """All messages of the agent to the user in the last turn, joined."""
    return make_extractor("last_turn", {"separator": separator})


def after_marker(marker: str, *, include_marker: bool = False) -> Extractor:
    """What stands after a marker in the latest message of the agent that has it."""
    return make_extractor("after_marker", {"marker": marker, "include_marker": include_marker})


def pattern(pattern: str, *, group: int | str = 0, search_all: bool = False) -> Extractor:
    """What a regular expression finds in the latest message of the agent that it matches."""
    return make_extractor("pattern", {"pattern": pattern, "group": group, "search_all": search_all})


def json(field: str | None = None, *, path: str | None = None) -> Extractor:
    """A field of the JSON in the agent's last message, or what a JSONPath finds in it."""
    return make_extractor("json", {"field": field, "path": path})


def reasoning(separator: str = "\n") -> Extractor:
    """All that the agent wrote as its reasoning, joined."""
    return make_extractor("reasoning", {"separator": separator})


def tool_calls(tool_name: str | None = None) -> Extractor:
    """All tool calls, or those of one tool, as a JSON list."""
    return make_extractor("tool_calls", {"tool_name": tool_name})


def tool_returns(tool_name: str | None = None) -> Extractor:
    """What all tools, or one, gave back, as a JSON list."""
    return make_extractor("tool_returns", {"tool_name": tool_name})


def tool_arguments(tool_name: str) -> Extractor:
    """The arguments of the first call of a tool, as the model wrote them."""
    return make_extractor("tool_arguments", {"tool_name": tool_name})


def tool_output(tool_name: str) -> Extractor:
    """What the first call of a tool gave back."""
    return make_extractor("tool_output", {"tool_name": tool_name})


def memory_block(block_label: str, *, turn: int | None = None) -> Extractor:
    """The text of one memory block at the end, or after a user turn (counted from 0)."""
    return make_extractor("memory_block", {"block_label": block_label, "turn": turn})


def memory_diff(
    block_label: str | None = None,
    *,
    turn: int | None = None,
    format: Literal["text", "json"] = "text",  # noqa: A002
) -> Extractor:
    """What changed in memory over the whole conversation, or in one user turn."""
    return make_extractor("memory_diff", {"block_label": block_label, "turn": turn, "format": format})
