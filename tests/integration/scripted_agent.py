"""A model for Letta's agents that does what the user's words say, in the words that each release understands.

The user says what is to happen: `remember likes pears` (a memory is inserted into the block `human`), `correct pears ->
plums` (replaced in it), `fail` (the endpoint refuses), `recall` (the agent says what its prompt says of the human);
anything else is answered with "Hello." Agents of older servers speak through the tool `send_message`.
"""

from __future__ import annotations

import re

from tests.support.model_server import Reply, Request, refused


def speaks(request: Request) -> Reply:
    """The answer to what was said last."""
    last = request.messages[-1]
    text = str(last.get("content"))
    if last["role"] == "tool" or "heartbeat" in text:
        return _said(request, "Noted.") if _calls(request)[-1:] != ["send_message"] else Reply("")
    # Servers wrap what the user says in JSON of their own.
    if found := re.search(r"remember ([\w ]+)", text):
        return _call(request, "memory_insert", new=found[1])
    if found := re.search(r"correct ([\w ]+) -> ([\w ]+)", text):
        return _call(request, "memory_replace", old=found[1], new=found[2])
    if "fail" in text:
        return refused(400, "the scripted model refuses")
    return _said(request, human_in(request) if "recall" in text else "Hello.")


def human_in(request: Request) -> str:
    """What the prompt holds in the block `human`."""
    found = re.search(r"<human>.*?<value>(.*?)</value>", request.system, re.DOTALL)
    return " ".join(found[1].split()) if found else "nothing"


def _is_old(request: Request) -> bool:
    return "send_message" in request.tools


def _said(request: Request, text: str) -> Reply:
    return (
        Reply(tool_calls=[("send_message", {"thinking": "so", "message": text})]) if _is_old(request) else Reply(text)
    )


def _call(request: Request, tool: str, **strings: str) -> Reply:
    suffix = "str" if _is_old(request) else "string"
    arguments = {"label": "human", **{f"{name}_{suffix}": text for name, text in strings.items()}}
    if _is_old(request):
        arguments |= {"thinking": "so", "request_heartbeat": "true"}
    return Reply(tool_calls=[(tool, arguments)])


def _calls(request: Request) -> list[str]:
    return [call["function"]["name"] for message in request.messages for call in message.get("tool_calls") or ()]
