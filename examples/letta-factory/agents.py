"""Agents on a Letta server, made for each row."""

from stateval import agent_factory, extractor, suite_setup


@suite_setup
async def check_server(client, model_handle):
    """Ends the run before any agent is made where the server does not have the model."""
    known = [model.handle for model in await client.models.list()]
    if model_handle not in known and not any(handle.endswith(model_handle.rpartition("/")[2]) for handle in known):
        raise LookupError(f"the server has no model {model_handle}; it has {', '.join(known)}")


@agent_factory
async def make(client, sample):
    """An agent that knows one customer; what it was given goes into the results as context."""
    facts = sample.agent_args
    agent = await client.agents.create(
        name="clerk",
        model="letta/letta-free",
        embedding="letta/letta-free",
        memory_blocks=[
            {"label": "persona", "value": "You work at a book shop. Answer in one short sentence."},
            {"label": "human", "value": f"{facts['customer']} waits for the book {facts['book']}."},
        ],
    )
    return agent.id, {"customer": facts["customer"]}


@extractor
def customer(trajectory, config, context):
    """Who the agent was made for."""
    return context["customer"]
