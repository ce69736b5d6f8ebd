"""What talks to a Letta server: connections, turns read from their stream, agents and their memory."""

from stateval.letta.agent import LettaAgent
from stateval.letta.connection import LettaServer
from stateval.letta.turns import LettaTurn

__all__ = ["LettaAgent", "LettaServer", "LettaTurn"]
