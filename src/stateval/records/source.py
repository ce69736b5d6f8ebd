"""Where in a file something was said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a file that a person can go to.

    `line` and `column` count from 1; `field` is a dotted path such as `graders.quality.extractor`.
    """

    path: str | None = None
    line: int | None = None
    column: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = self.path or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        return ": ".join(part for part in (place, self.field) if part)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input: where, what, and what to do about it."""

    message: str
    source: Source = Source()
    advice: str | None = None

    def __str__(self) -> str:
        place = str(self.source)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} ({self.advice})" if self.advice else text
