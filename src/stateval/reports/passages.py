"""Texts of several lines, each beside what it is, so that nothing in them can be taken for a part of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.text import Text

from stateval.reports.printable import printable

LABEL_WIDTH = 13
"""Columns before a passage's text; every line of the text begins there."""

_INDENT = 2
_NARROWEST = 10


@dataclass(frozen=True, slots=True)
class Passage:
    """A label, and lines beside it. Lines that are too wide go on in the same column; none ends with spaces."""

    label: str
    lines: Sequence[Text]
    style: str = "bold"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = max(options.max_width - LABEL_WIDTH, _NARROWEST)
        label = f"{' ' * _INDENT}{self.label}".ljust(LABEL_WIDTH)
        if len(label) > LABEL_WIDTH or not self.lines:
            yield Text(label.rstrip(), style=self.style, end="\n")
            label = " " * LABEL_WIDTH
        for line in self.lines:
            for part in line.wrap(console, width) if line.plain else [Text()]:
                shown = Text(label, style=self.style).append_text(part)
                shown.rstrip()
                shown.end = "\n"
                yield shown
                label = " " * LABEL_WIDTH


@dataclass(frozen=True, slots=True)
class Writing:
    """How texts of agents, graders and users are written down: whole, or only their beginnings.

    Args:
        encoding: what the console can show (`console.encoding`).
        full: nothing is left out.
    """

    encoding: str = "utf-8"
    full: bool = False
    most_characters: int = 1_000
    most_lines: int = 20

    def safe(self, text: str) -> str:
        """One line that no terminal obeys."""
        return printable(text, encoding=self.encoding)

    def lines(self, text: str, style: str = "") -> list[Text]:
        """The text's own lines; the last one says how much was left out."""
        text = text.replace("\r\n", "\n")
        if not text:
            return [Text("(empty)", style="dim")]
        kept = text if self.full else "\n".join(text[: self.most_characters].split("\n")[: self.most_lines])
        lines = [Text(self.safe(line), style=style) for line in kept.rstrip("\n").split("\n")]
        left_out = len(text) - len(kept)
        return [*lines, self.left_out(f"{left_out:,} more characters")] if left_out else lines

    def passage(self, label: str, text: str, style: str = "") -> Passage:
        """The text beside a label."""
        return Passage(self.safe(label), self.lines(text, style))

    def left_out(self, what: str) -> Text:
        """The line that says so."""
        return Text(f"... ({what}; --full shows all)", style="dim")
