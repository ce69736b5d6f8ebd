"""SIGINT and SIGTERM while a run goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from stateval.errors import ExitStatus, RunInterrupted, StatevalError


@contextmanager
def stopped_by_signals(stop: Callable[[str, StatevalError], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `stop` on the event loop, which is to end the run.

    A second one ends the program at once, whatever users' code does meanwhile. The handlers are those of the
    interpreter, not of the event loop: an agent may block the loop.
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            os._exit(ExitStatus.INTERRUPTED)
        received.append(number)
        reason = f"interrupted by {signal.Signals(number).name}"
        loop.call_soon_threadsafe(stop, reason, RunInterrupted(reason))

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
