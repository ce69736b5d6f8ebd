"""Letters that say which of several things differ."""

from __future__ import annotations

from itertools import combinations, permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.stats.letters import compact_letters

Matrix = list[list[float | None]]


def matrix(count: int, p_values: dict[tuple[int, int], float | None]) -> Matrix:
    """Symmetric, so that its rows can be reordered."""
    rows: Matrix = [[1.0] * count for _ in range(count)]
    for (i, j), p_value in p_values.items():
        rows[i][j] = rows[j][i] = p_value
    return rows


def different(count: int, *pairs: tuple[int, int]) -> Matrix:
    return matrix(count, dict.fromkeys(pairs, 0.001))


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    count = draw(st.integers(0, 7))
    p_values = st.one_of(st.none(), st.sampled_from([0.0, 0.0499, 0.05, 0.5, 1.0]))
    return matrix(count, {pair: draw(p_values) for pair in combinations(range(count), 2)})


def sharing(letters: list[str]) -> set[tuple[int, int]]:
    return {(i, j) for i, j in combinations(range(len(letters)), 2) if set(letters[i]) & set(letters[j])}


CHICKS = ("casein", "horsebean", "linseed", "meatmeal", "soybean", "sunflower")
BONFERRONI = {
    (0, 1): 3.1e-08,
    (0, 2): 0.00022,
    (0, 3): 0.68350,
    (0, 4): 0.00998,
    (0, 5): 1.0,
    (1, 2): 0.22833,
    (1, 3): 0.00011,
    (1, 4): 0.00487,
    (1, 5): 1.2e-08,
    (2, 3): 0.20218,
    (2, 4): 1.0,
    (2, 5): 9.3e-05,
    (3, 4): 1.0,
    (3, 5): 0.39653,
    (4, 5): 0.00447,
}
"""Of weights by feed in R's `chickwts`: `pairwise.t.test(weight, feed, p.adj = "bonferroni")`, as published by Lins."""


def test_the_published_letters_of_chicken_feeds() -> None:
    letters = compact_letters(matrix(6, BONFERRONI))
    # As R's package `cld` displays them, which finds the same eight pairs by Wilcoxon's test.
    published = {"casein": "a", "horsebean": "b", "linseed": "bc", "meatmeal": "ac", "soybean": "c", "sunflower": "a"}
    assert dict(zip(CHICKS, letters, strict=True)) == published


def test_the_published_instance_of_a_clique_cover() -> None:
    # Gramm et al., "Algorithms for compact letter displays: Comparison and evaluation" (2007), figure 2:
    # n = 5 and H = {{1, 5}, {2, 3}, {2, 5}, {3, 5}}, whose cover is {1, 2, 4}, {1, 3, 4}, {4, 5}.
    assert compact_letters(different(5, (0, 4), (1, 2), (1, 4), (2, 4))) == ["ab", "a", "b", "abc", "c"]


@pytest.mark.parametrize(
    ("p_values", "letters"),
    [
        (different(0), []),
        (different(1), ["a"]),
        (different(3), ["a", "a", "a"]),
        (different(3, (0, 1), (0, 2), (1, 2)), ["a", "b", "c"]),
        (different(3, (0, 2)), ["a", "ab", "b"]),
        (different(3, (0, 1)), ["a", "b", "ab"]),
        (different(4, (0, 2), (0, 3), (1, 3)), ["a", "ab", "bc", "c"]),
    ],
)
def test_letters_in_the_order_of_the_rows(p_values: Matrix, letters: list[str]) -> None:
    assert compact_letters(p_values) == letters


@given(matrices())
def test_two_share_a_letter_if_and_only_if_they_do_not_differ(p_values: Matrix) -> None:
    pairs = combinations(range(len(p_values)), 2)
    alike = {(i, j) for i, j in pairs if (p := p_values[i][j]) is None or p >= 0.05}
    letters = compact_letters(p_values)
    assert sharing(letters) == alike
    assert all(letters)


@given(matrices(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_no_group(p_values: Matrix, random: Random) -> None:
    def groups(order: list[int]) -> set[frozenset[int]]:
        letters = compact_letters([[p_values[i][j] for j in order] for i in order])
        found = {letter for shown in letters for letter in shown}
        return {frozenset(i for i, shown in zip(order, letters, strict=True) if letter in shown) for letter in found}

    shuffled = list(range(len(p_values)))
    random.shuffle(shuffled)
    assert groups(shuffled) == groups(list(range(len(p_values))))


def test_every_order_of_four() -> None:
    chain = different(4, (0, 2), (0, 3), (1, 3))
    for order in permutations(range(4)):
        letters = compact_letters([[chain[i][j] for j in order] for i in order])
        assert {(min(order[i], order[j]), max(order[i], order[j])) for i, j in sharing(letters)} == {
            (0, 1),
            (1, 2),
            (2, 3),
        }


def test_more_groups_than_letters() -> None:
    count = 28
    letters = compact_letters(different(count, *combinations(range(count), 2)))
    assert letters[:2] + letters[25:] == ["a", "b", "z", "a1", "b1"]


def test_another_level() -> None:
    p_values = matrix(2, {(0, 1): 0.03})
    assert compact_letters(p_values) == ["a", "b"]
    assert compact_letters(p_values, 0.01) == ["a", "a"]
