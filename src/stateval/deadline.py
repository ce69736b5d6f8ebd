"""Time limits and stopwatches that hold while something waits that does not count, such as a queue before a model."""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class _Pausable:
    """Something that can be paused several times at once; it goes on when the last pause ends."""

    def __init__(self) -> None:
        self._pauses = 0

    def pause(self) -> None:
        self._pauses += 1
        if self._pauses == 1:
            self._hold()

    def resume(self) -> None:
        self._pauses -= 1
        if self._pauses == 0:
            self._go_on()

    def _hold(self) -> None: ...

    def _go_on(self) -> None: ...


class Stopwatch(_Pausable):
    """Seconds that have passed since it was made, without those spent in `paused()`."""

    def __init__(self) -> None:
        super().__init__()
        self._started = self._held_since = time.monotonic()
        self.held = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started - self.held

    def _hold(self) -> None:
        self._held_since = time.monotonic()

    def _go_on(self) -> None:
        self.held += time.monotonic() - self._held_since


class _Limit(_Pausable):
    """The deadline of a scope."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        super().__init__()
        self._scope = scope
        self._left = 0.0

    @property
    def is_over(self) -> bool:
        return not self._pauses and time.monotonic() >= self._scope.deadline

    def _hold(self) -> None:
        self._left = self._scope.deadline - time.monotonic()
        self._scope.deadline = float("inf")

    def _go_on(self) -> None:
        self._scope.deadline = time.monotonic() + self._left


_limit: contextvars.ContextVar[_Limit | None] = contextvars.ContextVar("limit", default=None)
_stopwatch: contextvars.ContextVar[Stopwatch | None] = contextvars.ContextVar("stopwatch", default=None)


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Times what runs inside; what is held in it is held in a stopwatch around it too."""
    outer, watch = _stopwatch.get(), Stopwatch()
    token = _stopwatch.set(watch)
    try:
        yield watch
    finally:
        _stopwatch.reset(token)
        if outer:
            outer.held += watch.held


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Cancels what runs inside after so many seconds and raises TimeoutError; time in `paused()` does not count."""
    with anyio.fail_after(seconds) as scope:
        token = _limit.set(_Limit(scope))
        try:
            yield
        finally:
            _limit.reset(token)


@contextmanager
def paused() -> Iterator[None]:
    """The time that this block takes counts neither for the deadline nor for the stopwatch around it."""
    around = [each for each in (_limit.get(), _stopwatch.get()) if each is not None]
    for each in around:
        each.pause()
    try:
        yield
    finally:
        for each in around:
            each.resume()


def check_deadline() -> None:
    """Raises TimeoutError where the deadline around is over: code that blocks or swallows its cancellation is late."""
    limit = _limit.get()
    if limit is not None and limit.is_over:
        raise TimeoutError


def is_cancelled() -> bool:
    """Whether somebody cancelled what runs here.

    Where nobody did, a CancelledError comes from within: from a task that a user's code made and cancelled itself.
    """
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling() > 0)
