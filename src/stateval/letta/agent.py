"""An agent on a Letta server, as the Agent protocol has it: it is told things, and shows its memory."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any

from stateval.errors import TargetError
from stateval.letta.connection import asking
from stateval.letta.turns import LettaTurn
from stateval.records.encoding import plain
from stateval.records.rollout import TurnTokenData
from stateval.records.state import AgentState, Block

if TYPE_CHECKING:
    from letta_client import AsyncLetta

_MOST_BLOCKS = 1000
_NOT_THERE = (404, 405)


class LettaAgent:
    """One agent, by its id.

    Args:
        client: a client of the server it lives on.
        agent_id: its id.
        is_live: whether it is somebody's own agent, whose messages must never be deleted.
        token_data: whether exact token ids and log-probabilities are asked for with every turn.
    """

    def __init__(self, client: AsyncLetta, agent_id: str, *, is_live: bool = False, token_data: bool = False) -> None:
        self.agent_id = agent_id
        self._client = client
        self._is_live = is_live
        self._wants_tokens = token_data
        self._n_turns = 0
        self._conversation: str | None = None
        self._usage: list[dict[str, Any]] = []
        self._tokens: list[TurnTokenData] | None = [] if token_data else None

    @property
    def token_data(self) -> list[TurnTokenData] | None:
        """The token data of all turns so far; None where they were not asked for, or any part of them is missing."""
        return self._tokens or None

    async def send(self, message: str) -> list[dict[str, Any]]:
        """The messages that this message of the user leads to. Raises TargetError."""
        number, self._n_turns = self._n_turns, self._n_turns + 1
        with asking(f"turn {number}"):
            turn = await self._turn(message)
        if turn.usage is not None:
            self._usage.append(turn.usage)
        if self._tokens is not None:
            self._tokens = None if turn.token_data is None else [*self._tokens, *turn.token_data]
        return turn.messages

    async def _turn(self, message: str) -> LettaTurn:
        client = self._client.with_options(max_retries=0, timeout=None)
        body: dict[str, Any] = {"messages": [{"role": "user", "content": message}]}
        if self._wants_tokens:
            return await self._turn_with_tokens(client, body)
        path = f"/v1/agents/{self.agent_id}/messages/stream"
        if self._conversation is not None:
            path = f"/v1/conversations/{self._conversation}/messages"
            body["streaming"] = True
        # Older servers stream at this address alone; they answer `messages.create(streaming=True)` all at once.
        return await LettaTurn.from_stream(await _stream(client, path, {**body, "stream_tokens": False}))

    async def _turn_with_tokens(self, client: AsyncLetta, body: dict[str, Any]) -> LettaTurn:
        """Token data come with whole answers only."""
        wanted = {**body, "streaming": False, "return_token_ids": True, "return_logprobs": True}
        path = f"/v1/agents/{self.agent_id}/messages"
        if self._conversation is not None:
            path = f"/v1/conversations/{self._conversation}/messages"
        return LettaTurn.from_response(await client.post(path, cast_to=object, body=wanted))

    async def state(self) -> AgentState:
        """Its memory, and what else the server tells of it. Raises TargetError."""
        with asking("the agent's state cannot be had"):
            agent = await self._client.agents.retrieve(self.agent_id, include=["agent.blocks", "agent.tools"])
            blocks = await self._blocks()
        fields = plain(agent.model_dump(mode="json", exclude_none=True))
        return AgentState.model_validate({**fields, "blocks": blocks})

    async def _blocks(self) -> list[Block]:
        """All blocks in one page: older servers give the same page for ever."""
        page = await self._client.agents.blocks.list(self.agent_id, limit=_MOST_BLOCKS)
        return [Block.model_validate(plain(block.model_dump(mode="json", exclude_none=True))) for block in page.items]

    async def new_conversation(self) -> None:
        """Leaves all that was said behind; memory stays. Raises TargetError."""
        import letta_client

        with asking("a new conversation cannot be begun"):
            try:
                self._conversation = (await self._client.conversations.create(agent_id=self.agent_id)).id
                return
            except letta_client.APIStatusError as error:
                if error.status_code not in _NOT_THERE:
                    raise
            if self._is_live:
                raise TargetError(
                    "this release of the Letta server has no conversations, and to begin anew would delete the "
                    "messages of the live agent; use `agent_file`, or a newer server"
                )
            await self._client.agents.messages.reset(self.agent_id, add_default_initial_messages=False)

    def usage(self) -> list[dict[str, Any]] | None:
        """What each turn took, where the server said so."""
        return self._usage or None

    async def use_model(self, handle: str) -> None:
        """Has it answer with another model. Raises TargetError with what the server says."""
        with asking(f"the server does not take the model `{handle}`"):
            await self._client.agents.update(self.agent_id, model=handle)

    async def read_own_memory(self) -> None:
        """Renders its prompt anew, so that its model sees the blocks: some servers do not after an import.

        Servers that know no such thing render it by themselves. Raises TargetError.
        """
        import letta_client

        with asking("the agent's prompt cannot be rendered"):
            try:
                await self._client.agents.recompile(self.agent_id)
            except letta_client.APIStatusError as error:
                if error.status_code not in _NOT_THERE:
                    raise

    async def delete(self) -> None:
        """Deletes it, and those of its blocks that no other agent has. One that is gone already is no error.

        Raises TargetError.
        """
        import letta_client

        with asking(f"the agent `{self.agent_id}` cannot be deleted"):
            try:
                blocks = [block.id for block in await self._blocks() if block.id]
                await self._client.agents.delete(self.agent_id)
            except letta_client.NotFoundError:
                return
            for block in blocks:
                await self._delete_block(block)

    async def _delete_block(self, block_id: str) -> None:
        import letta_client

        try:
            if not (await self._client.blocks.agents.list(block_id, limit=1)).items:
                await self._client.blocks.delete(block_id)
        except letta_client.NotFoundError:
            return


async def _stream(client: AsyncLetta, path: str, body: dict[str, Any]) -> AsyncIterable[Any]:
    from letta_client import AsyncStream

    return await client.post(path, cast_to=object, body=body, stream=True, stream_cls=AsyncStream[object])


async def import_agent(client: AsyncLetta, name: str, content: bytes, *, project_id: str | None = None) -> str:
    """The id of a fresh clone of the agent in a file, which must hold one. Raises TargetError."""
    options: Any = {"project_id": project_id} if project_id else {}
    once = client.with_options(max_retries=0)
    with asking("the server does not take the agent file"):
        answer = await once.agents.import_file(file=(name, content), append_copy_suffix=False, **options)
    made = list(answer.agent_ids)
    if len(made) != 1:
        for agent_id in made:
            await LettaAgent(client, agent_id).delete()
        raise TargetError(f"the agent file made {len(made)} agents; one is wanted")
    return made[0]
