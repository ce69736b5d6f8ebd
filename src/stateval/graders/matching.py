"""The largest pairing of two lists, so that the order of either never decides what is paired."""

from __future__ import annotations

from collections.abc import Sequence


def largest_matching(fits: Sequence[Sequence[int]]) -> dict[int, int]:
    """Pairs as many left items as possible with right items of their own.

    Args:
        fits: for each left item the right items that it may be paired with.

    Augmenting paths, found breadth first (Kuhn 1955, Munkres 1957); time is left items times pairs that fit.
    """
    right_of: dict[int, int] = {}
    left_of: dict[int, int] = {}
    for start in range(len(fits)):
        reached: dict[int, int] = {}
        free = _free_right_item(start, fits, left_of, reached)
        while free is not None:
            left = reached[free]
            before = right_of.get(left)
            right_of[left], left_of[free] = free, left
            free = before
    return right_of


def _free_right_item(
    start: int, fits: Sequence[Sequence[int]], left_of: dict[int, int], reached: dict[int, int]
) -> int | None:
    """A right item without a partner that can be reached from `start`; `reached` says from which left item."""
    waiting = [start]
    for left in waiting:
        for right in fits[left]:
            if right not in reached:
                reached[right] = left
                if right not in left_of:
                    return right
                waiting.append(left_of[right])
    return None
