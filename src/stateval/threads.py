"""Users' synchronous functions, run in threads that can be left behind.

The threads are daemons: a function that never returns must not keep the program from ending, which is why neither
`asyncio.to_thread` nor `anyio.to_thread` serves here. There is a thread for every call in flight; how many those may
be is decided where samples are scheduled.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_T = TypeVar("_T")

_SECONDS_IDLE = 10.0


async def in_thread(function: Callable[..., _T], *arguments: Any) -> _T:
    """The function's result, or what it raises. When this call is cancelled the function is left to itself."""
    call = _Call(function, arguments)
    _hand_over(call)
    return await call.future  # type: ignore[no-any-return]


def from_thread(function: Callable[..., Coroutine[Any, Any, _T]], *arguments: Any) -> _T:
    """In a function that `in_thread` runs: the result of a coroutine function, run on the event loop it came from."""
    return asyncio.run_coroutine_threadsafe(function(*arguments), _loop_of_thread.get()).result()


_loop_of_thread: contextvars.ContextVar[asyncio.AbstractEventLoop] = contextvars.ContextVar("loop_of_thread")


class _Call:
    """A call and where its outcome is awaited; made on the event loop."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = arguments
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._context.run(_loop_of_thread.set, self._loop)
        self.future: asyncio.Future[Any] = self._loop.create_future()

    def run(self) -> None:
        """Computes in the calling thread and reports to the event loop, if that still runs."""
        result: Any = None
        error: BaseException | None = None
        try:
            result = self._context.run(self._function, *self._arguments)
        except BaseException as raised:  # noqa: BLE001 - whatever it is belongs to whoever waits
            # An event loop that is handed one of the others ends, and with it the run.
            harmless = isinstance(raised, Exception | SystemExit) and not isinstance(raised, StopIteration)
            error = raised if harmless else RuntimeError(f"the function raised {raised!r}")
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self._report, result, error)

    def _report(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class _Worker(threading.Thread):
    """Runs one call after the other, and ends when it was idle for long."""

    def __init__(self, call: _Call) -> None:
        super().__init__(name="stateval worker", daemon=True)
        self.calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self.calls.put(call)

    def run(self) -> None:
        while True:
            try:
                call = self.calls.get(timeout=_SECONDS_IDLE)
            except queue.Empty:
                if _retire(self):
                    return
                continue
            call.run()
            del call
            with _lock:
                _idle.append(self)


_idle: deque[_Worker] = deque()
_lock = threading.Lock()


def _hand_over(call: _Call) -> None:
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        _Worker(call).start()
    else:
        worker.calls.put(call)


def _retire(worker: _Worker) -> bool:
    """Whether the worker was still idle, and so may end."""
    with _lock:
        if worker in _idle:
            _idle.remove(worker)
            return True
        return False
