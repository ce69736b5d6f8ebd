"""Target `python`: any object that follows the Agent protocol.

A factory makes an agent for a sample. The agent has `send(message)`, and where it likes `state()`,
`new_conversation()`, `usage()` and `close()`; each may be sync or async. A plain callable is an agent that has only
`send`.
"""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Callable
from typing import Any

from stateval.errors import TargetError, UsageError
from stateval.records.protocols import RolloutRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.targets.callers import InThread, OnLoop, described, finish, guarded
from stateval.targets.conversation import Conversation, has_async_methods
from stateval.threads import in_thread

logger = logging.getLogger(__name__)


class PythonTarget:
    """Runs agents that a factory makes in this process.

    Synchronous agents are led in a thread of their own, so they never block other samples.

    Args:
        factory: `factory(sample)` or `factory(sample, model_handle)`, sync or async; returns an agent.
        model_handle: handed to a factory that takes it.
        reference: how a suite file names the factory, for messages.
        fingerprint: what the agents' behaviour depends on, such as a hash of the factory's source.
    """

    kind = "python"

    def __init__(
        self,
        factory: Callable[..., Any],
        *,
        model_handle: str | None = None,
        reference: str | None = None,
        fingerprint: Any = None,
    ) -> None:
        self._factory = factory
        self.model_handle = model_handle
        self._reference = reference or str(getattr(factory, "__qualname__", factory))
        self.fingerprint = {"kind": self.kind, "factory": fingerprint if fingerprint is not None else self._reference}
        self._takes_handle = _takes_handle(factory, self._reference)
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._warned = False

    async def prepare(self) -> None:
        """Nothing is needed before the first sample."""

    async def run(self, sample: Sample, request: RolloutRequest) -> Rollout:
        """Makes the agent and leads the conversation. Raises TargetError or TargetTimeout."""
        conversation = Conversation(sample, request, model_handle=self.model_handle)
        caller = InThread()
        try:
            with conversation.limited(request.timeout):
                await self._lead(conversation, caller)
            return conversation.rollout()
        finally:
            caller.abandoned = True

    async def _lead(self, conversation: Conversation, caller: InThread) -> None:
        on_loop = OnLoop()
        if inspect.iscoroutinefunction(self._factory):
            agent = await on_loop.call("the factory", self._new_agent, conversation.sample)
        else:
            finished, agent = await in_thread(self._lead_in_thread, conversation, caller)
            if finished:
                return
            agent = await finish("the factory", agent)
        self._check_agent(agent)
        await conversation.lead(agent, on_loop)

    def _lead_in_thread(self, conversation: Conversation, caller: InThread) -> tuple[bool, Any]:
        """(True, None) when all was said here; (False, agent) where the agent belongs on the event loop."""
        agent = guarded("the factory", self._new_agent, conversation.sample)
        if inspect.isawaitable(agent) or has_async_methods(agent):
            return False, agent
        self._check_agent(agent)
        caller.drive(conversation.lead(agent, caller))
        return True, None

    async def close(self) -> None:
        """Nothing is held between samples."""

    def _new_agent(self, sample: Sample) -> Any:
        """What the factory returns for this sample; an awaitable where the factory is async."""
        return self._factory(sample, self.model_handle) if self._takes_handle else self._factory(sample)

    def _check_agent(self, agent: Any) -> None:
        """Raises TargetError for something that cannot be talked to; warns once of one object given to two samples."""
        if not callable(getattr(agent, "send", agent)):
            raise TargetError(
                f"the factory `{self._reference}` returned {described(agent)}, which has no method `send(message)` "
                "and cannot be called"
            )
        if inspect.isroutine(agent) or inspect.isclass(agent):
            return
        try:
            if agent in self._seen and not self._warned:
                self._warned = True
                logger.warning(
                    "the factory `%s` returned the same object for two samples: what one sample tells it, the next "
                    "one can read; make a new agent for every sample",
                    self._reference,
                )
            self._seen.add(agent)
        except TypeError:
            logger.debug("an agent of type %s cannot be told apart from others", type(agent).__name__)


def _takes_handle(factory: Callable[..., Any], reference: str) -> bool:
    try:
        names = list(inspect.signature(factory).parameters)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the factory `{reference}` is {described(factory)}, not a function of (sample)") from error
    if names[:1] == ["client"]:
        raise UsageError(
            f"the factory `{reference}` takes (client, sample): it makes agents on a Letta server. A target of kind "
            "`python` wants a factory of (sample) or (sample, model_handle) that returns an agent object"
        )
    if len(names) not in (1, 2):
        raise UsageError(
            f"the factory `{reference}` takes ({', '.join(names)}); it must take (sample) or (sample, model_handle)"
        )
    return len(names) == 2
