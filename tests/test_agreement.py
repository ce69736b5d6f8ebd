"""A judge beside people: published numbers, simulation, and what is not defined."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.stats.agreement import Table, agreement, cohen_kappa, corrected_rate, rate

COUNTS = st.integers(0, 60)


def test_kappa_of_a_published_example():
    """Fleiss, Levin and Paik, "Statistical Methods for Rates and Proportions", as many text books quote Cohen (1960).

    Two readers of 50 proposals: 20 yes by both, 15 no by both, 5 and 10 apart: observed .7, by chance .5, kappa .4.
    """
    found = cohen_kappa(Table(20, 5, 10, 15))
    assert found.value == pytest.approx(0.4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.2 < 0.6 < found.high


def test_the_standard_error_is_that_of_fleiss_cohen_and_everitt():
    """Against the general formula, written out over a matrix of shares instead of four cells."""
    from stateval.stats.agreement import _error_of_kappa, _kappa

    table = Table(31, 4, 9, 16)
    n = table.n
    shares = [[table.both / n, table.judge_alone / n], [table.people_alone / n, table.neither / n]]
    rows = [sum(row) for row in shares]
    columns = [shares[0][k] + shares[1][k] for k in (0, 1)]
    by_chance = sum(rows[k] * columns[k] for k in (0, 1))
    kappa = (shares[0][0] + shares[1][1] - by_chance) / (1 - by_chance)
    variance = sum(shares[k][k] * (1 - (rows[k] + columns[k]) * (1 - kappa)) ** 2 for k in (0, 1))
    variance += (1 - kappa) ** 2 * sum(
        shares[i][j] * (columns[i] + rows[j]) ** 2 for i in (0, 1) for j in (0, 1) if i != j
    )
    variance -= (kappa - by_chance * (1 - kappa)) ** 2
    assert _kappa(table) == pytest.approx(kappa)
    assert _error_of_kappa(table, kappa) == pytest.approx(math.sqrt(variance / n) / (1 - by_chance))


def simulated(prevalence: float, sensitivity: float, specificity: float, n: int, source: random.Random) -> Table:
    cells = [0, 0, 0, 0]
    for _ in range(n):
        good = source.random() < prevalence
        passed = source.random() < (sensitivity if good else 1 - specificity)
        cells[0 if good and passed else 1 if passed else 2 if good else 3] += 1
    return Table(*cells)


@pytest.mark.parametrize(
    ("prevalence", "sensitivity", "specificity", "n"),
    [(0.5, 0.9, 0.9, 50), (0.8, 0.9, 0.7, 60), (0.3, 0.8, 0.95, 100), (0.5, 0.5, 0.5, 50)],
)
def test_intervals_hold_what_is_true_about_as_often_as_they_say(prevalence, sensitivity, specificity, n):
    source = random.Random(20261201)
    by_judge = prevalence * sensitivity + (1 - prevalence) * (1 - specificity)
    agreed = prevalence * sensitivity + (1 - prevalence) * specificity
    by_chance = by_judge * prevalence + (1 - by_judge) * (1 - prevalence)
    kappa = (agreed - by_chance) / (1 - by_chance)
    of_kappa = of_rate = trials = defined = 0
    for _ in range(600):
        table = simulated(prevalence, sensitivity, specificity, n, source)
        found = cohen_kappa(table)
        if found.value is not None and found.low is not None and found.high is not None:
            trials += 1
            of_kappa += found.low <= kappa <= found.high
        passed = sum(source.random() < by_judge for _ in range(400))
        true = corrected_rate(passed, 400, table)
        if true.value is not None and true.low is not None and true.high is not None:
            defined += 1
            of_rate += true.low <= prevalence <= true.high
    assert of_kappa / trials > 0.925
    if sensitivity + specificity > 1.1:
        assert of_rate / defined > 0.925


def test_the_corrected_rate_of_rogan_and_gladen():
    """(reported + specificity - 1) / (sensitivity + specificity - 1), here (.5 + .9 - 1) / (.8 + .9 - 1)."""
    found = corrected_rate(50, 100, Table(80, 10, 20, 90))
    assert found.value == pytest.approx(0.4 / 0.7)
    assert found.n == 100
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low < found.value < found.high <= 1


def test_of_the_labelled_answers_themselves_the_corrected_rate_is_that_of_people():
    found = agreement([1, 1, 0, 0, 1], [1, 0, 0, 1, 1], 0.5)
    assert found.corrected == found.prevalence
    assert found.reported.value == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("table", "which"),
    [
        (Table(0, 0, 0, 0), "no answer"),
        (Table(7, 0, 0, 0), "same verdict"),
        (Table(0, 0, 0, 7), "same verdict"),
    ],
)
def test_fault_43_a_kappa_that_is_not_defined_is_none_with_a_reason(table, which):
    found = cohen_kappa(table)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert found.reason is not None
    assert which in found.reason


def test_fault_43_a_class_that_people_never_gave_has_no_rate():
    found = agreement([1, 0, 1], [1, 1, 1], 0.5)
    assert (found.specificity.value, found.specificity.n) == (None, 0)
    assert found.specificity.reason == "people passed every answer"
    assert found.sensitivity.value == pytest.approx(2 / 3)
    none_good = agreement([1, 0, 1], [0, 0, 0], 0.5, reported=(10, 20))
    assert none_good.sensitivity.reason == "people passed no answer"
    assert none_good.corrected.value is None
    assert none_good.corrected.reason is not None


def test_a_judge_no_better_than_chance_corrects_nothing():
    found = corrected_rate(5, 10, Table(5, 5, 5, 5))
    assert found.value is None
    assert found.reason is not None
    assert "as readily" in found.reason


@pytest.mark.parametrize(("score", "passed"), [(0.5, True), (0.5 - 1e-12, True), (0.4999, False), (0.69, True)])
def test_a_score_passes_at_the_threshold(score, passed):
    assert Table.of([score], [1.0], 0.5).both == passed


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.sampled_from([0.8, 0.95, 0.99]))
def test_everything_that_is_said_of_a_table_is_consistent(both, judge_alone, people_alone, neither, confidence):
    table = Table(both, judge_alone, people_alone, neither)
    kappa = cohen_kappa(table, confidence)
    if kappa.value is None:
        assert kappa.reason
    else:
        assert kappa.low is not None
        assert kappa.high is not None
        assert -1 <= kappa.low <= kappa.value + 1e-12
        assert kappa.value - 1e-12 <= kappa.high <= 1
        mirrored = cohen_kappa(Table(neither, people_alone, judge_alone, both), confidence)
        assert mirrored.value == pytest.approx(kappa.value)
    found = corrected_rate(table.judge, table.n, table, confidence)
    if found.value is not None:
        assert found.value == pytest.approx(table.people / table.n)
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.value <= found.high <= 1
    accuracy = rate(table.agreed, table.n, confidence)
    assert (accuracy.value is None) == (table.n == 0)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30), st.floats(0, 1))
def test_the_mean_differences_are_those_of_the_scores(pairs, threshold):
    judge, people = zip(*pairs, strict=True)
    found = agreement(judge, people, threshold)
    assert found.mean_difference == pytest.approx(sum(judge) / len(judge) - sum(people) / len(people), abs=1e-9)
    assert found.mean_absolute_difference is not None
    assert found.mean_absolute_difference >= abs(found.mean_difference or 0) - 1e-12
    assert found.n == found.true_positives + found.false_positives + found.false_negatives + found.true_negatives
