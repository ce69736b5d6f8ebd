"""What came of running a target on one sample."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stateval.records.message import Trajectory
from stateval.records.record import Record
from stateval.records.state import AgentState, Snapshot
from stateval.records.usage import Usage


class TurnTokenData(Record):
    """Exact token ids and log-probabilities of one message, where the server gives them."""

    role: str
    content: str | None = None
    input_ids: list[int] | None = None
    output_ids: list[int] | None = None
    output_token_logprobs: list[Any] | None = None


class Rollout(Record):
    """A finished conversation: one list of messages per user turn, the state it left behind, and what it used.

    `agent_state` is None where nobody asked for it or the target has none. `conversations` lists the user turns
    before which a new conversation began. `context` is what a factory handed on; it is JSON.
    """

    trajectory: Trajectory = Field(default_factory=list)
    agent_id: str | None = None
    model_handle: str | None = None
    agent_state: AgentState | None = None
    snapshots: list[Snapshot] | None = None
    conversations: list[int] | None = None
    agent_usage: list[dict[str, Any]] | None = None
    usage: Usage | None = None
    token_data: list[TurnTokenData] | None = None
    context: dict[str, Any] | None = None

    @property
    def has_messages(self) -> bool:
        """Whether the agent said or did anything at all."""
        return any(self.trajectory)

    def state_after(self, turn: int) -> AgentState | None:
        """The snapshot of that user turn (-1: before the first), or None where there is none."""
        return next((snapshot.state for snapshot in self.snapshots or () if snapshot.turn == turn), None)

    def only_turn(self, turn: int) -> Rollout:
        """The same rollout seen at one user turn: its messages alone, and the states right before and after it."""
        messages = [self.trajectory[turn]] if turn < len(self.trajectory) else []
        around = [snapshot for snapshot in self.snapshots or () if snapshot.turn in (turn - 1, turn)]
        alone = {"trajectory": messages, "agent_state": self.state_after(turn), "snapshots": around or None}
        return self.model_copy(update=alone)
