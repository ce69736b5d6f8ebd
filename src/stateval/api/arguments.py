"""What the arguments of the Python API must be; each check raises UsageError that names the argument."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stateval.errors import UsageError
from stateval.records.encoding import plain

_GREATEST = 2**63 - 1
MOST_RUNS = 1_000_000


def count(name: str, value: Any, *, least: int = 1, most: int = _GREATEST) -> int:
    """A whole number between these."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _wrong(name, value, f"a whole number of at least {least} and at most {most:,}")
    return value


def number(name: str, value: Any, *, least: float, most: float = math.inf) -> float:
    """A finite number between these."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most or value == math.inf:
        limits = f"of at least {least:g}" + ("" if most == math.inf else f" and at most {most:g}")
        raise _wrong(name, value, f"a finite number {limits}")
    return value


def text(name: str, value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise _wrong(name, value, "a text that is not empty")
    return value


def texts(name: str, value: Any, *, single: bool = False) -> tuple[str, ...]:
    """A list of texts; with `single` a text is a list of one."""
    if single and isinstance(value, str):
        return (value,)
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise _wrong(name, value, "a list of texts")
    return tuple(value)


def path(name: str, value: Any) -> Path:
    """A path, made absolute, with the home directory in place of `~`."""
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes) or not os.fspath(value):
        raise _wrong(name, value, "a path")
    try:
        found = Path(value).expanduser().absolute()
        found.exists()
        os.fsencode(found)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"`{name}` is {value!r}, which cannot be a path ({error})") from error
    if "\0" in str(found):
        raise UsageError(f"`{name}` is {value!r}, which cannot be a path (it has a NUL character in it)")
    return found


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping whose keys are texts that are not empty."""
    if not isinstance(value, Mapping):
        raise _wrong(name, value, "a dict")
    for key in value:
        text(f"{name}: a key", key)
    return value


def set_up(name: str, value: Any) -> int:
    """How many of `(client, model_handle)` a function takes; it must take nothing else."""
    try:
        signature = inspect.signature(value)
        names = list(signature.parameters)
        count = 2 if names == ["client", "model_handle"] else 1 if names == ["client"] else 0
        signature.bind(*range(count))
    except (TypeError, ValueError) as error:
        wanted = "a function of (), (client) or (client, model_handle)"
        raise UsageError(f"`{name}` must be {wanted}: {error}") from None
    return count


def _wrong(name: str, value: Any, wanted: str) -> UsageError:
    shown = repr(plain(value) if isinstance(value, int) and not isinstance(value, bool) else value)
    return UsageError(f"`{name}` is {shown if len(shown) <= 80 else shown[:77] + '...'}; it must be {wanted}")
