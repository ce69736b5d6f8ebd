"""What an agent keeps in memory, and how it changed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import ConfigDict

from stateval.records.record import Record


class Block(Record):
    """A labelled piece of memory. `limit` is its longest length in characters."""

    model_config = ConfigDict(frozen=True, extra="allow")

    label: str
    value: str = ""
    limit: int | None = None
    description: str | None = None
    read_only: bool | None = None
    id: str | None = None


class AgentState(Record):
    """An agent's memory at one moment, in the shape of Letta's `AgentState`; other keys are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str | None = None
    blocks: list[Block] = []

    @classmethod
    def of(cls, values: Mapping[str, str]) -> AgentState:
        """The state with these texts by label."""
        return cls(blocks=[Block(label=label, value=value) for label, value in values.items()])

    def block(self, label: str) -> Block | None:
        """The block of this label, or None where the agent has none: missing and empty are different things."""
        return next((block for block in self.blocks if block.label == label), None)


class Snapshot(Record):
    """The state after a user turn (counted from 0); `turn` -1 is the state before the first."""

    turn: int
    state: AgentState


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class BlockChange(Record):
    """What became of one block between two moments. `before` is None where it was added, `after` where removed."""

    label: str
    kind: ChangeKind
    before: str | None = None
    after: str | None = None


def changes_between(before: AgentState, after: AgentState) -> list[BlockChange]:
    """The blocks that were added, removed or have another value, in the order of their labels' first appearance."""
    old = {block.label: block.value for block in before.blocks}
    new = {block.label: block.value for block in after.blocks}
    changes = []
    for label in {**old, **new}:
        if label not in old:
            changes.append(BlockChange(label=label, kind=ChangeKind.ADDED, after=new[label]))
        elif label not in new:
            changes.append(BlockChange(label=label, kind=ChangeKind.REMOVED, before=old[label]))
        elif old[label] != new[label]:
            changes.append(BlockChange(label=label, kind=ChangeKind.CHANGED, before=old[label], after=new[label]))
    return changes
