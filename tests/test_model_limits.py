"""How many calls are in flight at an endpoint, and how fast they begin: adapting, fair, and never losing a place."""

from __future__ import annotations

import random
import time

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stateval.deadline import deadline, stopwatch
from stateval.errors import PermanentModelError, TooManyCalls, TransientModelError, UsageError
from stateval.llm import ChatMessage, ChatRequest, Retries, open_model
from stateval.llm.limits import Limit, place_at
from tests.support.model_server import ModelServer, Reply, rate_limited, refused

HELLO = ChatRequest((ChatMessage("user", "hello"),))
QUICK = Retries(tries=6, first_wait=0.001, longest_wait=0.002, jitter=0)


def ask_at_once(server: ModelServer, calls: int, **settings_of_model) -> list[str]:
    """As many calls at once; what became of each."""
    texts: list[str] = []

    async def one(model) -> None:
        try:
            texts.append((await model.chat(HELLO)).text)
        except (PermanentModelError, TransientModelError) as error:
            texts.append(type(error).__name__)

    async def run() -> None:
        model = open_model("scripted", base_url=server.base_url, retries=QUICK, **settings_of_model)
        async with anyio.create_task_group() as tasks:
            for _ in range(calls):
                tasks.start_soon(one, model)
        await model.close()

    anyio.run(run)
    return texts


def test_no_more_calls_are_in_flight_than_allowed():
    with ModelServer(Reply("ok", delay=0.02)) as server:
        assert ask_at_once(server, 40, max_concurrent=4) == ["ok"] * 40
    assert server.peak <= 4


def test_after_a_429_fewer_calls_are_in_flight_and_every_one_is_answered():
    def answer(request):
        return rate_limited(0) if request.number < 16 else Reply("ok", delay=0.01)

    with ModelServer(answer) as server:
        assert ask_at_once(server, 60, max_concurrent=16) == ["ok"] * 60
    later = server.requests[-30:]
    assert len(server.requests) == 76
    assert len(later) == 30


def test_fault_70_a_held_endpoint_is_called_by_nobody_before_its_time():
    with ModelServer(lambda request: rate_limited(1) if request.number == 0 else "ok") as server:

        async def run() -> list[float]:
            began: list[float] = []
            model = open_model("scripted", base_url=server.base_url, retries=QUICK)

            async def one(wait: float) -> None:
                await anyio.sleep(wait)
                await model.chat(HELLO)
                began.append(time.monotonic())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one, 0)
                for number in range(5):
                    tasks.start_soon(one, 0.2 + number / 100)
            await model.close()
            return began

        assert len(anyio.run(run)) == 6
    refused_at = server.requests[0].at
    later = [request.at - refused_at for request in server.requests[1:]]
    assert min(later) >= 0.99
    assert len(later) == 6


def test_fault_73_a_permanent_error_is_asked_once_and_slows_nobody_down():
    with ModelServer(refused(400, "no such thing")) as server:
        assert ask_at_once(server, 5) == ["StatusError"] * 5
    assert len(server.requests) == 5


def test_calls_a_minute_are_spaced_evenly():
    with ModelServer("ok") as server:
        assert ask_at_once(server, 6, requests_per_minute=600) == ["ok"] * 6
    times = sorted(request.at for request in server.requests)
    assert times[-1] - times[0] >= 0.4


@pytest.mark.parametrize("per_minute", [0, -1, float("nan"), float("inf")])
def test_a_wrong_rate_is_refused(per_minute):
    with pytest.raises(UsageError, match="requests_per_minute"):
        open_model("m", base_url="http://127.0.0.1:1", requests_per_minute=per_minute)


def test_waiting_for_a_place_counts_for_no_deadline():
    async def run() -> float:
        with deadline(0.2), stopwatch() as watch:
            async with place_at("here", 1):
                pass
            return watch.seconds

    async def hold() -> float:
        async with anyio.create_task_group() as tasks:

            async def holder(*, task_status: anyio.abc.TaskStatus) -> None:
                async with place_at("here", 1):
                    task_status.started()
                    await anyio.sleep(0.5)

            await tasks.start(holder)
            return await run()

    assert anyio.run(hold) < 0.2


def went(limit: Limit, calls: int) -> None:
    for _ in range(calls):
        limit.went_well()


def test_a_burst_of_refusals_halves_once_and_success_brings_it_back():
    async def run() -> None:
        limit = Limit()
        limit.require(64, None)
        limit.in_flight = 64
        began = anyio.current_time()
        await anyio.sleep(0.01)
        for _ in range(64):
            limit.slow_down(began, None)
        assert limit.allowed == 32
        limit.slow_down(anyio.current_time() + 1, None)
        assert limit.allowed == 16
        went(limit, 17)
        assert 16.9 < limit.allowed < 17.2
        went(limit, 10_000)
        assert limit.allowed == 64

    anyio.run(run)


def test_it_never_falls_below_one_call():
    async def run() -> None:
        limit = Limit()
        limit.require(4, None)
        for number in range(20):
            limit.slow_down(anyio.current_time() + number + 1, None)
        assert limit.allowed == 1
        with anyio.fail_after(5):
            await limit.enter()
        limit.leave()

    anyio.run(run)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 5), callers=st.integers(1, 25))
def test_places_are_never_lost_whoever_is_cancelled(seed, most, callers):
    source = random.Random(seed)

    async def run() -> None:
        in_flight = greatest = finished = 0
        fates = [source.random() for _ in range(callers)]
        times = [source.random() / 500 for _ in range(callers)]

        async def caller(fate: float, seconds: float) -> None:
            nonlocal in_flight, greatest, finished
            with anyio.move_on_after(seconds if fate < 0.4 else None):
                try:
                    async with place_at("endpoint", most):
                        in_flight += 1
                        greatest = max(greatest, in_flight)
                        try:
                            await anyio.sleep(seconds)
                            if fate > 0.9:
                                raise TooManyCalls("slower", seconds)
                        finally:
                            in_flight -= 1
                except TooManyCalls:
                    pass
            finished += 1

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for fate, seconds in zip(fates, times, strict=True):
                    tasks.start_soon(caller, fate, seconds)
            assert (in_flight, finished) == (0, callers)
            assert greatest <= most
            for _ in range(most + 1):  # every place is free again
                async with place_at("endpoint", most):
                    pass

    anyio.run(run)


@pytest.mark.parametrize("most", [0, -1])
def test_fault_67_no_place_at_all_is_refused(most):
    with pytest.raises(UsageError, match="at least 1"):
        open_model("m", base_url="http://127.0.0.1:1", max_concurrent=most)
