"""A small assistant that keeps three blocks of memory: who the user is, what is to be done, and what was agreed."""

import re

from stateval import agent_factory

ABOUT_THE_USER = re.compile(r"^i(?:'m| am| work| live| prefer| speak)\b", re.IGNORECASE)
NEW_TASK = re.compile(r"(?:remind me to|i need to|please add:?) (.+?)[.!]?$", re.IGNORECASE)
FINISHED = re.compile(r"(?:i have|i've|done:?) (?:done |finished )?(.+?)[.!]?$", re.IGNORECASE)
AGREED = re.compile(r"(?:let's agree|from now on|we agreed)[,:]? (.+?)[.!]?$", re.IGNORECASE)


class Assistant:
    """Puts each sentence into the first block whose form it has, and takes a finished task off by its words."""

    def __init__(self):
        self.blocks = {"user": [], "tasks": [], "agreements": []}

    def send(self, message: str) -> str:
        for sentence in re.split(r"(?<=[.!]) ", message):
            self.file(sentence)
        return f"I keep {sum(map(len, self.blocks.values()))} notes for you."

    def file(self, sentence: str) -> None:
        if agreed := AGREED.search(sentence):
            self.blocks["agreements"].append(agreed.group(1))
        elif task := NEW_TASK.search(sentence):
            self.blocks["tasks"].append(task.group(1))
        elif finished := FINISHED.search(sentence):
            words = set(finished.group(1).lower().split())
            self.blocks["tasks"] = [task for task in self.blocks["tasks"] if not words & set(task.lower().split())]
        elif ABOUT_THE_USER.search(sentence):
            self.blocks["user"].append(sentence)

    def state(self) -> dict[str, str]:
        return {label: "\n".join(notes) for label, notes in self.blocks.items()}


@agent_factory
def make_agent(sample):
    return Assistant()
