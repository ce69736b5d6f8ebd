"""A time limit that can be held while something waits that does not count, such as a queue in front of a model."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

_current: contextvars.ContextVar[anyio.CancelScope | None] = contextvars.ContextVar("deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[anyio.CancelScope]:
    """Cancels what runs inside after so many seconds and raises TimeoutError; time in `paused()` does not count."""
    with anyio.fail_after(seconds) as scope:
        token = _current.set(scope)
        try:
            yield scope
        finally:
            _current.reset(token)


@contextmanager
def paused() -> Iterator[None]:
    """The deadline around this block, if there is one, is moved by the time that the block takes."""
    scope = _current.get()
    if scope is None:
        yield
        return
    started = anyio.current_time()
    left = scope.deadline - started
    scope.deadline = float("inf")
    try:
        yield
    finally:
        scope.deadline = anyio.current_time() + left
