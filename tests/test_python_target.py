"""Target `python`: every form an agent can take, and every way in which it can fail."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import pydantic
import pytest

from stateval.deadline import deadline, paused, stopwatch
from stateval.errors import TargetError, TargetTimeout, UsageError
from stateval.records.message import AssistantMessage, ReasoningMessage, ToolCallMessage, ToolReturnMessage, text_of
from stateval.records.protocols import RolloutRequest, Snapshots
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.targets.python_target import PythonTarget

REQUEST = RolloutRequest(timeout=10)


def talk(
    factory: Callable[..., Any], user: Any = "hello", request: RolloutRequest = REQUEST, **options: Any
) -> Rollout:
    sample = Sample(id="s", input=user)

    async def run() -> Rollout:
        return await PythonTarget(factory, **options).run(sample, request)

    return anyio.run(run)


def texts(rollout: Rollout) -> list[list[str]]:
    return [[text_of(getattr(message, "content", None)) for message in turn] for turn in rollout.trajectory]


class Notebook:
    """A synchronous agent with memory and a context that `new_conversation` empties."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.context: list[str] = []
        self.closed = False

    def send(self, message: str) -> str:
        self.context.append(message)
        self.notes["last"] = message
        return f"{len(self.context)}:{message}"

    def state(self) -> dict[str, str]:
        return self.notes

    def new_conversation(self) -> None:
        self.context.clear()

    def usage(self) -> dict[str, int]:
        return {"prompt_tokens": 3, "completion_tokens": 2}

    def close(self) -> None:
        self.closed = True


class AsyncNotebook(Notebook):
    async def send(self, message: str) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().send(message)

    async def close(self) -> None:  # type: ignore[override]
        super().close()


@pytest.mark.parametrize("kind", [Notebook, AsyncNotebook])
@pytest.mark.parametrize("async_factory", [False, True])
def test_the_whole_protocol(kind: type[Notebook], async_factory: bool) -> None:
    made: list[Notebook] = []

    def make(sample: Sample) -> Notebook:
        made.append(kind())
        return made[-1]

    async def make_async(sample: Sample) -> Notebook:
        return make(sample)

    turns = ["a", {"wait": 0.01}, {"user": "b"}, {"new_conversation": True}, "c"]
    request = RolloutRequest(state=True, snapshots=Snapshots.EVERY_TURN)
    rollout = talk(make_async if async_factory else make, turns, request)

    assert texts(rollout) == [["1:a"], ["2:b"], ["1:c"]]
    assert rollout.conversations == [2]
    assert rollout.agent_state is not None
    assert rollout.agent_state.block("last").value == "c"  # type: ignore[union-attr]
    assert [snapshot.turn for snapshot in rollout.snapshots or ()] == [-1, 0, 1, 2]
    assert rollout.state_after(0).block("last").value == "a"  # type: ignore[union-attr]
    assert rollout.usage is not None
    assert rollout.usage.total_tokens == 5
    assert [agent.closed for agent in made] == [True]


def test_snapshots_at_the_ends_only() -> None:
    rollout = talk(lambda sample: Notebook(), ["a", "b", "c"], RolloutRequest(snapshots=Snapshots.ENDS))
    assert [snapshot.turn for snapshot in rollout.snapshots or ()] == [-1, 2]


def test_state_is_not_looked_at_when_nobody_needs_it() -> None:
    class Shy(Notebook):
        def state(self) -> dict[str, str]:
            raise AssertionError("nobody asked")

    assert talk(lambda sample: Shy()).agent_state is None


def test_a_plain_callable_and_a_partial_of_an_async_function_are_agents() -> None:
    async def answer(prefix: str, message: str) -> str:
        return prefix + message

    assert texts(talk(lambda sample: str.upper)) == [["HELLO"]]
    assert texts(talk(lambda sample: functools.partial(answer, "> "))) == [["> hello"]]
    assert texts(talk(lambda sample: lambda message: answer("late ", message))) == [["late hello"]]


