"""Which of several things differ, as letters: two that share a letter do not differ significantly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from string import ascii_lowercase

SIGNIFICANCE = 0.05
"""The level below which a p-value counts as significant, by convention."""


def compact_letters(p_values: Sequence[Sequence[float | None]], significance: float = SIGNIFICANCE) -> list[str]:
    """The letters of each row: rows i and j share one if and only if their difference is not significant.

    Every letter stands for a largest group of rows of which no two differ, and the first letters for the groups of the
    first rows. From a matrix in order of rank, `a` therefore marks what cannot be told from the best.

    By the insert-and-absorb algorithm of Piepho, "An Algorithm for a Letter-Based Representation of All-Pairwise
    Comparisons" (2004). Its optional last step, which sweeps letters away that others make redundant, is left out: what
    it leaves depends on the order of the rows.

    Args:
        p_values: the adjusted p-value of rows i and j at [i][j], for i < j; other cells are not read. None where the
            two could not be compared; they share a letter then, for no difference was shown.
        significance: p-values below it are significant.
    """
    count = len(p_values)
    different = [(i, j) for i, j in combinations(range(count), 2) if _is_below(p_values[i][j], significance)]
    groups = sorted(_groups(count, different), key=sorted)
    return [
        "".join(letter for letter, group in zip(_letters(), groups, strict=False) if i in group) for i in range(count)
    ]


def _is_below(p_value: float | None, significance: float) -> bool:
    return p_value is not None and p_value < significance


def _groups(count: int, different: Iterable[tuple[int, int]]) -> list[frozenset[int]]:
    """The largest groups in which no two differ: one of all at first, divided at each pair that does."""
    groups = [frozenset(range(count))]
    for pair in different:
        divided = [group for group in groups if group.issuperset(pair)]
        kept = [group for group in groups if not group.issuperset(pair)]
        for group in divided:
            for one in pair:
                _absorb(kept, group - {one})
        groups = kept
    return groups


def _absorb(groups: list[frozenset[int]], group: frozenset[int]) -> None:
    """Adds a group, unless another one holds all of it; drops those that it holds."""
    if not any(other >= group for other in groups):
        groups[:] = [other for other in groups if not other < group]
        groups.append(group)


def _letters() -> Iterator[str]:
    """a to z, a1 to z1, a2, ...: a row's letters can be told apart without spaces between them."""
    number = 0
    while True:
        yield from (f"{letter}{number or ''}" for letter in ascii_lowercase)
        number += 1
