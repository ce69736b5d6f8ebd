"""The clients of a provider in the running event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
from anyio.lowlevel import current_token

from stateval.llm.endpoint import Endpoint
from stateval.llm.provider_errors import not_in_time

_Client = TypeVar("_Client")

_CALLS_IN_A_CLIENT = 32


@dataclass(slots=True)
class _Lane(Generic[_Client]):
    client: _Client
    calls: int = 0


class Connections(Generic[_Client]):
    """Clients that are made when they are needed: connections do not outlive the event loop that opened them.

    The pool of an HTTP client looks at each of its connections for each call, so that with 800 calls in flight one
    client takes 2.4 times as long as several that share them. Hence each gets a few.
    """

    def __init__(self, make: Callable[[], _Client], close: Callable[[_Client], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._lanes: list[_Lane[_Client]] = []
        self._loop: Any = None

    @contextmanager
    def client(self) -> Iterator[_Client]:
        """A client for one call."""
        if self._loop != current_token():
            self._loop, self._lanes = current_token(), []
        lane = next((lane for lane in self._lanes if lane.calls < _CALLS_IN_A_CLIENT), None)
        if lane is None:
            lane = _Lane(self._make())
            self._lanes.append(lane)
        lane.calls += 1
        try:
            yield lane.client
        finally:
            lane.calls -= 1

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        lanes, self._lanes = self._lanes, []
        if self._loop == current_token():
            for lane in lanes:
                await self._close(lane.client)


@contextmanager
def within(seconds: float, model: str, endpoint: Endpoint) -> Iterator[None]:
    """Bounds a whole try, however slowly the bytes come. Raises TransientModelError."""
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError as error:
        raise not_in_time(model, endpoint) from error
