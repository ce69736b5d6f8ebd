"""A stateful agent in this process: memory, a history, and the way from a message to an answer."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from stateval.errors import ModelError, ModelUnavailable, TargetError
from stateval.llm import ChatMessage, ChatModel, ChatReply, ChatRequest, Generation
from stateval.records.encoding import dump_json, load_json
from stateval.records.message import (
    AssistantMessage,
    MessageRecord,
    ReasoningMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturnMessage,
)
from stateval.records.state import AgentState
from stateval.records.usage import Usage
from stateval.targets.agent_file import AgentFile
from stateval.targets.agent_prompts import (
    NO_STEP,
    STEP_TOOLS,
    answer_message,
    step_messages,
    step_schema,
    system_with_memory,
)
from stateval.targets.memory_tools import MEMORY_TOOLS, Memory, ToolFailure

MOST_STEPS = 10
_LONGEST_ANSWER = 128
_LONGEST_STEP = 256


class LocalAgent:
    """One agent for one sample; it follows the Agent protocol.

    A model that calls tools by itself is shown them and may take up to `MOST_STEPS` steps before it has to answer. Any
    other model takes one memory step as JSON under a schema, then answers. What the model does is reported as it is:
    a wrong step is carried out, a failing one fails.
    """

    def __init__(self, source: AgentFile, model: ChatModel, generation: Generation) -> None:
        self.agent_id = f"agent-local-{uuid.uuid4()}"
        self._system = source.definition.system
        self._memory = Memory(source.definition)
        self._memory_tools = source.memory_tools or tuple(MEMORY_TOOLS)
        self._custom_tools = {tool.definition.name: tool for tool in source.custom_tools}
        self._model = model
        self._generation = generation
        self._history: list[ChatMessage] = []
        self._usage: list[dict[str, Any]] = []
        self._steps: list[Usage] = []
        self._calls = 0

    async def send(self, message: str) -> list[MessageRecord]:
        """Everything that this message led to. Raises TargetError where a model call failed."""
        self._steps = []
        try:
            if self._model.native_tools and (messages := await self._with_tools(message)) is not None:
                return messages
            return await self._with_schema(message)
        except ModelUnavailable:
            raise
        except ModelError as error:
            raise TargetError(str(error), cause_type=type(error).__name__) from error
        finally:
            self._usage.append(_usage_record(self._steps))

    async def state(self) -> AgentState:
        """The memory as it is now."""
        return self._memory.state().model_copy(update={"id": self.agent_id})

    async def new_conversation(self) -> None:
        """Forgets what was said; memory stays."""
        self._history.clear()

    async def usage(self) -> list[dict[str, Any]]:
        """Per user turn the tokens, in the shape of Letta's `usage_statistics`."""
        return self._usage

    async def _with_schema(self, message: str) -> list[MessageRecord]:
        messages = await self._memory_step(message) if self._memory.writable else []
        asked = answer_message(self._memory.state(), message)
        bounded = self._generation.model_copy(update={"max_tokens": self._generation.max_tokens or _LONGEST_ANSWER})
        request = ChatRequest((ChatMessage("system", self._system), *self._history, asked), bounded)
        reply = self._counted(await self._model.chat(request))
        self._history += [ChatMessage("user", message), ChatMessage("assistant", reply.text)]
        return [*messages, *_answer(reply)]

    async def _memory_step(self, message: str) -> list[MessageRecord]:
        bounded = self._generation.model_copy(update={"max_tokens": _LONGEST_STEP})
        messages = step_messages(self._memory.state(), message)
        request = ChatRequest(messages, bounded, fixed=len(messages) - 1)
        step, reply = await self._model.structured(request, step_schema(self._memory.writable))
        self._counted(reply)
        if step["tool"] == NO_STEP:
            return []
        arguments = {"label": step["label"], STEP_TOOLS[step["tool"]]: step["value"]}
        call = ToolCall(name=step["tool"], arguments=dump_json(arguments).decode("utf-8"))
        call = call.model_copy(update={"tool_call_id": self._call_id(call)})
        return [ToolCallMessage(tool_call=call, tool_calls=[call]), await self._called(call)]

    async def _with_tools(self, message: str) -> list[MessageRecord] | None:
        """The turn of a model that calls tools, or None where its endpoint has just refused them."""
        talk = [ChatMessage("user", message)]
        messages: list[MessageRecord] = []
        for step in range(MOST_STEPS + 1):
            try:
                reply = self._counted(await self._model.chat(self._request(talk, may_call=step < MOST_STEPS)))
            except ModelError:
                if not talk[1:] and not self._model.native_tools:
                    return None
                raise
            calls = [call.model_copy(update={"tool_call_id": self._call_id(call)}) for call in reply.tool_calls]
            talk.append(ChatMessage("assistant", reply.text, tuple(calls)))
            if not calls or step == MOST_STEPS:
                messages += _answer(reply)
                break
            messages += _answer(reply) if reply.text or reply.reasoning else []
            messages.append(ToolCallMessage(tool_call=calls[0], tool_calls=calls))
            for call in calls:
                returned = await self._called(call)
                messages.append(returned)
                talk.append(ChatMessage("tool", str(returned.tool_return), tool_call_id=call.tool_call_id))
        self._history += talk
        return messages

    def _request(self, talk: list[ChatMessage], *, may_call: bool) -> ChatRequest:
        system = system_with_memory(self._system, self._memory.state())
        memory = [MEMORY_TOOLS[name].definition for name in self._memory_tools] if self._memory.writable else []
        tools = (*memory, *(tool.definition for tool in self._custom_tools.values()))
        return ChatRequest((system, *self._history, *talk), self._generation, tools, may_call)

    async def _called(self, call: ToolCall) -> ToolReturnMessage:
        returned = ToolReturnMessage(tool_call_id=call.tool_call_id, name=call.name)
        try:
            result = await self._carried_out(call)
        except ToolFailure as failure:
            return returned.model_copy(update={"tool_return": str(failure), "status": "error"})
        return returned.model_copy(update={"tool_return": result})

    async def _carried_out(self, call: ToolCall) -> str:
        arguments = _arguments(call.arguments)
        if call.name in MEMORY_TOOLS:
            return MEMORY_TOOLS[call.name].call(self._memory, arguments)
        if call.name in self._custom_tools:
            return await self._custom_tools[call.name].call(arguments)
        raise ToolFailure(
            f"there is no tool `{call.name}`; there are {', '.join((*MEMORY_TOOLS, *self._custom_tools))}"
        )

    def _call_id(self, call: ToolCall) -> str:
        self._calls += 1
        return call.tool_call_id or f"call-{self._calls}"

    def _counted(self, reply: ChatReply) -> ChatReply:
        self._steps.append(reply.usage)
        return reply


def _answer(reply: ChatReply) -> list[MessageRecord]:
    thought = [ReasoningMessage(reasoning=reply.reasoning)] if reply.reasoning else []
    if reply.tool_calls and not reply.text:
        return [*thought]
    cut_off = {"finish_reason": "length"} if reply.is_cut_off else {}
    return [*thought, AssistantMessage(content=reply.text, **cut_off)]


def _arguments(text: str) -> Mapping[str, Any]:
    """The arguments that a model wrote; none at all may be written as nothing or null. Raises ToolFailure."""
    try:
        arguments = load_json(text) if text.strip() else {}
    except ValueError as error:
        raise ToolFailure(f"the arguments are not valid JSON: {error}") from error
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise ToolFailure("the arguments must be a JSON object")
    return arguments


def _usage_record(steps: list[Usage]) -> dict[str, Any]:
    total = sum(steps, start=Usage(cost=0.0))
    fields = {key: value for key, value in total.to_dict().items() if value is not None}
    if not steps:
        fields.pop("cost", None)
    counts = {"step_count": len(steps), "total_tokens": total.total_tokens}
    return {"message_type": "usage_statistics", **fields, **counts}
