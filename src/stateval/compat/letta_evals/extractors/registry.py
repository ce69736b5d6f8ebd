"""Extractors by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stateval.compat.letta_evals.extractors import builtin
from stateval.extractors.builtin import BUILTIN
from stateval.loading.registry import unknown_name
from stateval.loading.user_code import UserCode, is_reference
from stateval.records.marks import Mark

__all__ = ["extractor_requires_agent_state", "get_extractor"]


def get_extractor(
    name: str, config: Mapping[str, Any] | None = None, base_dir: str | Path | None = None
) -> Callable[..., str]:
    """A function of a trajectory, and an agent's state where it is needed, that has its settings.

    Args:
        name: that of a built-in extractor, or `file.py:function`.
        base_dir: the directory that a file's name is relative to; the current one by default.

    Raises ValueError for an unknown name, UserCodeError where a file has no such extractor.
    """
    function = _named(name, base_dir)
    takes_state = _takes_state(function)

    def extract(trajectory: Any, agent_state: Any = None) -> str:
        state = (agent_state,) if takes_state else ()
        extracted: str = function(trajectory, dict(config or {}), *state)
        return extracted

    return extract


def extractor_requires_agent_state(name: str, base_dir: str | Path | None = None) -> bool:
    """Whether an extractor looks at the agent's state. Raises as `get_extractor` does."""
    return _takes_state(_named(name, base_dir))


def _named(name: str, base_dir: str | Path | None) -> Callable[..., Any]:
    if is_reference(name):
        # What such a file may import is that of every file for letta_evals.
        code = UserCode(Path(base_dir or "."), {"letta_evals": "stateval.compat.letta_evals"})
        return code.load(name, Mark.EXTRACTOR).function
    function: Callable[..., Any] | None = getattr(builtin, name, None) if name in BUILTIN else None
    if function is None:
        raise ValueError(unknown_name("extractor", name, [known for known in BUILTIN if hasattr(builtin, known)]))
    return function


def _takes_state(function: Callable[..., Any]) -> bool:
    return "agent_state" in inspect.signature(function).parameters
