"""One row of a dataset: what the agent is told, and what its answer is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from stateval.records.encoding import json_text
from stateval.records.record import Record

SampleId = str | int


class Turn(Record):
    """A step of a conversation written as an object. Unknown keys are errors: a typo must not drop a turn."""

    model_config = {**Record.model_config, "extra": "forbid"}


class UserTurn(Turn):
    """The user says something; with `ground_truth` it is graded at this turn, by `graders` or by all of them."""

    user: str
    ground_truth: str | None = None
    graders: tuple[str, ...] | None = None

    @field_validator("ground_truth", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return None if value is None else json_text(value)


class NewConversation(Turn):
    """The agent goes on with the same memory and an empty context: what it still knows, it knows from memory."""

    new_conversation: Literal[True]


class Wait(Turn):
    """Nothing happens for so many seconds; they do not count against the target's time-out."""

    wait: float = Field(ge=0, allow_inf_nan=False)


class Simulation(Turn):
    """A simulated user who talks with the agent until `stop_when` or `max_turns`."""

    persona: str | None = None
    goal: str | None = None
    facts: Any = None
    max_turns: int = Field(default=10, ge=1)
    stop_when: str | None = None


class SimulatedInput(Turn):
    """The object form of an input: `{"simulate": {...}}`."""

    simulate: Simulation


class Sample(Record):
    """One row of a dataset.

    `input` is one message, or a list of messages and turn objects. `ground_truth` is a text, or for per-turn grading
    a list as long as the user turns (None in it: that turn is not graded); other JSON values become their JSON text.
    `expected` is any JSON value, or one per metric key. Samples that share a `cluster` are not independent.
    """

    id: SampleId = Field(union_mode="left_to_right")
    input: str | list[str | UserTurn | NewConversation | Wait] | SimulatedInput
    ground_truth: str | list[str | None] | None = None
    agent_args: dict[str, Any] | None = None
    rubric_vars: dict[str, Any] | None = None
    extra_vars: dict[str, Any] | None = None
    rubric: str | None = None
    expected: Any = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None
    cluster: str | None = None

    @field_validator("ground_truth", mode="before")
    @classmethod
    def _ground_truth_as_text(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [None if item is None else json_text(item) for item in value]
        return None if value is None else json_text(value)

    @field_validator("cluster", mode="before")
    @classmethod
    def _cluster_as_text(cls, value: Any) -> Any:
        return None if value is None else json_text(value)

    @model_validator(mode="after")
    def _one_truth_per_user_turn(self) -> Sample:
        if isinstance(self.input, list) and not any(isinstance(turn, str | UserTurn) for turn in self.input):
            raise ValueError("`input` has no user turn")
        if isinstance(self.ground_truth, list):
            if not isinstance(self.input, list):
                raise ValueError(
                    "`ground_truth` is a list but `input` is one message; put a list of accepted values into `expected`"
                )
            if len(self.ground_truth) != len(self.user_turns):
                raise ValueError(
                    f"`ground_truth` has {len(self.ground_truth)} items for {len(self.user_turns)} user turns; "
                    "for one truth about the whole conversation use a string, for a list of values `expected`"
                )
        return self

    @property
    def key(self) -> str:
        """The id as text. Ids are compared as text: `1` and `"1"` are the same sample."""
        return str(self.id)

    @property
    def turns(self) -> list[UserTurn | NewConversation | Wait]:
        """The input as turn objects. Raises ValueError for a simulated user, whose turns are not known beforehand."""
        match self.input:
            case str():
                return [UserTurn(user=self.input)]
            case list():
                return [UserTurn(user=turn) if isinstance(turn, str) else turn for turn in self.input]
        raise ValueError("a simulated user's turns are not known before it has talked")

    @property
    def user_turns(self) -> list[UserTurn]:
        """What the user says, in order; turns are counted from 0 in this list."""
        return [turn for turn in self.turns if isinstance(turn, UserTurn)]

    @property
    def turn_truths(self) -> Sequence[str | None] | None:
        """For each user turn its own ground truth, or None where the sample is graded as a whole."""
        if isinstance(self.ground_truth, list):
            return self.ground_truth
        if isinstance(self.input, list):
            truths = [turn.ground_truth for turn in self.user_turns]
            return truths if any(truth is not None for truth in truths) else None
        return None
