"""What changed in an agent's memory, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from rich.text import Text

from stateval.records.state import AgentState, BlockChange, Snapshot, changes_between
from stateval.reports.passages import Passage, Writing
from stateval.reports.printable import shortened

_STYLES = {"+": "green", "-": "red"}
_LINES_AROUND = 1
_CHARACTERS_AROUND = 40
_MOST_TO_MATCH = 40_000
"""Pairs of lines beyond which a diff is not searched for the smallest: its time grows with their number."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of the memory over some user turns, both counted in; `blocks` is empty where nothing changed."""

    first_turn: int
    last_turn: int
    blocks: Sequence[BlockChange]


def memory_changes(snapshots: Sequence[Snapshot]) -> list[Change]:
    """What changed from each kept state to the next one."""
    ordered = sorted(snapshots, key=lambda snapshot: snapshot.turn)
    return [
        Change(before.turn + 1, after.turn, changes_between(before.state, after.state))
        for before, after in pairwise(ordered)
    ]


def change_passage(change: Change, writing: Writing) -> Passage:
    """The blocks that were added, removed or changed, each with a diff of its lines."""
    if not change.blocks:
        return Passage("memory", [Text("unchanged", style="dim")])
    lines = [line for block in change.blocks for line in _block(block, writing)]
    return Passage("memory", lines)


def state_passages(state: AgentState, writing: Writing) -> Iterator[Passage]:
    """The whole memory at one moment."""
    for block in state.blocks:
        lines = [
            Text(f"{writing.safe(block.label)}:"),
            *(Text("  ").append_text(t) for t in writing.lines(block.value)),
        ]
        yield Passage("memory", lines)


def _block(change: BlockChange, writing: Writing) -> Iterator[Text]:
    yield Text(f"{writing.safe(change.label)}: {change.kind}")
    lines = list(_difference(_lines_of(change.before), _lines_of(change.after)))
    kept = lines if writing.full else lines[: writing.most_lines]
    for line in kept:
        yield Text(
            f"  {line.sign} {writing.safe(line.shown(full=writing.full))}".rstrip(), style=_STYLES.get(line.sign, "")
        )
    if len(kept) < len(lines):
        yield Text("  ").append_text(writing.left_out(f"{len(lines) - len(kept):,} more lines"))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a diff; `other` is the one that it replaced or became."""

    sign: str
    text: str
    other: str | None = None

    def shown(self, *, full: bool) -> str:
        """The line; of a long one the part that changed."""
        longest = 240
        if full or max(len(self.text), len(self.other or "")) <= longest:
            return self.text
        if self.other is None:
            return shortened(self.text, longest)
        begin = max(_equal_at_the_start(self.text, self.other) - _CHARACTERS_AROUND, 0)
        same = _equal_at_the_start(self.text[:begin:-1], self.other[:begin:-1])
        end = len(self.text) - max(same - _CHARACTERS_AROUND, 0)
        middle = shortened(self.text[begin:end], longest)
        return f"{'...' if begin else ''}{middle}{'...' if end < len(self.text) else ''}"


def _lines_of(value: str | None) -> list[str]:
    return [] if value is None else value.split("\n")


def _difference(old: list[str], new: list[str]) -> Iterator[_Line]:
    """Removed and added lines with one line around them, and `...` between places that are apart."""
    for number, place in enumerate(_places(old, new)):
        if number:
            yield _Line(" ", "...")
        for kind, old_begin, old_end, new_begin, new_end in place:
            removed, added = old[old_begin:old_end], new[new_begin:new_end]
            if kind == "equal":
                yield from (_Line(" ", line) for line in removed)
                continue
            are_pairs = len(removed) == len(added)
            yield from (_Line("-", line, added[n] if are_pairs else None) for n, line in enumerate(removed))
            yield from (_Line("+", line, removed[n] if are_pairs else None) for n, line in enumerate(added))


def _places(old: list[str], new: list[str]) -> Iterable[Sequence[tuple[str, int, int, int, int]]]:
    """Where the texts differ, as `difflib` says it."""
    if len(old) * len(new) <= _MOST_TO_MATCH:
        return SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_LINES_AROUND)
    begin = _equal_at_the_start(old, new)
    end = min(_equal_at_the_start(old[::-1], new[::-1]), min(len(old), len(new)) - begin)
    return [[("replace", begin, len(old) - end, begin, len(new) - end)]]


def _equal_at_the_start(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
