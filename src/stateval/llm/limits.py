"""How many calls may be in flight at one endpoint, and how fast they may begin, whoever makes them.

The number in flight adapts as TCP's window does (Chiu and Jain 1989): an endpoint that says it is too much halves it
and holds all new calls for as long as it asks; each round of calls that went well lets it grow by one.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import RunVar

from stateval.deadline import paused
from stateval.errors import TooManyCalls

_SPREAD = 0.1
_limits: RunVar[dict[str, Limit]] = RunVar("stateval_model_limits")


@asynccontextmanager
async def place_at(endpoint: str, most: int, *, per_minute: float | None = None) -> AsyncIterator[None]:
    """A place among the calls in flight at this endpoint. Waiting for it does not count against a deadline.

    Where callers name different limits for one endpoint, the smallest holds. What is raised inside tells how the call
    went: a `TooManyCalls` slows the endpoint down.
    """
    limit = _limit_of(endpoint)
    limit.require(most, per_minute)
    with paused():
        await limit.enter()
    began = anyio.current_time()
    try:
        yield
    except TooManyCalls as error:
        limit.slow_down(began, error.retry_after)
        raise
    else:
        limit.went_well()
    finally:
        limit.leave()


@dataclass(eq=False, slots=True)
class Limit:
    """The limit of one endpoint in one event loop. Times are those of the loop, in seconds.

    `most` is the bound that was asked for, `allowed` the one that holds by now.
    """

    most: int = 10**9
    allowed: float = 10**9
    interval: float = 0.0
    in_flight: int = 0
    _next: float = 0.0
    _held_until: float = 0.0
    _slowed: float = -1.0
    _waiting: deque[anyio.Event] = field(default_factory=deque)

    def require(self, most: int, per_minute: float | None) -> None:
        """Takes over a bound that is tighter than those so far."""
        if most < self.most:
            self.most = most
            self.allowed = min(self.allowed, most)
        if per_minute is not None:
            self.interval = max(self.interval, 60 / per_minute)

    async def enter(self) -> None:
        """Waits for a place, in turn, and for the time at which the next call may begin."""
        if self._waiting or not self._has_room:
            await self._wait_in_line()
        self.in_flight += 1
        try:
            await self._wait_for_time()
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Gives a place back."""
        self.in_flight -= 1
        self._wake()

    def slow_down(self, began: float, retry_after: float | None) -> None:
        """The endpoint said that it is too much, to a call that began at this time.

        Of many calls that are refused at once only the first halves what may be in flight: the others began before.
        """
        now = anyio.current_time()
        self._held_until = max(self._held_until, now + (retry_after or 0.0))
        if began > self._slowed:
            self._slowed = now
            self.allowed = max(1.0, min(self.allowed, self.in_flight) / 2)

    def went_well(self) -> None:
        """A call went well."""
        self.allowed = min(self.most, self.allowed + 1 / self.allowed)

    @property
    def _has_room(self) -> bool:
        return self.in_flight < max(1, int(self.allowed + 1e-9))

    async def _wait_in_line(self) -> None:
        turn = anyio.Event()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():  # it was called and leaves: the next one's turn
                self.in_flight -= 1
                self._wake()
            else:
                self._waiting.remove(turn)
            raise
        self.in_flight -= 1  # the place that was kept for it; `enter` takes it

    def _wake(self) -> None:
        """Calls those whose turn it is, and keeps a place for each, so that nobody who comes later takes it."""
        while self._waiting and self._has_room:
            self.in_flight += 1
            self._waiting.popleft().set()

    async def _wait_for_time(self) -> None:
        """Until the endpoint may be called again; those that were held do not all come back at once."""
        while (now := anyio.current_time()) < self._held_until:
            wait = self._held_until - now
            await anyio.sleep(wait + random.uniform(0, _SPREAD * min(wait, 10.0)))
        if self.interval:
            begins = max(now, self._next)
            self._next = begins + self.interval
            await anyio.sleep(begins - now)


def _limit_of(endpoint: str) -> Limit:
    try:
        limits = _limits.get()
    except LookupError:
        limits = {}
        _limits.set(limits)
    return limits.setdefault(endpoint, Limit())
