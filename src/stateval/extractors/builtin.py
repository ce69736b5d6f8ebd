"""The built-in extractors: their plain functions, and the table of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stateval.extractors.assistant import (
    JoinOptions,
    JsonOptions,
    MarkerOptions,
    NoOptions,
    PatternOptions,
    after_marker,
    all_assistant,
    first_assistant,
    json,
    last_assistant,
    last_turn,
    pattern,
    reasoning,
    take_json,
)
from stateval.extractors.memory import BlockOptions, DiffOptions, memory_block, memory_diff, take_memory_block
from stateval.extractors.tool_use import (
    OneToolOptions,
    ToolsOptions,
    tool_arguments,
    tool_calls,
    tool_output,
    tool_returns,
)
from stateval.loading.options import OptionDescription, Options, describe_options
from stateval.records.protocols import Extraction, Needs
from stateval.records.rollout import Rollout

__all__ = [
    "BUILTIN",
    "BuiltinExtractor",
    "after_marker",
    "all_assistant",
    "first_assistant",
    "json",
    "last_assistant",
    "last_turn",
    "memory_block",
    "memory_diff",
    "pattern",
    "reasoning",
    "tool_arguments",
    "tool_calls",
    "tool_output",
    "tool_returns",
]


@dataclass(frozen=True, slots=True)
class BuiltinExtractor:
    """One built-in extractor.

    `function` is the plain one. `take` looks at the whole rollout, for those that must or that have metadata;
    without it the function looks at the trajectory. `needs` is what it needs of the state when no turn is set;
    `slow` ones run in a thread.
    """

    name: str
    function: Callable[..., Any]
    options: type[Options]
    take: Callable[[Rollout, Any], Extraction] | None = None
    needs: Needs = Needs.NOTHING
    slow: bool = False

    @property
    def description(self) -> str:
        """What it takes out, in one sentence or two."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    @property
    def option_descriptions(self) -> list[OptionDescription]:
        """What can be set in `extractor_config`."""
        return describe_options(self.options)


def _table() -> dict[str, BuiltinExtractor]:
    return {
        extractor.name: extractor
        for extractor in (
            BuiltinExtractor("last_assistant", last_assistant, NoOptions),
            BuiltinExtractor("first_assistant", first_assistant, NoOptions),
            BuiltinExtractor("all_assistant", all_assistant, JoinOptions),
            BuiltinExtractor("last_turn", last_turn, JoinOptions),
            BuiltinExtractor("after_marker", after_marker, MarkerOptions),
            BuiltinExtractor("pattern", pattern, PatternOptions, slow=True),
            BuiltinExtractor("json", json, JsonOptions, take=take_json),
            BuiltinExtractor("reasoning", reasoning, JoinOptions),
            BuiltinExtractor("tool_calls", tool_calls, ToolsOptions),
            BuiltinExtractor("tool_returns", tool_returns, ToolsOptions),
            BuiltinExtractor("tool_arguments", tool_arguments, OneToolOptions),
            BuiltinExtractor("tool_output", tool_output, OneToolOptions),
            BuiltinExtractor("memory_block", memory_block, BlockOptions, take=take_memory_block, needs=Needs.STATE),
            BuiltinExtractor("memory_diff", memory_diff, DiffOptions, take=memory_diff, needs=Needs.ENDS),
        )
    }


BUILTIN: Mapping[str, BuiltinExtractor] = _table()
"""Every built-in extractor by the name that a suite uses."""
