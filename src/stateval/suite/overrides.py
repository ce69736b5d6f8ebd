"""Values that the command line puts in place of those of the suite file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stateval.errors import SuiteError, UsageError
from stateval.suite.yaml_text import Path, dotted, read_value

_SAME = {"num_runs": "epochs", "epochs": "num_runs"}


@dataclass(frozen=True, slots=True)
class Override:
    """A value for the field at `path`, and what on the command line said so (`--num-runs`).

    A path that begins with `target` counts for every target of a suite that has `targets`.
    """

    path: tuple[str, ...]
    value: Any
    origin: str

    @classmethod
    def of(cls, field: str, value: Any, origin: str) -> Override:
        """The override of a dotted field: `Override.of("target.timeout", 5, "--timeout")`."""
        return cls(tuple(field.split(".")), value, origin)


def parse_set(text: str) -> Override:
    """What `--set key=value` means; the value is read as YAML. Raises UsageError where it is no such pair."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise UsageError(f"`--set {text}`: write `--set field=value`, such as `--set target.timeout=60`")
    try:
        return Override.of(key, read_value(value), f"--set {key}")
    except SuiteError as error:
        raise UsageError(f"`--set {text}`: the value cannot be read as YAML: {error}") from None


def apply_overrides(data: dict[str, Any], overrides: Sequence[Override]) -> dict[Path, str]:
    """Puts the overrides into the data of a suite file, in order; returns by path what said so.

    Mappings on the way are made where there are none. Raises UsageError where a path leads through something else.
    """
    origins: dict[Path, str] = {}
    for override in overrides:
        for path in _paths(data, override.path):
            if path[0] in _SAME:
                data.pop(_SAME[path[0]], None)
            origins[_put(data, path, override)] = override.origin
    return origins


def _paths(data: dict[str, Any], path: tuple[str, ...]) -> list[tuple[str, ...]]:
    targets = data.get("targets")
    if path[0] == "target" and "target" not in data and isinstance(targets, list):
        return [("targets", str(position), *path[1:]) for position in range(len(targets))]
    return [path]


def _put(data: dict[str, Any], path: tuple[str, ...], override: Override) -> Path:
    here: Any = data
    taken: list[str | int] = []
    for position, part in enumerate(path):
        key = _key(here, part, override, dotted(path[:position]))
        taken.append(key)
        if position == len(path) - 1:
            here[key] = override.value
            break
        if isinstance(here, dict) and here.get(key) is None:
            here[key] = {}
        here = here[key]
    return tuple(taken)


def _key(here: Any, part: str, override: Override, where: str) -> str | int:
    if isinstance(here, dict):
        return part
    if not isinstance(here, list):
        raise UsageError(f"`{override.origin}`: `{where}` is no mapping, so it has no field `{part}`")
    if not part.isdecimal() or int(part) >= len(here):
        raise UsageError(
            f"`{override.origin}`: `{where}` is a list of {len(here)}; write a position from 0, not `{part}`"
        )
    return int(part)
