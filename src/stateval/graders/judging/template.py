"""Rubrics as templates: which braces are placeholders, and what stands in their place.

Only `{identifier}` is a placeholder. `{{` and `}}` are literal braces; every other brace stays as it is, so that JSON
in a rubric is no obstacle: `}}` closes two objects where two single braces are open. There is no access to attributes
or items, and a value is put in once: what it holds is never read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from stateval.records.encoding import json_text

RESERVED = ("input", "ground_truth", "submission")
"""The placeholders that the sample and the submission fill; `rubric_vars` may not have these names."""

_TOKEN = re.compile(r"\{\{|\{(?P<name>[^\W\d]\w*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A name in braces."""

    name: str

    @property
    def source(self) -> str:
        """How it is written."""
        return f"{{{self.name}}}"


Part = str | Placeholder


@dataclass(frozen=True, slots=True)
class Template:
    """A rubric that has been read. Its `parts` are texts, and the placeholders between them."""

    source: str
    parts: tuple[Part, ...]
    names: frozenset[str]

    @property
    def has_reserved(self) -> bool:
        """Whether it says itself where any of input, truth or submission stands."""
        return not self.names.isdisjoint(RESERVED)

    def optional(self, listed: tuple[str, ...] | None) -> bool:
        """Whether names that are neither reserved nor listed may be plain text."""
        return listed is not None or not self.has_reserved

    def missing(self, values: Mapping[str, Any], listed: tuple[str, ...] | None) -> list[str]:
        """The placeholders that need a value and have none, in the order of the rubric; reserved ones aside."""
        needed = self.names.intersection(listed or ()) if self.optional(listed) else self.names
        lacking = {name for name in needed if name not in RESERVED and values.get(name) is None}
        return list(dict.fromkeys(part.name for part in self._placeholders if part.name in lacking))

    def with_values(self, values: Mapping[str, Any]) -> tuple[Part, ...]:
        """The parts with values in the place of names; what has no value is text, the reserved ones stay.

        Values that are no texts become their JSON text. Neighbouring texts are joined.
        """
        filled: list[Part] = []
        for part in self.parts:
            text = self._text_of(part, values)
            if isinstance(text, str) and filled and isinstance(filled[-1], str):
                filled[-1] += text
            else:
                filled.append(text)
        return tuple(filled)

    @property
    def _placeholders(self) -> Iterator[Placeholder]:
        return (part for part in self.parts if isinstance(part, Placeholder))

    @staticmethod
    def _text_of(part: Part, values: Mapping[str, Any]) -> Part:
        if isinstance(part, str) or part.name in RESERVED:
            return part
        value = values.get(part.name)
        return part.source if value is None else json_text(value)


@lru_cache(maxsize=1024)
def read_template(source: str) -> Template:
    """The template that a rubric is. Every text is one: there is nothing to get wrong in it."""
    parts: list[Part] = []
    literal: list[str] = []
    for token in _tokens(source):
        if isinstance(token, str):
            literal.append(token)
        else:
            parts += ["".join(literal)] if literal else []
            parts.append(token)
            literal = []
    parts += ["".join(literal)] if literal else []
    return Template(source, tuple(parts), frozenset(part.name for part in parts if isinstance(part, Placeholder)))


def _tokens(source: str) -> Iterator[Part]:
    open_braces: list[bool] = []  # for each open brace whether it was doubled
    position = 0
    while found := _TOKEN.search(source, position):
        yield source[position : found.start()]
        position = found.end()
        if found["name"] is not None and found["name"].isidentifier():
            yield Placeholder(found["name"])
        elif found[0] == "}":
            is_doubled = open_braces.pop() if open_braces else True
            position += is_doubled and source.startswith("}", position)
            yield "}"
        else:
            is_doubled = found[0] == "{{"
            open_braces.append(is_doubled)
            position = found.start() + 1 + is_doubled
            yield "{"
    yield source[position:]
