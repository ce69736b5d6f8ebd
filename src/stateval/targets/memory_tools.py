"""The memory of a local agent, and the tools by which it is changed: those that users of Letta know.

Argument names differ between releases of Letta's server; both are understood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stateval.llm import ToolDefinition
from stateval.records.state import AgentState, Block
from stateval.targets.agent_definition import AgentDefinition


class ToolFailure(ValueError):
    """A tool could not do what it was asked; the message is what the agent reads."""


class Memory:
    """Blocks of text by label, as an agent keeps them during one sample."""

    def __init__(self, definition: AgentDefinition) -> None:
        self._definitions = dict(definition.blocks)
        self._values = {label: block.value for label, block in definition.blocks.items()}

    @property
    def writable(self) -> list[str]:
        """The labels of the blocks that may be changed."""
        return [label for label, block in self._definitions.items() if not block.read_only]

    def state(self) -> AgentState:
        """The blocks as they are now."""
        return AgentState(
            blocks=[
                Block(
                    label=label,
                    value=self._values[label],
                    limit=block.limit,
                    description=block.description,
                    read_only=block.read_only or None,
                )
                for label, block in self._definitions.items()
            ]
        )

    def value(self, label: str) -> str:
        """The text of a block. Raises ToolFailure."""
        if label not in self._values:
            raise ToolFailure(f"there is no block `{label}`; available sections: {', '.join(self._values) or 'none'}")
        return self._values[label]

    def set(self, label: str, value: str) -> None:
        """Gives a block another text. Raises ToolFailure: no such block, read only, longer than its limit."""
        self.value(label)
        block = self._definitions[label]
        if block.read_only:
            raise ToolFailure(f"block `{label}` is read only")
        if block.limit is not None and len(value) > block.limit:
            raise ToolFailure(f"block `{label}` holds at most {block.limit} characters; {len(value)} were requested")
        self._values[label] = value


@dataclass(frozen=True, slots=True)
class MemoryTool:
    """A tool: what the model is told of it, other names of its arguments, and what it does."""

    definition: ToolDefinition
    aliases: Mapping[str, str]
    apply: Callable[..., str]

    def call(self, memory: Memory, arguments: Mapping[str, Any]) -> str:
        """Does it, and says so. Raises ToolFailure."""
        named = {self.aliases.get(name, name): value for name, value in arguments.items()}
        properties: Mapping[str, Mapping[str, str]] = self.definition.parameters["properties"]
        if unknown := named.keys() - properties.keys():
            raise ToolFailure(f"`{self.definition.name}` has no argument `{min(unknown)}`")
        for name in self.definition.parameters["required"]:
            if name not in named:
                raise ToolFailure(f"`{self.definition.name}` needs the argument `{name}`")
        for name, value in named.items():
            wanted = int if properties[name]["type"] == "integer" else str
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise ToolFailure(f"argument `{name}` of `{self.definition.name}` must be a {properties[name]['type']}")
        return self.apply(memory, **named)


def _insert(memory: Memory, label: str, new_string: str, insert_line: int = -1) -> str:
    lines = memory.value(label).split("\n") if memory.value(label) else []
    if not -1 <= insert_line <= len(lines):
        raise ToolFailure(f"`insert_line` is {insert_line}; block `{label}` has {len(lines)} lines")
    place = len(lines) if insert_line == -1 else insert_line
    memory.set(label, "\n".join([*lines[:place], new_string, *lines[place:]]))
    return f"The text was put into block `{label}`."


def _replace(memory: Memory, label: str, old_string: str, new_string: str) -> str:
    value = memory.value(label)
    found = value.count(old_string) if old_string else 0
    if found != 1:
        raise ToolFailure(f"the old text is {found} times in block `{label}`; it must be there exactly once")
    memory.set(label, value.replace(old_string, new_string))
    return f"Block `{label}` was changed."


def _rethink(memory: Memory, label: str, new_memory: str) -> str:
    memory.set(label, new_memory)
    return f"Block `{label}` was written anew."


def _core_append(memory: Memory, label: str, content: str) -> str:
    memory.set(label, "\n".join(part for part in (memory.value(label), content) if part))
    return f"The text was appended to block `{label}`."


def _core_replace(memory: Memory, label: str, old_content: str, new_content: str) -> str:
    value = memory.value(label)
    if not old_content or old_content not in value:
        raise ToolFailure(f"the old text is not in block `{label}`")
    memory.set(label, value.replace(old_content, new_content))
    return f"Block `{label}` was changed."


def _tool(
    apply: Callable[..., str], name: str, description: str, optional: str = "", **arguments: str
) -> tuple[str, MemoryTool]:
    described = {"label": "The label of the memory block.", **arguments}
    properties = {
        argument: {"type": "integer" if argument == optional else "string", "description": text}
        for argument, text in described.items()
    }
    required = [argument for argument in properties if argument != optional]
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    aliases = {"new_str": "new_string", "old_str": "old_string"} if "new_string" in properties else {}
    return name, MemoryTool(ToolDefinition(name, description, parameters), aliases, apply)


MEMORY_TOOLS: Mapping[str, MemoryTool] = dict(
    (
        _tool(
            _insert,
            "memory_insert",
            "Put a new line of text into a memory block.",
            optional="insert_line",
            new_string="The text.",
            insert_line="After which line; 0 is the beginning, -1 (the default) the end.",
        ),
        _tool(
            _replace,
            "memory_replace",
            "Replace a piece of a memory block by other text. Use it when a fact was corrected.",
            old_string="The text to replace, exactly as it stands in the block; it must be there once.",
            new_string="The text that takes its place; empty to remove it.",
        ),
        _tool(
            _rethink,
            "memory_rethink",
            "Write a memory block anew, as a whole.",
            new_memory="The new text of the whole block.",
        ),
        _tool(_core_append, "core_memory_append", "Append text to a memory block.", content="The text."),
        _tool(
            _core_replace,
            "core_memory_replace",
            "Replace every occurrence of a text in a memory block.",
            old_content="The text to replace, exactly as it stands in the block.",
            new_content="The text that takes its place; empty to remove it.",
        ),
    )
)
