"""A small agent with two memories: notes, which last, and what was said in this conversation, which does not."""

import re

from stateval import agent_factory

TELLING = re.compile(r"\bmy ([\w ]+?) is (?:now |called )?([\w' -]+?)(?= and |[.,;!]|$)", re.IGNORECASE)
ASKING = re.compile(r"\bwh(?:at|o|en|ere)\b.*\bmy ([\w ]+?)\?", re.IGNORECASE)


class Notebook:
    """Files "my X is Y" under X; a later Y replaces an earlier one. Anything else it only overhears."""

    def __init__(self):
        self.notes = {}
        self.overheard = []

    def send(self, message: str) -> str:
        question = ASKING.search(message)
        if question:
            return self.answer(question.group(1))
        self.overheard.append(message)
        told = TELLING.findall(message)
        for thing, value in told:
            self.notes[thing.lower()] = value
        return "Noted." if told else "I see."

    def answer(self, thing: str) -> str:
        if thing.lower() in self.notes:
            return f"Your {thing} is {self.notes[thing.lower()]}."
        said = [sentence for sentence in self.overheard if thing.lower() in sentence.lower()]
        return f"You said: {said[-1]}" if said else f"I do not know your {thing}."

    def state(self) -> dict[str, str]:
        return {"notes": "\n".join(f"{thing}: {value}" for thing, value in self.notes.items())}

    def new_conversation(self) -> None:
        self.overheard.clear()


@agent_factory
def make_agent(sample):
    return Notebook()
