"""Ids that occur twice, found among millions with eight bytes a row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import pairwise

from stateval.records.digest import digest_of

_BUCKETS = 256


class IdDigests:
    """64-bit digests of ids. Equal digests only raise a suspicion; the ids themselves have to be compared then."""

    def __init__(self) -> None:
        self._buckets = [array("Q") for _ in range(_BUCKETS)]

    def add(self, key: str) -> None:
        """Takes down one id, as text."""
        digest = digest_of(key)
        self._buckets[digest % _BUCKETS].append(digest)

    def repeated(self) -> tuple[set[int], int]:
        """The digests that occur more than once, and how many rows are too many; sorts one bucket at a time."""
        suspects: set[int] = set()
        too_many = 0
        for bucket in self._buckets:
            again = [one for one, other in pairwise(sorted(bucket)) if one == other]
            suspects.update(again)
            too_many += len(again)
        return suspects, too_many


def few(suspects: Iterable[int], count: int) -> frozenset[int]:
    """So many of the suspects, always the same ones."""
    return frozenset(sorted(suspects)[:count])
