"""Tools whose source code comes with an agent file. They run in this process, and only where the user allows it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from stateval.errors import UsageError
from stateval.llm import ToolDefinition
from stateval.records.encoding import json_text, plain
from stateval.targets.memory_tools import ToolFailure
from stateval.threads import in_thread


@dataclass(frozen=True, slots=True)
class CustomTool:
    """A function from an agent file, and what the model is told of it."""

    definition: ToolDefinition
    function: Callable[..., Any]
    sha256: str

    @classmethod
    def from_letta(cls, tool: Mapping[str, Any]) -> Self:
        """The tool of a Letta file: its source is run once, here. Raises UsageError where it does not define it."""
        name, source = tool["name"], tool["source_code"]
        described = tool.get("json_schema") or {}
        names: dict[str, Any] = {"__name__": f"agent_file_tool_{name}"}
        try:
            exec(compile(source, f"<tool {name}>", "exec"), names)
        except Exception as error:
            raise UsageError(f"the source of tool `{name}` raised {type(error).__name__}: {error}") from error
        if not callable(names.get(name)):
            raise UsageError(f"the source of tool `{name}` defines no function of that name")
        parameters = described.get("parameters") or {"type": "object", "properties": {}}
        definition = ToolDefinition(name, described.get("description") or "", parameters)
        return cls(definition, names[name], hashlib.sha256(source.encode("utf-8")).hexdigest())

    async def call(self, arguments: Mapping[str, Any]) -> str:
        """What the function returns, as text; it runs in a thread. Raises ToolFailure for whatever it raises."""
        try:
            result = await in_thread(lambda: self.function(**arguments))
        except Exception as error:
            raise ToolFailure(f"{type(error).__name__}: {error}") from error
        return json_text(plain(result))
