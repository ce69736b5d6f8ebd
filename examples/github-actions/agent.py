"""A help desk that remembers what it was told of each order."""

import re

from stateval import agent_factory

TELLING = re.compile(r"\border (\d+) (?:is|was) (?:now )?(\w+)", re.IGNORECASE)
ASKING = re.compile(r"\b(?:where|what|how)\b.*\border (\d+)", re.IGNORECASE)


class HelpDesk:
    """Files "order N is STATE" under N; a later state replaces an earlier one."""

    def __init__(self):
        self.orders = {}

    def send(self, message: str) -> str:
        question = ASKING.search(message)
        if question:
            number = question.group(1)
            return f"Order {number} is {self.orders[number]}." if number in self.orders else f"No news of {number}."
        for number, state in TELLING.findall(message):
            self.orders[number] = state
        return "Noted."

    def state(self) -> dict[str, str]:
        return {"orders": "\n".join(f"{number}: {state}" for number, state in self.orders.items())}


@agent_factory
def make_agent(sample):
    return HelpDesk()
