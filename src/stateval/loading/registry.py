"""Which part a name in a suite means: a built-in one, one that a plug-in brings, or a function in a user's file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from stateval.errors import UsageError, UserCodeError
from stateval.loading.calling import message_of
from stateval.loading.user_code import LoadedFunction, UserCode, is_reference
from stateval.records.marks import Mark, mark_of

_X = TypeVar("_X")
_MARKS = frozenset(Mark)


class Registry:
    """Finds parts by name for one suite.

    Args:
        user_code: the suite's own files, or None where it may name none.
    """

    def __init__(self, user_code: UserCode | None = None) -> None:
        self._user_code = user_code
        self._groups: dict[str, dict[str, EntryPoint]] = {}

    def find(self, kind: str, name: str, builtin: Mapping[str, _X]) -> _X | LoadedFunction:
        """The part of this kind ("grader", "extractor", "target", "audit_metric", "reward_composer").

        Built-in names come first, then the entry points of the group `stateval.<kind>s`, then `file.py:function`.
        Raises UsageError for an unknown name, with the nearest known one; UserCodeError where the code cannot be
        loaded.
        """
        if name in builtin:
            return builtin[name]
        points = self.entry_points(f"stateval.{kind}s")
        if name in points:
            return _loaded(points[name], kind)
        if is_reference(name) and self._user_code is not None:
            return self._user_code.load(name, Mark(kind) if kind in _MARKS else None)
        raise UsageError(_unknown(kind, name, [*builtin, *points]))

    def entry_points(self, group: str) -> dict[str, EntryPoint]:
        """What installed plug-ins offer in a group, by name; nothing is loaded yet, so broken ones are listed too."""
        if group not in self._groups:
            self._groups[group] = {point.name: point for point in entry_points(group=group)}
        return self._groups[group]


def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """The sentence that says that a part is not known, and which names are, the nearest first."""
    close = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean `{close[0]}`?" if close else f"known are {', '.join(f'`{k}`' for k in sorted(known))};"
    return f"there is no {kind.replace('_', ' ')} `{name}`: {advice} your own is named `file.py:function`"


def _unknown(kind: str, name: str, known: list[str]) -> str:
    if is_reference(name):
        return f"`{name}` names a file, but there is no suite directory to look for it in"
    if name.endswith(".py"):
        return f"`{name}` names a file only: write which {kind.replace('_', ' ')} of it, `{name}:function`"
    return unknown_name(kind, name, known)


def _loaded(point: EntryPoint, kind: str) -> LoadedFunction:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    try:
        function = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UserCodeError(
            f"the {kind} `{point.name}` of {package} cannot be loaded: {type(error).__name__}: {message_of(error)}"
        ) from error
    if not callable(function):
        raise UserCodeError(f"the {kind} `{point.name}` of {package} is a {type(function).__name__}, not a function")
    return LoadedFunction(function, point.name, mark_of(function), {"reference": point.value, "package": package})
