"""A small agent that fills in a profile while the user talks, and shows it as JSON when asked."""

import json
import re

from stateval import agent_factory

NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
FORMS = {
    "name": re.compile(r"(?:my name is|i am called|call me) ([A-Z]\w+)", re.IGNORECASE),
    "city": re.compile(r"(?:live in|moved to|moving to) ([A-Z]\w+(?: [A-Z]\w+)*)"),
    "children": re.compile(r"have (\w+) (?:kids|children)", re.IGNORECASE),
    "diet": re.compile(r"(?:i am|i'm) (?:a |an )?(vegan|vegetarian|pescatarian)", re.IGNORECASE),
}


class Registrar:
    """Reads a few sentence forms; what it hears later replaces what it heard before."""

    def __init__(self):
        self.profile = {}

    def send(self, message: str) -> str:
        if "profile" in message.lower():
            profile = json.dumps(self.profile, indent=2)
            return f"Here is what I know:\n```json\n{profile}\n```\nTell me if anything is wrong."
        for field, form in FORMS.items():
            for found in form.findall(message):
                self.profile[field] = NUMBERS.get(found.lower(), found) if field == "children" else found
        return "Thank you."

    def state(self) -> dict[str, str]:
        return {"profile": json.dumps(self.profile)}


@agent_factory
def make_agent(sample):
    return Registrar()
