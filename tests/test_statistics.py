"""What docs/statistics.md says in numbers is what the code computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stateval.stats.intervals import wilson_interval
from stateval.stats.paired import mcnemar_exact
from stateval.stats.planning import (
    samples_for_half_width,
    samples_for_percentile,
    samples_to_detect,
    spread_of_discordant,
)
from stateval.stats.repeats import pass_at_k, pass_hat_k

PAGE = (Path(__file__).parent.parent / "docs" / "statistics.md").read_text(encoding="utf-8")


def table(first: str) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the table whose first heading this is."""
    (text,) = re.findall(rf"^(\| {re.escape(first)} \|.*?)\n\n", PAGE, re.DOTALL | re.MULTILINE)
    heading, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
    return heading, rows


def number(cell: str) -> float:
    (found,) = re.findall(r"\d+(?:\.\d+)?", cell)
    return float(found)


def test_the_samples_for_a_width_are_those_of_the_code() -> None:
    heading, rows = table("true rate")
    assert len(rows) == 3
    for rate, *cells in rows:
        for width, cell in zip(heading[1:], cells, strict=True):
            assert int(cell) == samples_for_half_width(number(width), float(rate))


def test_the_pairs_for_a_difference_are_those_of_the_code() -> None:
    heading, rows = table("difference")
    assert len(rows) == 3
    for difference, *cells in rows:
        for change, cell in zip(heading[1:], cells, strict=True):
            spread = spread_of_discordant(float(difference), number(change) / 100)
            assert int(cell) == samples_to_detect(float(difference), spread)


def test_the_observations_for_a_percentile_are_those_of_the_code() -> None:
    heading, ((*cells,),) = table("p50")
    assert [int(cell) for cell in cells] == [samples_for_percentile(number(percent)) for percent in heading]


@pytest.mark.parametrize(
    ("said", "computed"),
    [
        ("40 of 50 passed: 0.80, Wilson [0.67, 0.89]", [round(end, 2) for end in wilson_interval(40, 50)]),
        ("One pass of one sample does have an interval, [0.21, 1]", [round(end, 2) for end in wilson_interval(1, 1)]),
        ("pass@k = 1 - C(3,2) / C(5,2) = 0.7", [pass_at_k(5, 2, 2)]),
        ("pass^k = C(2,2) / C(5,2) = 0.1", [pass_hat_k(5, 2, 2)]),
        ("0 newly fail: p = 2 · (1/2)⁴ = 0.125", [mcnemar_exact(0, 4)]),
        ("12 of 12 wins in 4 tasks of 3 runs: p = 2/16 = 1/8", [mcnemar_exact(0, 4), 8]),
    ],
)
def test_the_worked_examples_are_those_of_the_code(said: str, computed: list[float]) -> None:
    assert said in PAGE
    numbers = [float(found) for found in re.findall(r"\d+(?:\.\d+)?", said)][-len(computed) :]
    if "1/8" in said:
        numbers = [numbers[-2] / numbers[-1], numbers[-1]]
    assert numbers == pytest.approx(computed)
