"""`${VAR}` in a suite file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stateval.records.source import Problem
from stateval.suite.yaml_text import Path

_VARIABLE = re.compile(r"(?P<literal>\$\$\{)|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|(?P<wrong>\$\{)")

_NEVER = (
    ("dataset", int),
    ("target", "agent"),
    ("targets", int, "agent"),
    ("grader", "grader_config", "expected"),
    ("graders", str, "grader_config", "expected"),
    *(("grader", name) for name in ("prompt", "criteria", "system_prompt")),
    *(("graders", str, name) for name in ("prompt", "criteria", "system_prompt")),
)
"""Where rows, prompts and truths stand: their text is never changed. A type stands for any key of that type."""


class Variables:
    """Expands `${VAR}` and `${VAR:-default}` in the texts of a suite file that configure something.

    `$${` is a literal `${`. The default counts where the variable is unset or empty. What cannot be expanded stays as
    it is and is collected in `problems`, by path.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: dict[Path, Problem] = {}

    def expand(self, value: Any, path: Path = ()) -> Any:
        """The value with all its texts expanded, except where rows, prompts and truths stand."""
        if any(_fits(path, pattern) for pattern in _NEVER):
            return value
        match value:
            case dict():
                return {key: self.expand(item, (*path, key)) for key, item in value.items()}
            case list():
                return [self.expand(item, (*path, position)) for position, item in enumerate(value)]
            case str():
                return _VARIABLE.sub(lambda found: self._text_for(found, path), value)
        return value

    def _text_for(self, found: re.Match[str], path: Path) -> str:
        if found["literal"]:
            return "${"
        if found["wrong"]:
            self.problems[path] = Problem(
                "`${` begins a variable, `${NAME}` or `${NAME:-default}`; write `$${` for `${`"
            )
            return found[0]
        value = self._environment.get(found["name"])
        if found["default"] is not None:
            return value or str(found["default"])
        if value is None:
            self.problems[path] = Problem(
                f"the environment variable `{found['name']}` is not set",
                advice=f"set it, or give a default: `${{{found['name']}:-...}}`",
            )
            return found[0]
        return value


def _fits(path: Path, pattern: tuple[Any, ...]) -> bool:
    return len(path) == len(pattern) and all(
        isinstance(part, wanted) if isinstance(wanted, type) else part == wanted
        for part, wanted in zip(path, pattern, strict=True)
    )
