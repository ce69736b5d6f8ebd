"""A conversation with an object that follows the Agent protocol: what was said so far, and what comes next."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from stateval.deadline import check_deadline, deadline
from stateval.errors import TargetError, TargetTimeout
from stateval.loading.calling import is_async
from stateval.records.chat import messages_from_reply
from stateval.records.encoding import json_text, plain
from stateval.records.message import MessageRecord
from stateval.records.protocols import RolloutRequest, Snapshots
from stateval.records.rollout import Rollout, TurnTokenData
from stateval.records.sample import NewConversation, Sample, UserTurn, Wait
from stateval.records.state import AgentState, Block, Snapshot
from stateval.records.usage import Usage
from stateval.targets.callers import Caller, described

logger = logging.getLogger(__name__)

_METHODS = ("send", "state", "new_conversation", "usage", "close")


def has_async_methods(agent: Any) -> bool:
    """Whether this agent belongs on the event loop."""
    return any(is_async(getattr(agent, name, None)) for name in _METHODS) or is_async(agent)


class Conversation:
    """Leads one sample's conversation with one agent, and keeps what came of it, also when it fails half way.

    `context` is what the agent's factory handed on. `token_data` is set by whoever has it.
    """

    def __init__(self, sample: Sample, request: RolloutRequest, *, model_handle: str | None) -> None:
        self.sample = sample
        self.trajectory: list[list[MessageRecord]] = []
        self._request = request
        self._model_handle = model_handle
        self._turns = sample.turns
        self._user_turns = sum(isinstance(turn, UserTurn) for turn in self._turns)
        self._messages = 0
        self._snapshots: list[Snapshot] = []
        self._conversations: list[int] = []
        self._agent_id: str | None = None
        self._state: AgentState | None = None
        self._usage: list[dict[str, Any]] | None = None
        self._finished = False
        self.context: dict[str, Any] | None = None
        self.token_data: list[TurnTokenData] | None = None

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """What is led inside ends in time or raises TargetTimeout; every TargetError carries what was finished."""
        try:
            with deadline(seconds):
                yield
        except TimeoutError as error:
            if self._finished:
                logger.warning("sample %s: `close` did not return within the target's time-out", self.sample.key)
                return
            turns = f"{len(self.trajectory)} of {self._user_turns} turns were finished"
            message = f"the agent took longer than {seconds:g} s; {turns}"
            raise TargetTimeout(message, rollout=self.rollout()) from error
        except TargetError as error:
            error.rollout = error.rollout or self.rollout()
            raise

    async def lead(self, agent: Any, caller: Caller) -> None:
        """Says every turn, looks at the agent's memory where that is asked for, and closes the agent in any case."""
        agent_id = getattr(agent, "agent_id", None)
        self._agent_id = agent_id if isinstance(agent_id, str) else None
        try:
            await self._keep_snapshot(agent, caller, turn=-1)
            for turn in self._turns:
                match turn:
                    case UserTurn():
                        await self._take_turn(agent, caller, turn)
                    case NewConversation():
                        await self._begin_anew(agent, caller)
                    case Wait():
                        await caller.wait(turn.wait)
            await self._look_at_the_end(agent, caller)
            check_deadline()
            self._finished = True
        finally:
            if callable(close := getattr(agent, "close", None)):
                await caller.close(close)

    def rollout(self) -> Rollout:
        """What there is so far."""
        return Rollout(
            trajectory=self.trajectory,
            agent_id=self._agent_id,
            model_handle=self._model_handle,
            agent_state=self._state,
            snapshots=self._snapshots or None,
            conversations=self._conversations or None,
            agent_usage=self._usage,
            usage=_total(self._usage),
            token_data=self.token_data,
            context=self.context,
        )

    async def _take_turn(self, agent: Any, caller: Caller, turn: UserTurn) -> None:
        number = len(self.trajectory)
        try:
            reply = await caller.call(f"turn {number}: `send`", getattr(agent, "send", agent), turn.user)
            messages = messages_from_reply(reply, first_number=self._messages, date=datetime.now(UTC))
        except ValueError as error:
            raise TargetError(f"turn {number}: {error}") from error
        self._messages += len(messages)
        self.trajectory.append(messages)
        await self._keep_snapshot(agent, caller, turn=number)
        self._request.on_turn(number + 1, self._user_turns)

    async def _begin_anew(self, agent: Any, caller: Caller) -> None:
        method = getattr(agent, "new_conversation", None)
        if not callable(method):
            raise TargetError(
                f"the sample asks for a new conversation, but {described(agent)} has no method `new_conversation()`"
            )
        await caller.call("`new_conversation`", method)
        self._conversations.append(len(self.trajectory))

    async def _keep_snapshot(self, agent: Any, caller: Caller, *, turn: int) -> None:
        match self._request.snapshots:
            case Snapshots.NONE:
                return
            case Snapshots.ENDS if turn not in (-1, self._user_turns - 1):
                return
        if (state := await _state_of(agent, caller)) is not None:
            self._snapshots.append(Snapshot(turn=turn, state=state))

    def _last_snapshot(self) -> AgentState | None:
        """The state after the last user turn, where it was kept and nothing came after that turn."""
        last = self._snapshots[-1] if self._snapshots else None
        is_last = last is not None and last.turn == self._user_turns - 1 and isinstance(self._turns[-1], UserTurn)
        return last.state if last is not None and is_last else None

    async def _look_at_the_end(self, agent: Any, caller: Caller) -> None:
        if self._request.state:
            self._state = self._last_snapshot() or await _state_of(agent, caller)
        if callable(usage := getattr(agent, "usage", None)):
            self._usage = _usage_records(await caller.call("`usage`", usage))


async def _state_of(agent: Any, caller: Caller) -> AgentState | None:
    """None where the agent shows no state."""
    method = getattr(agent, "state", None)
    if not callable(method):
        return None
    value = await caller.call("`state`", method)
    if value is None or isinstance(value, AgentState):
        return value
    if not isinstance(value, Mapping):
        raise TargetError(f"`state()` returned {described(value)}; it must return a dict of texts by label")
    return AgentState(blocks=[Block(label=str(label), value=json_text(text)) for label, text in value.items()])


def _usage_records(value: Any) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    records = [plain(record) for record in (value if isinstance(value, list) else [value])]
    if not all(isinstance(record, dict) for record in records):
        raise TargetError(f"`usage()` returned {described(value)}; it must return token counts by name")
    try:
        _total(records)
    except ValueError as error:
        raise TargetError(f"`usage()` returned {described(value)}, which are no token counts or costs") from error
    return records


def _total(records: list[dict[str, Any]] | None) -> Usage | None:
    usages = [usage for record in records or () if (usage := Usage.of_record(record)) is not None]
    return sum(usages[1:], start=usages[0]) if usages else None
