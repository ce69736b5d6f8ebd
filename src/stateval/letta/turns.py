"""One turn of a conversation, read from what a Letta server sends while the agent works."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass, field
from typing import Any

from stateval.errors import TargetError
from stateval.records.rollout import TurnTokenData

_NO_MESSAGES = ("ping", "usage_statistics", "stop_reason", "error_message")
_FAILED = (
    "cancelled",
    "context_window_overflow_in_system_prompt",
    "error",
    "insufficient_credits",
    "invalid_llm_response",
    "llm_api_error",
)


@dataclass(slots=True)
class LettaTurn:
    """What came of one message of the user.

    `messages` are in Letta's form, as dicts, in the order in which they came. `usage` counts the whole turn. An agent
    that ran into its greatest number of steps, or did not speak, has finished its turn: that is its own doing.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    token_data: list[TurnTokenData] | None = None

    @classmethod
    async def from_stream(cls, chunks: AsyncIterable[Any]) -> LettaTurn:
        """The turn that a stream of whole messages tells.

        Raises TargetError: the server says that the turn failed, or the stream ends before the turn does.
        """
        turn = cls()
        async for chunk in chunks:
            turn._take(_fields(chunk))
        return turn._finished()

    @classmethod
    def from_response(cls, response: Any) -> LettaTurn:
        """The turn in an answer that came at once, with its token data where the server sent them.

        Raises TargetError.
        """
        fields = _fields(response)
        turn = cls(usage=fields.get("usage"), token_data=_token_data(fields.get("turns")))
        for message in fields.get("messages") or ():
            turn._take(_fields(message))
        turn.stop_reason = (fields.get("stop_reason") or {}).get("stop_reason")
        return turn._finished()

    def _take(self, chunk: dict[str, Any]) -> None:
        match chunk.get("message_type"):
            case "error_message":
                told = [str(chunk[name]) for name in ("error_type", "message", "detail") if chunk.get(name)]
                raise TargetError(f"the server says that it failed: {': '.join(told)}", cause_type="error_message")
            case "usage_statistics":
                self.usage = {name: value for name, value in chunk.items() if name != "message_type"}
            case "stop_reason":
                self.stop_reason = chunk.get("stop_reason")
            case kind if kind not in _NO_MESSAGES and kind is not None:
                self.messages.append(chunk)

    def _finished(self) -> LettaTurn:
        if self.stop_reason is None:
            raise TargetError("the server stopped sending before the turn was finished", cause_type="IncompleteTurn")
        if self.stop_reason in _FAILED:
            raise TargetError(f"the server ended the turn with `{self.stop_reason}`", cause_type=self.stop_reason)
        if self.stop_reason == "requires_approval":
            names = ", ".join(f"`{name}`" for name in _names_of_calls(self.messages[-1:])) or "a tool"
            raise TargetError(
                f"the agent waits for somebody to approve {names}; make it need no approval",
                cause_type="ApprovalNeeded",
            )
        return self


def _fields(chunk: Any) -> dict[str, Any]:
    """A chunk without the fields that hold nothing. Raises TargetError for what is no chunk."""
    if not isinstance(chunk, dict):
        raise TargetError(f"the server sent {str(chunk)[:80]!r} instead of a message", cause_type="IncompleteTurn")
    return {name: value for name, value in chunk.items() if value is not None}


def _names_of_calls(messages: Iterable[dict[str, Any]]) -> list[str]:
    calls = [call for message in messages for call in (message.get("tool_calls") or [message.get("tool_call")])]
    return [str(call["name"]) for call in calls if isinstance(call, dict) and call.get("name")]


def _token_data(turns: Any) -> list[TurnTokenData] | None:
    """The token data of a turn, or None where one of the agent's own messages has none: whole, or not at all."""
    data = [TurnTokenData.model_validate(turn) for turn in turns or ()]
    own = [one for one in data if one.role == "assistant"]
    is_whole = all(one.output_ids is not None and one.output_token_logprobs is not None for one in own)
    return data if own and is_whole else None
