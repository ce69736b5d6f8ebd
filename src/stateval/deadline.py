"""Time limits and stopwatches that hold while something waits that does not count, such as a queue before a model."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

_scope: contextvars.ContextVar[anyio.CancelScope | None] = contextvars.ContextVar("scope", default=None)
_stopwatch: contextvars.ContextVar[Stopwatch | None] = contextvars.ContextVar("stopwatch", default=None)


class Stopwatch:
    """Seconds that have passed since it was made, without those spent in `paused()`."""

    def __init__(self) -> None:
        self._started = anyio.current_time()
        self.held = 0.0

    @property
    def seconds(self) -> float:
        return anyio.current_time() - self._started - self.held


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
def deadline(seconds: float) -> Iterator[anyio.CancelScope]:
    """Cancels what runs inside after so many seconds and raises TimeoutError; time in `paused()` does not count."""
    with anyio.fail_after(seconds) as scope:
        token = _scope.set(scope)
        try:
            yield scope
        finally:
            _scope.reset(token)


@contextmanager
def paused() -> Iterator[None]:
    """The time that this block takes counts neither for the deadline nor for the stopwatch around it."""
    scope, watch = _scope.get(), _stopwatch.get()
    started = anyio.current_time()
    left = scope.deadline - started if scope else 0.0
    if scope:
        scope.deadline = float("inf")
    try:
        yield
    finally:
        now = anyio.current_time()
        if scope:
            scope.deadline = now + left
        if watch:
            watch.held += now - started