def test_the_model_handle_is_handed_to_factories_that_take_it() -> None:
    rollout = talk(lambda sample, model_handle: lambda message: model_handle, model_handle="openai/x")
    assert texts(rollout) == [["openai/x"]]
    assert rollout.model_handle == "openai/x"


def test_openai_messages_become_records() -> None:
    reply = [
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "c1", "function": {"name": "f", "arguments": '{"a": 1'}},
                {"id": "c2", "function": {"name": "g", "arguments": {"b": 2}}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": "done"},
    ]
    (turn,) = talk(lambda sample: lambda message: reply).trajectory
    assert [type(message) for message in turn] == [
        ReasoningMessage,
        ToolCallMessage,
        ToolReturnMessage,
        AssistantMessage,
    ]
    calls = turn[1]
    assert isinstance(calls, ToolCallMessage)
    assert [(call.name, call.arguments) for call in calls.calls] == [("f", '{"a": 1'), ("g", '{"b":2}')]
    assert [message.id for message in turn] == ["message-0", "message-1", "message-2", "message-3"]


class Reply(pydantic.BaseModel):
    answer: int


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ({"answer": 4}, '{"answer":4}'),
        ([1, 2], "[1,2]"),
        (b"caf\xc3\xa9", "café"),
        (Reply(answer=4), '{"answer":4}'),
        (4, "4"),
        ("ok \ud83d", "ok \ud83d"),
        ("", ""),
    ],
)
def test_fault_31_and_100_any_reply_is_kept_as_its_text(reply: Any, text: str) -> None:
    assert texts(talk(lambda sample: lambda message: reply)) == [[text]]


def test_an_empty_list_is_silence() -> None:
    rollout = talk(lambda sample: lambda message: [])
    assert rollout.trajectory == [[]]
    assert not rollout.has_messages


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        raise error

    return function


async def raises_later(message: str) -> str:
    raise SystemExit(5)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda sample: None, "returned None, which has no method `send(message)`"),
        (lambda sample: 7, "returned int 7"),
        (raising(ZeroDivisionError("oh")), "the factory raised ZeroDivisionError: oh"),
        (raising(SystemExit(3)), "the factory raised SystemExit: 3"),
        (lambda sample: raising(KeyboardInterrupt()), "turn 0: `send` raised KeyboardInterrupt"),
        (lambda sample: raises_later, "turn 0: `send` raised SystemExit: 5"),
        (lambda sample: raising(KeyError("k")), "turn 0: `send` raised KeyError: 'k'"),
        (lambda sample: lambda message: None, "turn 0: the agent returned None"),
        (lambda sample: lambda message: {"role": "wizard"}, "turn 0: unknown role 'wizard'"),
        (lambda sample: lambda message: {"role": "assistant", "tool_calls": [{}]}, "a tool call has no name"),
    ],
)
def test_what_goes_wrong_is_said(factory: Callable[..., Any], message: str) -> None:
    with pytest.raises(TargetError) as caught:
        talk(factory)
    assert message in str(caught.value)


def test_what_was_finished_before_a_failure_is_kept() -> None:
    class Fragile(Notebook):
        def send(self, message: str) -> str:
            if message == "b":
                raise RuntimeError("gone")
            return super().send(message)

    agent = Fragile()
    with pytest.raises(TargetError) as caught:
        talk(lambda sample: agent, ["a", "b", "c"])
    assert caught.value.rollout is not None
    assert texts(caught.value.rollout) == [["1:a"]]
    assert caught.value.cause_type == "RuntimeError"
    assert agent.closed


def test_a_new_conversation_needs_an_agent_that_has_one() -> None:
    with pytest.raises(TargetError, match="has no method `new_conversation"):
        talk(lambda sample: str.upper, ["a", {"new_conversation": True}, "b"])


@pytest.mark.parametrize("value", ["text", 3, ["a"]])
def test_a_state_that_is_no_dict_is_an_error(value: Any) -> None:
    class Odd(Notebook):
        def state(self) -> Any:
            return value

    with pytest.raises(TargetError, match=r"`state\(\)` returned"):
        talk(lambda sample: Odd(), request=RolloutRequest(state=True))


