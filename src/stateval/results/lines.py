"""Where the lines of results are, by sample: some thirty bytes a line, however long the lines."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise

_MOST_AT_HAND = 200_000
"""Digests that are kept in a set, which is quicker and takes some ten times the room: 16 MB at the most."""


class DigestSet:
    """Ids, as eight bytes each."""

    def __init__(self, digests: Iterable[int] = ()) -> None:
        distinct = frozenset(digests)
        self._sorted = array("Q", sorted(distinct))
        self._at_hand = distinct if len(distinct) <= _MOST_AT_HAND else None

    def __contains__(self, digest: int) -> bool:
        if self._at_hand is not None:
            return digest in self._at_hand
        place = bisect_left(self._sorted, digest)
        return place < len(self._sorted) and self._sorted[place] == digest

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[int]:
        return iter(self._sorted)


class LineTable:
    """Lines of one file by sample: digest, offset and length in bytes. The last line of a sample counts."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._offsets = array("Q")
        self._lengths = array("Q")
        self._order: array[int] | None = None

    def add(self, digest: int, offset: int, length: int) -> None:
        """Takes down one line; all are added before the first is looked up."""
        self._digests.append(digest)
        self._offsets.append(offset)
        self._lengths.append(length)
        self._order = None

    def find(self, digest: int) -> tuple[int, int] | None:
        """(offset, length) of a sample's last line; None where it has none."""
        order = self._ordered()
        place = bisect_left(order, digest, key=self._digests.__getitem__)
        found = None
        while place < len(order) and self._digests[order[place]] == digest:
            found = order[place]
            place += 1
        return None if found is None else (self._offsets[found], self._lengths[found])

    def superseded(self) -> Iterator[int]:
        """The offsets of lines in whose place a later one stands."""
        order = self._ordered()
        for one, next_one in pairwise(order):
            if self._digests[one] == self._digests[next_one]:
                yield self._offsets[one]

    def __len__(self) -> int:
        return len(self._digests)

    def _ordered(self) -> array[int]:
        if self._order is None:
            self._order = array("Q", sorted(range(len(self._digests)), key=self._digests.__getitem__))
        return self._order
