"""Target `local_agent`: a stateful agent in this process, with Letta's memory blocks and tools and without a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stateval.errors import UsageError
from stateval.llm import DEFAULT_MODEL, ChatMessage, ChatRequest, Generation, open_model
from stateval.records.protocols import RolloutRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.targets import agent_prompts
from stateval.targets.agent_definition import AgentDefinition
from stateval.targets.agent_file import AgentFile, read_agent_file
from stateval.targets.agent_loop import MOST_STEPS, LocalAgent
from stateval.targets.callers import OnLoop
from stateval.targets.conversation import Conversation

__all__ = ["AgentDefinition", "LocalAgentTarget"]

_SEED = 1


class LocalAgentTarget:
    """Makes a fresh agent for every sample and leads the conversation with it.

    Args:
        model: `embedded/<name>` (the default is `embedded/smollm2-135m`), `openai/<model>`, or the name of a model at
            `base_url`.
        agent: the agent; exactly one of this and `agent_file`.
        agent_file: a Letta agent file (`.af`), or a JSON object in the form of `agent`.
        base_url: an OpenAI-compatible endpoint.
        api_key: the key for it.
        generation: `temperature` (0), `max_tokens` and `seed`.
        allow_tools: whether tools whose source code is in the agent file may run in this process.

    Raises UsageError (with what is wrong in the agent, the settings or the model's name), MissingExtra.
    """

    kind = "local_agent"

    def __init__(
        self,
        *,
        model: str | None = None,
        agent: AgentDefinition | Mapping[str, Any] | None = None,
        agent_file: Path | str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        generation: Generation | Mapping[str, Any] | None = None,
        allow_tools: bool = False,
    ) -> None:
        self._source = _source(agent, agent_file, allow_tools)
        self._generation = _generation(generation, self._source)
        self._model = open_model(model or DEFAULT_MODEL, base_url=base_url, api_key=api_key)
        self._loop = OnLoop()
        if self._source.custom_tools and not self._model.native_tools:
            raise UsageError(
                f"the agent file brings tools of its own, and model `{self._model.name}` cannot call them; choose a "
                "model that calls tools, at an OpenAI-compatible endpoint"
            )

    @property
    def model_handle(self) -> str:
        """The model that runs."""
        return self._model.name

    @property
    def has_price(self) -> bool:
        """Whether the cost of its model's calls is known."""
        return self._model.has_price

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The agent, its model, how it writes, and all that is fixed in its prompts."""
        return {
            "kind": self.kind,
            "agent": self._source.definition.model_dump(),
            "memory_tools": self._source.memory_tools,
            "custom_tools": {tool.definition.name: tool.sha256 for tool in self._source.custom_tools},
            "model": self._model.fingerprint,
            "generation": self._generation.model_dump(),
            "prompts": agent_prompts.fingerprint(),
            "most_steps": MOST_STEPS,
        }

    async def prepare(self) -> None:
        """Has the model answer once, so that an embedded one is fetched and loaded before any sample runs.

        Raises ModelUnavailable where it cannot be had.
        """
        if not self._model.native_tools:
            await self._model.chat(ChatRequest((ChatMessage("user", "Hello"),), Generation(max_tokens=1)))

    async def run(self, sample: Sample, request: RolloutRequest) -> Rollout:
        """The conversation. Raises TargetError, TargetTimeout, ModelUnavailable."""
        conversation = Conversation(sample, request, model_handle=self.model_handle)
        with conversation.limited(request.timeout):
            await conversation.lead(LocalAgent(self._source, self._model, self._generation), self._loop)
        return conversation.rollout()

    async def close(self) -> None:
        """Gives back the connections to the model's endpoint."""
        await self._model.close()


def _source(
    agent: AgentDefinition | Mapping[str, Any] | None, agent_file: Path | str | None, allow_tools: bool
) -> AgentFile:
    if (agent is None) == (agent_file is None):
        raise UsageError("a local agent needs exactly one of `agent` and `agent_file`")
    if agent_file is not None:
        return read_agent_file(Path(agent_file), allow_tools=allow_tools)
    if isinstance(agent, AgentDefinition):
        return AgentFile(agent)
    try:
        return AgentFile(AgentDefinition.model_validate(agent))
    except ValidationError as error:
        raise UsageError(f"`agent` is wrong: {_told(error)}") from error


def _generation(generation: Generation | Mapping[str, Any] | None, source: AgentFile) -> Generation:
    if isinstance(generation, Generation):
        return generation
    settings = {"seed": _SEED, "max_tokens": source.max_tokens, **(generation or {})}
    try:
        return Generation.model_validate(settings)
    except ValidationError as error:
        raise UsageError(f"`generation` is wrong: {_told(error)}") from error


def _told(error: ValidationError) -> str:
    return "; ".join(f"`{'.'.join(map(str, problem['loc']))}`: {problem['msg']}" for problem in error.errors())