@pytest.mark.parametrize("value", ["many", {"prompt_tokens": -1}, {"cost": float("nan")}])
def test_a_usage_that_is_no_count_is_an_error(value: Any) -> None:
    class Odd(Notebook):
        def usage(self) -> Any:
            return value

    with pytest.raises(TargetError, match="usage"):
        talk(lambda sample: Odd())


@pytest.mark.parametrize("hang", ["factory", "send", "async send"])
def test_a_hanging_agent_times_out_and_is_left_behind(hang: str) -> None:
    released = threading.Event()

    async def wait_forever(message: str) -> str:
        await asyncio.sleep(3600)
        return message

    def make(sample: Sample) -> Any:
        if hang == "factory":
            released.wait(30)
        return wait_forever if hang == "async send" else lambda message: str(released.wait(30))

    started = time.monotonic()
    with pytest.raises(TargetTimeout) as caught:
        talk(make, ["a", "b"], RolloutRequest(timeout=0.2))
    released.set()
    assert time.monotonic() - started < 10
    assert "longer than 0.2 s; 0 of 2 turns were finished" in str(caught.value)


def test_waiting_does_not_count_against_the_time_out() -> None:
    for factory in (lambda sample: Notebook(), lambda sample: AsyncNotebook()):
        rollout = talk(factory, ["a", {"wait": 0.6}, "b"], RolloutRequest(timeout=0.4))
        assert len(rollout.trajectory) == 2


def test_an_abandoned_agent_is_told_nothing_more_and_is_closed() -> None:
    closed = threading.Event()
    heard: list[str] = []

    class Slow(Notebook):
        def send(self, message: str) -> str:
            heard.append(message)
            time.sleep(0.5)
            return message

        def close(self) -> None:
            closed.set()

    with pytest.raises(TargetTimeout):
        talk(lambda sample: Slow(), ["a", "b", "c"], RolloutRequest(timeout=0.1))
    assert closed.wait(5)
    assert heard == ["a"]


def test_one_agent_for_two_samples_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    shared = Notebook()

    async def run() -> None:
        target = PythonTarget(lambda sample: shared)
        for number in range(3):
            await target.run(Sample(id=number, input="a"), REQUEST)

    anyio.run(run)
    assert [record.getMessage() for record in caplog.records if "same object" in record.getMessage()] != []
    assert len(caplog.records) == 1


@pytest.mark.parametrize("factory", [lambda client, sample: 1, lambda: 1, lambda a, b, c: 1, 5])
def test_a_factory_with_other_parameters_is_refused_when_the_suite_is_built(factory: Any) -> None:
    with pytest.raises(UsageError):
        PythonTarget(factory)


def test_fault_68_as_many_conversations_run_at_once_as_asked() -> None:
    everybody = threading.Barrier(200)

    def send(message: str) -> str:
        everybody.wait(timeout=60)  # breaks unless all 200 are in flight together
        return message

    async def run() -> list[Rollout]:
        target = PythonTarget(lambda sample: send)
        rollouts: list[Rollout] = []

        async def one(number: int) -> None:
            rollouts.append(await target.run(Sample(id=number, input="a"), RolloutRequest(timeout=90)))

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(one, number)
        return rollouts

    assert len(anyio.run(run)) == 200


def test_stopwatches_hold_while_waiting_and_tell_those_around_them() -> None:
    async def run() -> tuple[float, float]:
        with stopwatch() as outer:
            with stopwatch() as inner:
                await anyio.sleep(0.05)
                with paused():
                    await anyio.sleep(0.5)
            return inner.seconds, outer.seconds

    for seconds in anyio.run(run):
        assert 0.04 < seconds < 0.45


def test_pauses_may_overlap_and_the_limit_stays() -> None:
    async def wait(seconds: float) -> None:
        with paused():
            await anyio.sleep(seconds)

    async def run() -> None:
        with deadline(0.3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait, 0.2)
                tasks.start_soon(wait, 0.4)
            await anyio.sleep(30)

    with pytest.raises(TimeoutError):
        anyio.run(run)
