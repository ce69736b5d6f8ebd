"""Letta's agent files, as a server takes them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from stateval.errors import UsageError
from stateval.records.encoding import load_json


@dataclass(frozen=True, slots=True)
class LettaAgentFile:
    """The content of a file with one agent; `model` is the handle or the name that it gives to its model."""

    name: str
    content: bytes
    sha256: str
    model: str | None

    @classmethod
    def read(cls, path: Path) -> LettaAgentFile:
        """Raises UsageError: the file cannot be read, is no agent file, or holds no agent or several."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"the agent file {path} cannot be read: {error.strerror or error}") from error
        try:
            data = load_json(content)
        except ValueError as error:
            raise UsageError(f"the agent file {path} is not JSON: {error}") from error
        agents = data.get("agents") if isinstance(data, dict) else None
        if not isinstance(agents, list) or not all(isinstance(agent, dict) for agent in agents):
            raise UsageError(f"the agent file {path} has no list `agents`, as Letta's `export_file` writes it")
        if len(agents) != 1:
            raise UsageError(f"the agent file {path} holds {len(agents)} agents; a target is made from one")
        return cls(path.name, content, sha256(content).hexdigest(), _model_of(agents[0]))


def _model_of(agent: dict[str, object]) -> str | None:
    config = agent.get("llm_config")
    named = (config.get("handle") or config.get("model")) if isinstance(config, dict) else None
    return named if isinstance(named, str) else None
