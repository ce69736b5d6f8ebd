"""An agent that answers letters to a shop, always with one of three answers."""

from stateval import agent_factory


class Clerk:
    """Is sorry where something is broken, gives the hours where it is asked when, and thanks for the rest."""

    def send(self, message: str) -> str:
        text = message.lower()
        if "broken" in text or "late" in text:
            return "I am very sorry. We send you a new one today, free of charge."
        if "when" in text:
            return "We are open from 9 to 17, Monday to Friday."
        return "Thank you for writing to us."


@agent_factory
def make_agent(sample):
    return Clerk()
