"""Extractors that look at what an agent keeps in memory."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from stateval.errors import ExtractionError
from stateval.extractors.assistant import Config
from stateval.loading.options import Options, read_options
from stateval.records.encoding import json_text
from stateval.records.marks import extractor
from stateval.records.message import Trajectory
from stateval.records.protocols import Extraction
from stateval.records.rollout import Rollout
from stateval.records.state import AgentState, BlockChange, changes_between

_TURN = "the user turn after which to look, counted from 0 (-1: before the first); without it the end"


class BlockOptions(Options):
    """Which block, and when."""

    block_label: str = Field(min_length=1, description="the label of the memory block")
    turn: int | None = Field(default=None, ge=-1, description=_TURN)


class DiffOptions(Options):
    """Which changes, and how they are written."""

    block_label: str | None = Field(default=None, description="only this block")
    turn: int | None = Field(default=None, ge=0, description="only what this user turn changed, counted from 0")
    format: Literal["text", "json"] = Field(default="text", description="`text` for readers or `json`")


@extractor
def memory_block(trajectory: Trajectory, config: Config, agent_state: AgentState | None) -> str:
    """The text of one memory block; empty where the agent has no such block.

    Raises ExtractionError where the state could not be had.
    """
    options = read_options(BlockOptions, config, "extractor `memory_block`")
    return _block(agent_state, options).submission


def take_memory_block(rollout: Rollout, options: BlockOptions) -> Extraction:
    """As `memory_block`; the metadata tells a missing block from an empty one."""
    return _block(state_at(rollout, options.turn), options)


def memory_diff(rollout: Rollout, options: DiffOptions) -> Extraction:
    """What changed in memory from before the first turn to the end, or in one turn; empty where nothing did.

    As text: for each block a line with its label and kind of change, then its lines that went ("- ") and came ("+ ").
    As JSON: a list of `{"label", "kind", "before", "after"}`.
    """
    if options.turn is None:
        before, after = _first_state(rollout), state_at(rollout, None)
    else:
        before, after = state_at(rollout, options.turn - 1), state_at(rollout, options.turn)
    changes = [c for c in changes_between(before, after) if options.block_label in (None, c.label)]
    if options.format == "json":
        return Extraction(json_text([change.to_dict() for change in changes]), {"changes": len(changes)})
    return Extraction("\n".join(line for change in changes for line in _lines(change)), {"changes": len(changes)})


def state_at(rollout: Rollout, turn: int | None) -> AgentState:
    """The state after a user turn, or at the end. Raises ExtractionError where it is not known."""
    state = rollout.agent_state if turn is None else rollout.state_after(turn)
    if state is not None:
        return state
    if turn is None:
        raise ExtractionError("the agent's state could not be had: the target gave none")
    known = ", ".join(str(snapshot.turn) for snapshot in rollout.snapshots or ())
    raise ExtractionError(f"the agent's state after turn {turn} is not known; known are the turns: {known or 'none'}")


def _first_state(rollout: Rollout) -> AgentState:
    if not rollout.snapshots:
        raise ExtractionError("the agent's state before the first turn could not be had: the target gave none")
    return min(rollout.snapshots, key=lambda snapshot: snapshot.turn).state


def _block(state: AgentState | None, options: BlockOptions) -> Extraction:
    if state is None:
        raise ExtractionError("the agent's state could not be had: the target gave none")
    block = state.block(options.block_label)
    if block is None:
        return Extraction("", {"missing": True, "blocks": [block.label for block in state.blocks]})
    return Extraction(block.value, {"missing": False})


def _lines(change: BlockChange) -> Iterator[str]:
    yield f"{change.label} {change.kind}:"
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    for tag, first, last, start, end in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in before[first:last])
            yield from (f"+ {line}" for line in after[start:end])
