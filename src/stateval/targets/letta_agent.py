"""Target `letta_agent`: agents on a Letta server, one message a turn."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from stateval.deadline import check_deadline, paused
from stateval.errors import TargetError, UsageError
from stateval.letta.agent import LettaAgent, import_agent
from stateval.letta.agent_file import LettaAgentFile
from stateval.letta.connection import LettaServer
from stateval.records.protocols import RolloutRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.targets.callers import OnLoop
from stateval.targets.conversation import Conversation
from stateval.targets.letta_factory import LettaFactory

if TYPE_CHECKING:
    from letta_client import AsyncLetta

logger = logging.getLogger(__name__)

_SECONDS_TO_DELETE = 30.0


class LettaAgentTarget:
    """Talks with agents on a Letta server.

    Args:
        server: the server.
        agent_file: a Letta agent file; every sample gets a fresh clone.
        agent_id: a live agent, the same for every sample, one sample at a time. It is never changed or deleted.
        factory: a function that makes an agent for a sample; exactly one of these three.
        model_handle: the model that the agents are set to; none with `agent_id`.
        token_data: whether exact token ids and log-probabilities of every turn are kept.

    Raises UsageError: none or several of the three, an agent file that cannot be used, a model for a live agent.
    """

    kind = "letta_agent"

    def __init__(
        self,
        server: LettaServer,
        *,
        agent_file: Path | str | None = None,
        agent_id: str | None = None,
        factory: LettaFactory | None = None,
        model_handle: str | None = None,
        token_data: bool = False,
    ) -> None:
        if sum(source is not None for source in (agent_file, agent_id, factory)) != 1:
            raise UsageError("a Letta agent needs exactly one of `agent_file`, `agent_id` and `agent_script`")
        if agent_id is not None and model_handle is not None:
            raise UsageError("`model_handles` would change the model of the live agent `agent_id`; leave them out")
        self.server = server
        self._file = None if agent_file is None else LettaAgentFile.read(Path(agent_file))
        self._live_id = agent_id
        self._factory = factory
        self._handle = model_handle
        self._token_data = token_data
        self._loop = OnLoop()
        self._one_at_a_time = anyio.Lock()
        self._open_client: AsyncLetta | None = None
        self._n_left = 0

    @property
    def model_handle(self) -> str | None:
        """The model, where the suite chooses it or the agent file names it."""
        return self._handle or (self._file.model if self._file else None)

    @property
    def shared_agent(self) -> str | None:
        """The agent that all samples talk to, whose scores therefore are not independent; None where each has one."""
        return self._live_id

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Where agents come from, and the model they are set to."""
        source: dict[str, Any] = {"agent_id": self._live_id, "server": self.server.base_url}
        if self._file is not None:
            source = {"agent_file": self._file.sha256}
        elif self._factory is not None:
            source = {"agent_script": self._factory.fingerprint or self._factory.reference}
        return {"kind": self.kind, **source, "model": self._handle, "token_data": self._token_data}

    @property
    def client(self) -> AsyncLetta:
        """The client for the server, also for set-up scripts; it lasts until `close`."""
        if self._open_client is None:
            self._open_client = self.server.client()
        return self._open_client

    async def prepare(self) -> None:
        """Raises ModelUnavailable where the server does not answer, refuses the key, or lacks the live agent."""
        await self.server.check(self.client, self._live_id)

    async def run(self, sample: Sample, request: RolloutRequest) -> Rollout:
        """The conversation. Raises TargetError, TargetTimeout.

        A clone whose conversation fails is deleted; one that finishes where the request asks for clean-up.
        """
        conversation = Conversation(sample, request, model_handle=self.model_handle)
        if self._live_id is not None:
            async with self._turn_of_this_sample():
                return await self._lead(conversation, request, [])
        made: list[LettaAgent] = []
        is_finished = False
        try:
            rollout = await self._lead(conversation, request, made)
            is_finished = True
            return rollout
        finally:
            if request.cleanup or not is_finished:
                await self._delete(made)
            else:
                self._n_left += len(made)

    async def close(self) -> None:
        """Gives back the connections, and says how many agents stay on the server."""
        if self._n_left:
            logger.warning(
                "%d agents of this run are left on %s (their ids are `agent_id` in the results); `cleanup: true` "
                "deletes them as soon as they are done with",
                self._n_left,
                self.server,
            )
            self._n_left = 0
        if self._open_client is not None:
            client, self._open_client = self._open_client, None
            await client.close()

    async def _lead(self, conversation: Conversation, request: RolloutRequest, made: list[LettaAgent]) -> Rollout:
        with conversation.limited(request.timeout):
            agent = await self._agent_for(conversation, made)
            try:
                await conversation.lead(agent, self._loop)
            finally:
                conversation.token_data = agent.token_data
            if self._token_data and agent.token_data is None:
                logger.warning("sample %s: the server sent no whole token data", conversation.sample.key)
        return conversation.rollout()

    async def _agent_for(self, conversation: Conversation, made: list[LettaAgent]) -> LettaAgent:
        """The agent of this sample; what was made for it is in `made` as soon as it is known."""
        if self._live_id is not None:
            return self._agent(self._live_id, is_live=True)
        if self._factory is not None:
            agent_id, context = await self._factory.make(self.client, conversation.sample, self._loop)
            made.append(agent := self._agent(agent_id))
            conversation.context = self._factory.kept(context)
        else:
            made.append(agent := await self._clone())
            check_deadline()
        if self._handle is not None:
            await agent.use_model(self._handle)
        if self._file is not None:
            await agent.read_own_memory()
        return agent

    def _agent(self, agent_id: str, *, is_live: bool = False) -> LettaAgent:
        return LettaAgent(self.client, agent_id, is_live=is_live, token_data=self._token_data)

    async def _clone(self) -> LettaAgent:
        """A clone whose id is known also where time runs out meanwhile: else it could not be deleted."""
        if self._file is None:
            raise TargetError("there is no agent file")
        with anyio.CancelScope(shield=True):
            agent_id = await import_agent(
                self.client, self._file.name, self._file.content, project_id=self.server.project_id
            )
        return self._agent(agent_id)

    @asynccontextmanager
    async def _turn_of_this_sample(self) -> AsyncIterator[None]:
        with paused():
            await self._one_at_a_time.acquire()
        try:
            yield
        finally:
            self._one_at_a_time.release()

    async def _delete(self, made: list[LettaAgent]) -> None:
        for agent in made:
            with anyio.move_on_after(_SECONDS_TO_DELETE, shield=True) as scope:
                try:
                    await agent.delete()
                except TargetError as error:
                    logger.warning("%s; it is left on %s", error, self.server)
            if scope.cancelled_caught:
                logger.warning("the agent `%s` may be left on %s: it does not answer", agent.agent_id, self.server)
