"""An agent that sums up a text by its first sentences."""

from stateval import agent_factory


class Summariser:
    """Keeps the first sentences. What comes later in a text is lost, as a judge should notice."""

    sentences = 2

    def send(self, message: str) -> str:
        _, _, text = message.partition(": ")
        return ". ".join(text.split(". ")[: self.sentences]).removesuffix(".") + "."


@agent_factory
def make_agent(sample):
    return Summariser()
