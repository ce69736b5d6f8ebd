"""Users' functions that make agents on a Letta server, and what they return."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stateval.errors import TargetError, UsageError
from stateval.loading.calling import own_copy
from stateval.records.sample import Sample
from stateval.targets.callers import OnLoop, described


def takes_client(function: Callable[..., Any]) -> bool:
    """Whether it makes agents on a Letta server: its first parameter is named `client`."""
    try:
        return next(iter(inspect.signature(function).parameters), None) == "client"
    except (TypeError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class LettaFactory:
    """A function `(client, sample)`, sync or async, that returns an agent's id or `(agent_id, context)`.

    `reference` is how it is named in messages. Raises UsageError for a function of other parameters.
    """

    function: Callable[..., Any]
    reference: str
    fingerprint: Any = None

    def __post_init__(self) -> None:
        try:
            names = list(inspect.signature(self.function).parameters)
        except (TypeError, ValueError) as error:
            raise UsageError(f"`{self.reference}` is {described(self.function)}, not a function") from error
        if len(names) != 2 or names[0] == "sample":
            raise UsageError(
                f"`{self.reference}` takes ({', '.join(names)}); a function that makes agents on a Letta server takes "
                "(client, sample) and returns the agent's id, or (agent id, context)"
            )

    async def make(self, client: Any, sample: Sample, caller: OnLoop) -> tuple[str, Any]:
        """The id of the agent that it makes for a sample, and what it hands on with it.

        Raises TargetError where it raises, or returns something else.
        """
        returned = await caller.call(f"`{self.reference}`", self.function, client, own_copy(sample))
        agent_id, context = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
        if not isinstance(agent_id, str) or not agent_id:
            raise TargetError(
                f"`{self.reference}` returned {described(returned)}, not an agent's id or (agent id, context)"
            )
        return agent_id, context

    def kept(self, context: Any) -> dict[str, Any] | None:
        """What it handed on, as JSON has it. Raises TargetError for what is no dict of JSON values."""
        if context is None:
            return None
        if not isinstance(context, Mapping):
            raise TargetError(f"`{self.reference}` returned {described(context)} as context; it must be a dict")
        try:
            return dict(json.loads(json.dumps(dict(context), allow_nan=False)))
        except (TypeError, ValueError, RecursionError) as error:
            raise TargetError(f"the context that `{self.reference}` returned is no JSON: {error}") from error
