"""A small agent that writes to its memory with a tool, and shows each call as part of its answer."""

import json
import re

from stateval import agent_factory

TELLING = re.compile(r"\b(?:my|the) ([\w ]+?) is ([\w' ]+?)(?= and |[.,;!]|$)", re.IGNORECASE)
ASKING = re.compile(r"\b(?:my|the) ([\w ]+?)\?", re.IGNORECASE)


class Clerk:
    """Writes whatever it is told, even what it knows already, and the whole sentence where it did not understand."""

    def __init__(self):
        self.facts = {}
        self.calls = 0

    def send(self, message: str) -> list[dict]:
        if message.endswith("?"):
            return [{"role": "assistant", "content": self.answer(message)}]
        told = TELLING.findall(message) or [("remark", message)]
        messages = [step for thing, value in told for step in self.write(thing.lower(), value)]
        return [*messages, {"role": "assistant", "content": "I have written that down."}]

    def write(self, thing: str, value: str) -> list[dict]:
        self.facts[thing] = value
        self.calls += 1
        call_id = f"call-{self.calls}"
        function = {"name": "write_fact", "arguments": json.dumps({"thing": thing, "value": value})}
        return [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": "written"},
        ]

    def answer(self, question: str) -> str:
        asked = ASKING.search(question)
        thing = asked.group(1).lower() if asked else ""
        return f"The {thing} is {self.facts[thing]}." if thing in self.facts else "That is not written down."

    def state(self) -> dict[str, str]:
        return {"facts": "\n".join(f"{thing}: {value}" for thing, value in self.facts.items())}


@agent_factory
def make_agent(sample):
    return Clerk()
