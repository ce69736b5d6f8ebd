"""The decorators that mark a user's functions. They check the signature and set a mark; nothing is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_ATTRIBUTE = "__stateval_mark__"


class Mark(StrEnum):
    """What a marked function is."""

    GRADER = "grader"
    EXTRACTOR = "extractor"
    REWARD_COMPOSER = "reward_composer"
    AGENT_FACTORY = "agent_factory"
    SUITE_SETUP = "suite_setup"


def mark_of(function: Any) -> Mark | None:
    """The mark of a function, or None where it has none."""
    return getattr(function, _ATTRIBUTE, None)


def grader(function: _F) -> _F:
    """Marks a grader: `(sample, submission)`, sync or async, returns a `GradeResult`, a number or a dict."""
    _require(function, Mark.GRADER, 2, "(sample, submission)")
    return _marked(function, Mark.GRADER)


def extractor(function: _F) -> _F:
    """Marks an extractor: `(trajectory, config) -> str`; parameters named `agent_state` and `context` may follow."""
    names = _parameter_names(function)
    extra = set(names[2:]) - {"agent_state", "context"}
    if len(names) < 2 or extra:
        raise TypeError(
            f"extractor `{_name(function)}` takes ({', '.join(names)}); it must take (trajectory, config), "
            "optionally followed by `agent_state` and `context`"
        )
    return _marked(function, Mark.EXTRACTOR)


def reward_composer(function: _F) -> _F:
    """Marks a reward composer: one parameter `ctx`, sync or async; returns a `RewardOutput`, a number or a dict."""
    if _parameter_names(function) != ["ctx"]:
        raise TypeError(f"reward composer `{_name(function)}` must take exactly one parameter, named `ctx`")
    return _marked(function, Mark.REWARD_COMPOSER)


def agent_factory(function: _F) -> _F:
    """Marks an agent factory.

    `async (client, sample)` makes an agent on a Letta server and returns its id or `(id, context)`;
    `(sample)` or `(sample, model_handle)` returns an object that follows the Agent protocol.
    """
    names = _parameter_names(function)
    if names not in (["client", "sample"], ["sample"], ["sample", "model_handle"]):
        raise TypeError(
            f"agent factory `{_name(function)}` takes ({', '.join(names)}); it must take (client, sample) for an agent "
            "on a Letta server, or (sample) or (sample, model_handle) for an agent object"
        )
    return _marked(function, Mark.AGENT_FACTORY)


def suite_setup(function: _F) -> _F:
    """Marks a set-up function: `()`, `(client)` or `(client, model_handle)`, sync or async."""
    if len(_parameter_names(function)) > 2:
        raise TypeError(f"suite set-up `{_name(function)}` must take (), (client) or (client, model_handle)")
    return _marked(function, Mark.SUITE_SETUP)


def _marked(function: _F, mark: Mark) -> _F:
    setattr(function, _ATTRIBUTE, mark)
    return function


def _require(function: Callable[..., Any], mark: Mark, count: int, wanted: str) -> None:
    names = _parameter_names(function)
    if len(names) != count:
        raise TypeError(
            f"{mark.replace('_', ' ')} `{_name(function)}` takes ({', '.join(names)}); it must take {wanted}"
        )


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _name(function: Any) -> str:
    return getattr(function, "__name__", repr(function))
