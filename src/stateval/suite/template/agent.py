"""A small agent with memory: it keeps what it is told in notes, and answers from them.

Put your own agent here. All that is needed is `send`; `state` shows its memory to graders, and `new_conversation`
empties its context but not its memory.
"""

from __future__ import annotations

import re
from typing import Any

TOLD = re.compile(r"\bmy (?P<topic>[\w ]+?) is (?:called )?(?P<value>\w+)", re.IGNORECASE)
ASKED = re.compile(r"\bwhat is my (?P<topic>[\w ]+?)(?: called)?\?", re.IGNORECASE)


class NoteTaker:
    """Understands "my ... is ..." and "what is my ...?", and nothing else."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}

    def send(self, message: str) -> str:
        if asked := ASKED.search(message):
            topic = asked["topic"].lower()
            return f"Your {topic} is {self.facts.get(topic, 'unknown to me')}."
        if told := TOLD.search(message):
            self.facts[told["topic"].lower()] = told["value"]
            return "I will remember that."
        return "I do not understand."

    def state(self) -> dict[str, str]:
        return {"facts": "\n".join(f"{topic}: {value}" for topic, value in self.facts.items())}

    def new_conversation(self) -> None:
        """It has no context beyond its notes."""


def make_agent(sample: Any) -> NoteTaker:
    """A fresh agent for each sample."""
    return NoteTaker()
