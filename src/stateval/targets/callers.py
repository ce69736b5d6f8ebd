"""How a user's functions are called: from the event loop, or from a thread in which a whole conversation runs."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import anyio

from stateval.deadline import is_cancelled, paused
from stateval.errors import ModelUnavailable, StageError, TargetError
from stateval.loading.calling import described as told
from stateval.loading.calling import is_async
from stateval.threads import from_thread, in_thread

logger = logging.getLogger(__name__)

_SECONDS_TO_CLOSE = 30.0


class Caller(Protocol):
    """Calls a user's function where it has to run; what it raises becomes a TargetError."""

    async def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any: ...

    async def close(self, function: Callable[..., Any]) -> None:
        """Calls a clean-up function, also after a failure or a time-out; what it raises is only logged."""

    async def wait(self, seconds: float) -> None:
        """Lets time pass that does not count against the deadline."""


class OnLoop:
    """Awaits asynchronous functions on the event loop and runs each synchronous one in a thread."""

    async def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if is_async(function):
            return await finish(what, function(*arguments))
        return await finish(what, await in_thread(guarded, what, function, *arguments))

    async def close(self, function: Callable[..., Any]) -> None:
        with anyio.move_on_after(_SECONDS_TO_CLOSE, shield=True) as scope:
            try:
                await self.call("`close`", function)
            except TargetError as error:
                logger.warning("%s", error)
        if scope.cancelled_caught:
            logger.warning("`close` did not return within %g s", _SECONDS_TO_CLOSE)

    async def wait(self, seconds: float) -> None:
        with paused():
            await anyio.sleep(seconds)


class _Abandoned(BaseException):
    """Ends a thread whose conversation nobody waits for any more."""


class InThread:
    """Calls synchronous functions directly, in the thread in which the whole conversation runs.

    `abandoned` is set when nobody waits for the conversation any more: no further call is made then.
    """

    def __init__(self) -> None:
        self.abandoned = False

    def drive(self, conversation: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine that only ever waits through this caller, which never suspends it."""
        try:
            conversation.send(None)
        except (StopIteration, _Abandoned):
            return
        raise RuntimeError("a conversation in a thread must wait through its caller")

    async def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        self._stop_if_abandoned()
        return self._finished(what, guarded(what, function, *arguments))

    async def close(self, function: Callable[..., Any]) -> None:
        try:
            self._finished("`close`", guarded("`close`", function))
        except TargetError as error:
            logger.warning("%s", error)

    async def wait(self, seconds: float) -> None:
        self._stop_if_abandoned()
        from_thread(_wait, seconds)

    def _stop_if_abandoned(self) -> None:
        if self.abandoned:
            raise _Abandoned

    def _finished(self, what: str, value: Any) -> Any:
        if not inspect.isawaitable(value):
            return value
        self._stop_if_abandoned()
        return from_thread(finish, what, value)


def guarded(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result; whatever it raises, `sys.exit()` included, becomes a TargetError."""
    try:
        return function(*arguments)
    except (StageError, ModelUnavailable, _Abandoned):
        raise
    except BaseException as error:
        raise failure(what, error) from error


async def finish(what: str, value: Any) -> Any:
    """The value itself, or what it becomes when it is awaited."""
    if not inspect.isawaitable(value):
        return value
    try:
        return await value
    except (StageError, ModelUnavailable, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise failure(what, error) from error


def failure(what: str, error: BaseException) -> TargetError:
    """What to store with a sample whose agent raised; the traceback goes to the log, for `--debug`."""
    logger.debug("%s raised", what, exc_info=error)
    return TargetError(f"{what} raised {told(error)}", cause_type=type(error).__name__)


def described(value: Any) -> str:
    """What a value is, for a message: plain values as they print, cut short; other objects by their class.

    >>> described(3), described(object())
    ('int 3', 'an object of class `object`')
    """
    if value is None:
        return "None"
    if not isinstance(value, str | bytes | int | float | list | tuple | dict | set):
        return f"an object of class `{type(value).__qualname__}`"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


async def _wait(seconds: float) -> None:
    with paused():
        await anyio.sleep(seconds)
