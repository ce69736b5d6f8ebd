"""The built-in extractors as plain functions, which take messages of `letta_client` and stateval's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stateval.compat.letta_evals.decorators import extractor
from stateval.compat.letta_evals.extractors.utils import flatten_content, get_assistant_messages, get_last_turn_messages
from stateval.extractors import builtin
from stateval.letta.messages import records_of
from stateval.records.marks import Mark, mark_of
from stateval.records.state import AgentState

__all__ = [
    "after_marker",
    "all_assistant",
    "extractor",
    "first_assistant",
    "flatten_content",
    "get_assistant_messages",
    "get_last_turn_messages",
    "last_assistant",
    "last_turn",
    "memory_block",
    "pattern",
    "tool_arguments",
    "tool_output",
]


def _of_any_messages(function: Callable[..., str]) -> Callable[..., str]:
    """The extractor, which is handed our records whatever it is called with."""

    @functools.wraps(function)
    def extract(trajectory: Any, config: Any, *further: Any, **named: Any) -> str:
        return function(records_of(trajectory), config, *further, **named)

    assert mark_of(extract) == Mark.EXTRACTOR
    return extract


after_marker = _of_any_messages(builtin.after_marker)
all_assistant = _of_any_messages(builtin.all_assistant)
first_assistant = _of_any_messages(builtin.first_assistant)
last_assistant = _of_any_messages(builtin.last_assistant)
last_turn = _of_any_messages(builtin.last_turn)
pattern = _of_any_messages(builtin.pattern)
tool_arguments = _of_any_messages(builtin.tool_arguments)
tool_output = _of_any_messages(builtin.tool_output)


def memory_block(trajectory: Any, config: Any, agent_state: Any) -> str:
    """The text in the block `block_label` of the agent's memory. Raises ExtractionError where there is no state."""
    state = agent_state
    if state is not None and not isinstance(state, AgentState):
        state = AgentState.model_validate(agent_state.model_dump(exclude_none=True))
    return builtin.memory_block(records_of(trajectory), config, state)
