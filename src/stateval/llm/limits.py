"""How many calls may be in flight at one endpoint, whoever makes them: targets, graders, several models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.lowlevel import RunVar

from stateval.deadline import paused

_limiters: RunVar[dict[str, anyio.CapacityLimiter]] = RunVar("stateval_model_limits")


@asynccontextmanager
async def place_at(endpoint: str, most: int) -> AsyncIterator[None]:
    """A place among the calls in flight at this endpoint. Waiting for it does not count against a deadline.

    Where callers name different limits for one endpoint, the smallest holds.
    """
    limiter = _limiter(endpoint, most)
    borrower = object()
    with paused():
        await limiter.acquire_on_behalf_of(borrower)
    try:
        yield
    finally:
        limiter.release_on_behalf_of(borrower)


def _limiter(endpoint: str, most: int) -> anyio.CapacityLimiter:
    try:
        limiters = _limiters.get()
    except LookupError:
        limiters = {}
        _limiters.set(limiters)
    limiter = limiters.setdefault(endpoint, anyio.CapacityLimiter(most))
    limiter.total_tokens = min(limiter.total_tokens, most)
    return limiter
