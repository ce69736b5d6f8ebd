"""A small agent that keeps every statement it hears and answers with the one that fits the question best."""

import re
from collections import Counter

from stateval import agent_factory

COMMON = {
    "a",
    "an",
    "and",
    "are",
    "at",
    "do",
    "does",
    "how",
    "in",
    "is",
    "it",
    "of",
    "on",
    "the",
    "to",
    "what",
    "when",
    "where",
    "who",
}


class Librarian:
    """Chooses by the words in common, a rare word counting more. A correction replaces the nearest statement."""

    def __init__(self):
        self.statements = []

    def send(self, message: str) -> str:
        if message.endswith("?"):
            return self.nearest(message) or "Nobody told me."
        corrected = re.match(r"(?:correction|no|actually|sorry)[,:]? (.+)", message, re.IGNORECASE)
        if corrected and self.statements:
            message = corrected.group(1)[0].upper() + corrected.group(1)[1:]
            self.statements.remove(self.nearest(message) or self.statements[-1])
        self.statements.append(message)
        return "Thank you, I have kept that."

    def nearest(self, text: str) -> str | None:
        frequency = Counter(word for statement in self.statements for word in words(statement))
        scored = [(sum(1 / frequency[word] for word in words(text) & words(s)), s) for s in self.statements]
        best, statement = max(scored, default=(0, None))
        return statement if best else None

    def state(self) -> dict[str, str]:
        return {"statements": "\n".join(self.statements)}


def words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"\w+", text.lower())} - COMMON


@agent_factory
def make_agent(sample):
    return Librarian()
