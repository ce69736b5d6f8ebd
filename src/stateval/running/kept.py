"""What need not be computed again: finished samples of a run that goes on, and conversations that are graded anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stateval.records.result import ErrorCategory, SampleResult
from stateval.results.lines import DigestSet, LineTable

Reader = Callable[[int], SampleResult | None]
"""From a sample's digest to its kept result; None where there is none."""

Slot = tuple[str, int]
"""A model's label and the number of a run."""

_NO_CONVERSATION = {ErrorCategory.TARGET, ErrorCategory.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Kept:
    """What a run begins with.

    `present`: samples that have a line. `done`: samples that are not touched. `again`: kept results whose conversation
    stands, while grades whose inputs changed are computed anew. `only_kept`: no target is run, so that a sample
    without a kept result is not reached. `notes` say all that to people.
    """

    present: Mapping[Slot, DigestSet] = field(default_factory=dict)
    done: Mapping[Slot, DigestSet] = field(default_factory=dict)
    again: Mapping[Slot, Reader] = field(default_factory=dict)
    only_kept: bool = False
    notes: tuple[str, ...] = ()

    @property
    def n_done(self) -> int:
        """How many observations are not touched."""
        return sum(map(len, self.done.values()))

    def count_done(self, slot: Slot) -> int:
        """How many samples of one model in one run are not touched."""
        return len(self.done.get(slot, ()))

    def n_present(self, label: str) -> int:
        """How many observations of one model have a line."""
        return sum(len(digests) for (model, _), digests in self.present.items() if model == label)


NOTHING_KEPT = Kept()


def has_conversation(error: ErrorCategory | None) -> bool:
    """Whether a sample that ended so has a finished conversation, which can be graded again."""
    return error not in _NO_CONVERSATION


def reader_of(table: LineTable, read: Callable[[int, int], SampleResult]) -> Reader:
    """Looks a sample up in a table of lines, and reads its line by offset and length."""

    def find(digest: int) -> SampleResult | None:
        place = table.find(digest)
        return None if place is None else read(*place)

    return find
