"""Calls users' functions so that none blocks the event loop, and reads what they return."""

from __future__ import annotations

import copy
import functools
import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from stateval.errors import StageError
from stateval.records.encoding import plain
from stateval.threads import in_thread

USERS_FAILURES = (Exception, SystemExit, KeyboardInterrupt)
"""What a user's code may raise that is its own failure: one that calls `sys.exit()` must not end the run."""

_X = TypeVar("_X")


async def call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What a function returns: awaited where it is asynchronous, else run in a thread."""
    if is_async(function):
        return await function(*arguments, **keywords)
    returned = await in_thread(functools.partial(function, *arguments, **keywords))
    return await returned if inspect.isawaitable(returned) else returned


async def call_user(
    function: Callable[..., Any], failure: type[StageError], who: str, *arguments: Any, **keywords: Any
) -> Any:
    """What a user's function returns; whatever it raises becomes a `failure` that keeps the exception's type.

    Args:
        who: the function in words, such as "grader `graders.py:polite`".
    """
    try:
        return await call(function, *arguments, **keywords)
    except failure:
        raise
    except USERS_FAILURES as error:
        raise failure(f"{who} raised {described(error)}", cause_type=type(error).__name__) from error


def own_copy(value: _X) -> _X:
    """A copy for a user's function alone, so that whatever it changes is changed for nobody else.

    What cannot be copied (a lock, an open file that a row in memory holds) is shared; the lists and dicts around it are
    not.
    """
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - users' objects may raise anything
        return cast(_X, _copied_containers(value))


def _copied_containers(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_copy(update={name: _copied_containers(item) for name, item in value})
        case dict():
            return {key: _copied_containers(item) for key, item in value.items()}
        case list() | tuple():
            return [_copied_containers(item) for item in value]
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001
        return value


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine: a coroutine function, a partial of one, or an object whose call is one."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def described(error: BaseException) -> str:
    """An exception in one line, with the place where it was raised."""
    said = message_of(error)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if frames else text


def message_of(error: BaseException) -> str:
    """What an exception says, also where saying it raises."""
    try:
        return str(error)
    except BaseException as failure:  # noqa: BLE001 - the exception may be of a user's own class
        return f"its message cannot be had: `__str__` raised {type(failure).__name__}"


def scored(returned: Any) -> dict[str, Any]:
    """The fields of a score that a user's function returned: a number, a dict, or an object with a `score`.

    Keys of a dict other than `score`, `rationale`, `metadata` and `per_turn_grades` go into `metadata`: nothing that
    was said is lost. Raises ValueError with what came instead.
    """
    if hasattr(returned, "item") and callable(returned.item):
        returned = plain(returned)
    if isinstance(returned, bool | int | float):
        return {"score": returned}
    fields = _fields_of(returned)
    if fields.get("score") is None:
        raise ValueError(f"it returned a {type(returned).__name__} without a `score`")
    known = {key: fields[key] for key in ("score", "rationale", "per_turn_grades") if fields.get(key) is not None}
    rest = {
        key: value for key, value in fields.items() if key not in (*known, "metadata", "rationale", "per_turn_grades")
    }
    metadata = fields.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ValueError(f"its `metadata` is a {type(metadata).__name__}, not a dict")
    return {**known, "metadata": {**rest, **(metadata or {})}}


def _fields_of(returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        return {str(key): value for key, value in returned.items()}
    if hasattr(returned, "model_dump") and not isinstance(returned, type):
        return dict(returned.model_dump())
    if hasattr(returned, "score") and not isinstance(returned, type):
        return {key: getattr(returned, key) for key in ("score", "rationale", "metadata") if hasattr(returned, key)}
    if returned is None:
        raise ValueError("it returned None; is a `return` missing?")
    shown = repr(returned)
    raise ValueError(f"it returned a {type(returned).__name__}, {shown if len(shown) <= 80 else shown[:77] + '...'}")
