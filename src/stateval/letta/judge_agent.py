"""The agent that judges where a suite names none of its own: it can do one thing, hand in a grade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateval.letta.agent import LettaAgent
from stateval.letta.connection import asking

if TYPE_CHECKING:
    from letta_client import AsyncLetta

SUBMIT_GRADE = "submit_grade"
MODEL = "openai/gpt-4o-mini"
EMBEDDING = "letta/letta-free"
SYSTEM = (
    "You judge what somebody else wrote. You are sent one message that says what to grade and how. You answer it by "
    f"calling the tool `{SUBMIT_GRADE}` exactly once, with your reasons and the score."
)
SOURCE = f'''\
def {SUBMIT_GRADE}(rationale: str, score: float) -> str:
    """
    Hands in the grade.

    Args:
        rationale (str): Your reasons, in a few sentences.
        score (float): The score.

    Returns:
        str: That it was taken.
    """
    return "The grade was taken."
'''
_KINDS = ("letta_v1_agent", "memgpt_v2_agent")
_UNKNOWN_KIND = (400, 422)


async def new_judge(client: AsyncLetta, model: str, embedding: str) -> LettaAgent:
    """A fresh judge on the server. Raises TargetError with what the server says."""
    import letta_client

    with asking("the judge cannot be made"):
        tool = await client.tools.upsert(source_code=SOURCE)
        settings: dict[str, Any] = {
            "name": "stateval-judge",
            "system": SYSTEM,
            "model": model,
            "embedding": embedding,
            "tool_ids": [tool.id],
            "tool_rules": [{"type": "exit_loop", "tool_name": SUBMIT_GRADE}],
            "include_base_tools": False,
            "memory_blocks": [],
        }
        try:
            agent = await client.agents.create(agent_type=_KINDS[0], **settings)  # type: ignore[arg-type]
        except letta_client.APIStatusError as error:
            if error.status_code not in _UNKNOWN_KIND:
                raise
            agent = await client.agents.create(agent_type=_KINDS[1], **settings)  # type: ignore[arg-type]
        return LettaAgent(client, agent.id)


def fingerprint(model: str, embedding: str) -> dict[str, Any]:
    """All that such a judge depends on."""
    return {"system": SYSTEM, "source": SOURCE, "model": model, "embedding": embedding}
