"""The built-in extractors, in both forms that files use.

`last_assistant(trajectory, config)` is the text at once; `last_assistant()` and `memory_block("user_info")`, as the
guides write, make an extractor for an `EvalSuite`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from stateval import extractors
from stateval.compat.letta_evals.extractors import builtin, registry, utils
from stateval.compat.letta_evals.extractors.registry import extractor_requires_agent_state, get_extractor

__all__ = [
    "after_marker",
    "all_assistant",
    "builtin",
    "extractor_requires_agent_state",
    "first_assistant",
    "get_extractor",
    "last_assistant",
    "last_turn",
    "memory_block",
    "pattern",
    "registry",
    "tool_arguments",
    "tool_calls",
    "tool_output",
    "tool_returns",
    "utils",
]


def _in_both_forms(name: str) -> Callable[..., Any]:
    plain, make = getattr(builtin, name), getattr(extractors, name)

    @functools.wraps(plain)
    def either(*arguments: Any, **keywords: Any) -> Any:
        is_plain = len(arguments) >= 2 and isinstance(arguments[1], Mapping)
        return (plain if is_plain or "trajectory" in keywords else make)(*arguments, **keywords)

    return either


after_marker = _in_both_forms("after_marker")
all_assistant = _in_both_forms("all_assistant")
first_assistant = _in_both_forms("first_assistant")
last_assistant = _in_both_forms("last_assistant")
last_turn = _in_both_forms("last_turn")
memory_block = _in_both_forms("memory_block")
pattern = _in_both_forms("pattern")
tool_arguments = _in_both_forms("tool_arguments")
tool_output = _in_both_forms("tool_output")
tool_calls = extractors.tool_calls
tool_returns = extractors.tool_returns
