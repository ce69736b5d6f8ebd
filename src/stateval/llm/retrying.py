"""When a failed call is tried again, and how long is waited before."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from stateval.errors import TransientModelError

_T = TypeVar("_T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retries:
    """At most `tries` calls in all, with waits in seconds that double from `first_wait` to `longest_wait`.

    Each wait has up to `jitter` seconds added at random. A wait that the server asks for is kept to exactly, unless
    it is longer than `longest_retry_after`: then the call fails at once.
    """

    tries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 30.0
    jitter: float = 1.0
    longest_retry_after: float = 120.0


async def with_retries(call: Callable[[], Awaitable[_T]], retries: Retries) -> _T:
    """What `call` returns, tried again after a TransientModelError and after nothing else.

    Raises the last error when the tries are used up.
    """
    import stamina

    def wait_after(error: Exception) -> bool | float:
        if not isinstance(error, TransientModelError):
            return False
        if error.retry_after is None:
            return True
        return error.retry_after <= retries.longest_retry_after and error.retry_after

    async for attempt in stamina.retry_context(
        on=wait_after,
        attempts=retries.tries,
        timeout=None,
        wait_initial=retries.first_wait,
        wait_max=retries.longest_wait,
        wait_jitter=retries.jitter,
    ):
        with attempt:
            return await call()
    raise AssertionError("unreachable: the last attempt raises")


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that a server asks to wait (RFC 9110, section 10.2.3: seconds, or a date), or None.

    `retry-after-ms` is what some endpoints send beside it, more exactly.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
