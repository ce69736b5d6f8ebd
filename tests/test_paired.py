"""Two runs of the same samples, several tests at once, and how many samples a question takes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence

import numpy
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from stateval.stats.estimates import Estimate, estimate_mean, estimate_percentile
from stateval.stats.intervals import wilson_interval
from stateval.stats.multiple import holm
from stateval.stats.paired import (
    MOST_BOOTSTRAP_CLUSTERS,
    Paired,
    difference_test,
    lower_bound,
    mcnemar_exact,
    pair,
    paired_difference,
    upper_bound,
)
from stateval.stats.planning import (
    samples_for_half_width,
    samples_for_percentile,
    samples_to_decide,
    samples_to_detect,
    spread_of_discordant,
)
from stateval.stats.points import Points

DRUG_ONE = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_TWO = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
"""Student (1908), the hours of sleep that each of two drugs gave ten patients."""

NUMBERS = st.floats(-1, 1).map(lambda value: round(value, 6))
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=15)
PASSES = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=2, max_size=15)


def points(values: Iterable[float], clusters: Sequence[int] | None = None, first: int = 1) -> Points:
    """Samples 1, 2, ...; a cluster of 0 is none."""
    found = Points()
    for index, value in enumerate(values):
        found.append(first + index, clusters[index] if clusters else 0, [value])
    return found


def paired(values: Iterable[tuple[float, float]], clusters: Sequence[int] | None = None) -> Paired:
    both = list(values)
    return pair(points((one for one, _ in both), clusters), points((other for _, other in both), clusters))


def swapped(values: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(other, one) for one, other in values]


def discordant(lost: int, gained: int, same: int = 0) -> list[tuple[float, float]]:
    return [(1.0, 0.0)] * lost + [(0.0, 1.0)] * gained + [(1.0, 1.0)] * same


def test_samples_are_joined_by_id_and_those_without_a_partner_are_counted() -> None:
    found = pair(points([1.0, 0.0, 0.0, 1.0], first=1), points([1.0, 1.0, 0.0], first=3))
    assert list(found.samples) == [3, 4]
    assert list(found.differences) == [1.0, 0.0]
    assert (found.n, found.n_only_one, found.n_only_other) == (2, 2, 1)
    assert (found.gained, found.lost, found.is_binary) == (1, 0, True)


def test_nothing_in_common_is_no_difference() -> None:
    found = pair(points([1.0], first=1), points([1.0], first=2))
    assert (found.n, found.n_only_one, found.n_only_other) == (0, 1, 1)
    assert paired_difference(found) is lower_bound(found) is upper_bound(found) is difference_test(found) is None


def test_scores_have_no_gained_and_lost() -> None:
    found = paired([(0.5, 1.0), (1.0, 0.0)])
    assert found.gained is found.lost is None


def test_dollars_are_no_passes_even_where_they_are_0_or_1() -> None:
    free = points([0.0] * 9)
    cost, difference = estimate_mean(free, scores=False), paired_difference(pair(free, free, scores=False))
    assert cost is not None and difference is not None
    assert (cost.low, cost.high, cost.method) == (0.0, 0.0, "t")
    assert (difference.low, difference.high) == (0.0, 0.0)
    assert pair(free, points([1.0] * 9), scores=False).gained is None


def test_a_cluster_that_only_one_run_knows_counts() -> None:
    known, unknown = points([1.0, 0.0], [7, 7]), points([0.0, 1.0])
    assert pair(known, unknown).n_clusters == pair(unknown, known).n_clusters == 1
    assert pair(unknown, unknown).n_clusters == 2


@pytest.mark.parametrize(
    ("lost", "gained", "p_value"),
    [
        pytest.param(4, 0, 0.125, id="four-to-nothing"),
        pytest.param(0, 0, 1.0, id="nothing"),
        pytest.param(5, 5, 1.0, id="even"),
        pytest.param(1, 8, 0.0390625, id="one-to-eight"),
        pytest.param(0, 12, 2 / 4096, id="twelve-to-nothing"),
    ],
)
def test_mcnemars_exact_test_is_two_sided(lost: int, gained: int, p_value: float) -> None:
    assert mcnemar_exact(lost, gained) == mcnemar_exact(gained, lost) == pytest.approx(p_value)


@given(st.integers(0, 2_000), st.integers(0, 2_000))
def test_mcnemars_exact_test_is_scipys_binomial_test(lost: int, gained: int) -> None:
    expected = scipy.stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    assert mcnemar_exact(lost, gained) == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="impossible"):
        mcnemar_exact(-1, 2)


def test_students_own_numbers_by_the_paired_t_test() -> None:
    sleep = paired(zip(DRUG_ONE, DRUG_TWO, strict=True))
    test = difference_test(sleep)
    assert test is not None
    assert (test.method, test.p_value) == ("t", pytest.approx(0.00283289, abs=1e-8))
    expected = scipy.stats.ttest_rel(DRUG_TWO, DRUG_ONE).confidence_interval(0.95)
    assert lower_bound(sleep, 0.975) == pytest.approx(expected.low)
    assert upper_bound(sleep, 0.975) == pytest.approx(expected.high)
    one_sided = scipy.stats.ttest_rel(DRUG_TWO, DRUG_ONE, alternative="greater").confidence_interval(0.95)
    assert lower_bound(sleep, 0.95) == pytest.approx(one_sided.low)


def test_the_bootstrap_is_scipys_but_for_chance_and_the_correction_for_few() -> None:
    source = random.Random(5)
    values = [(source.random(), source.random()) for _ in range(300)]
    found = paired_difference(paired(values), 0.95)
    assert found is not None and found.method == "bootstrap"
    differences = [other - one for one, other in values]
    expected = scipy.stats.bootstrap(
        (differences,), numpy.mean, method="percentile", n_resamples=20_000, rng=numpy.random.default_rng(1)
    ).confidence_interval
    error = found.standard_error
    assert error is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.2 * error)


def test_clusters_are_drawn_whole() -> None:
    source = random.Random(6)
    effects = [source.gauss(0, 1) for _ in range(60)]
    alike = [(0.0, effect) for effect in effects for _ in range(5)]
    clusters = [index // 5 + 1 for index in range(300)]
    once = paired_difference(paired((0.0, effect) for effect in effects))
    whole, apart = paired_difference(paired(alike, clusters)), paired_difference(paired(alike))
    assert once is not None and whole is not None and apart is not None
    assert (whole.method, whole.n, whole.n_clusters) == ("cluster bootstrap", 300, 60)
    assert whole.standard_error == pytest.approx(once.standard_error)
    assert whole.high - whole.low == pytest.approx(once.high - once.low, rel=0.1)
    assert apart.high - apart.low < 0.6 * (whole.high - whole.low)


def test_a_cluster_counts_with_all_its_samples() -> None:
    sizes = [1, 2, 3] * 5
    clusters = [index + 1 for index, size in enumerate(sizes) for _ in range(size)]
    found = paired_difference(paired([(0.0, 0.1 * (cluster % 4)) for cluster in clusters], clusters))
    assert found is not None
    assert found.value == pytest.approx(sum(0.1 * (cluster % 4) for cluster in clusters) / 30)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("size", [1, 2])
def test_above_two_thousand_clusters_the_interval_is_the_robust_one(size: int) -> None:
    source = random.Random(7)
    n = (MOST_BOOTSTRAP_CLUSTERS + 1) * size
    clusters = [index // size + 1 for index in range(n)] if size > 1 else None
    found = paired_difference(paired(((0.0, source.random()) for _ in range(n)), clusters))
    assert found is not None and found.standard_error is not None
    assert found.method == ("t" if size == 1 else "cluster t")
    half_width = scipy.stats.t.ppf(0.975, MOST_BOOTSTRAP_CLUSTERS) * found.standard_error
    assert (found.low, found.high) == pytest.approx((found.value - half_width, found.value + half_width))


def test_the_same_seed_gives_the_same_interval_and_another_a_similar_one() -> None:
    values = paired((0.0, (index * 37 % 11) / 11) for index in range(60))
    first, again, other = (paired_difference(values, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first is not None and other is not None
    assert other.low == pytest.approx(first.low, abs=0.02)


def test_twelve_wins_of_twelve_are_four_tasks_fault_62() -> None:
    tasks = [index // 3 + 1 for index in range(12)]
    by_repeats, by_clusters = paired(discordant(0, 4)), paired(discordant(0, 12), tasks)
    for found, method in ((by_repeats, "mcnemar exact"), (by_clusters, "cluster sign test")):
        test, interval = difference_test(found), paired_difference(found)
        assert test is not None and interval is not None
        assert (test.p_value, test.method) == (pytest.approx(1 / 8), method)
        assert interval.value == 1.0
        assert interval.low <= 0, "four tasks do not show a difference"
        bound = lower_bound(found, 0.95)
        assert bound is not None and bound <= 0


@pytest.mark.parametrize("clusters", range(2, 12))
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_equal_differences_show_something_exactly_where_the_sign_test_does(clusters: int, confidence: float) -> None:
    found = paired([(0.0, 0.3)] * clusters)
    interval, bound = paired_difference(found, confidence), lower_bound(found, confidence)
    test = difference_test(found)
    assert interval is not None and bound is not None and test is not None
    assert (test.method, interval.method) == ("sign test", "equal differences")
    assert (interval.low > 0) == (test.p_value < 1 - confidence)
    assert (bound > 0) == (test.p_value / 2 < 1 - confidence)
    assert interval.high == upper_bound(found, confidence) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("values", "far"),
    [
        pytest.param([(1.0, 1.0)] * 50, 1 - 0.025 ** (1 / 50), id="fault-59-passes-all-the-same"),
        pytest.param([(0.4, 0.4)] * 50, 0.0, id="fault-59-scores-all-the-same"),
        pytest.param([(0.1, 0.1 + 1e-17), (0.3, 0.3)], 0.0, id="fault-59-rounding"),
    ],
)
def test_no_difference_at_all(values: list[tuple[float, float]], far: float) -> None:
    found = paired_difference(paired(values))
    assert found is not None
    assert (found.value, found.standard_error) == (0.0, 0.0)
    assert (found.low, found.high) == pytest.approx((-far, far))
    test = difference_test(paired(values))
    assert test is not None and test.p_value == 1.0


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(paired([]), id="fault-59-nothing"),
        pytest.param(paired([(0.0, 1.0)]), id="fault-59-one-pair"),
        pytest.param(paired([(0.0, 1.0), (0.5, 0.2)], [7, 7]), id="fault-59-one-cluster"),
    ],
)
def test_a_single_cluster_says_nothing(found: Paired) -> None:
    assert paired_difference(found) is lower_bound(found) is upper_bound(found) is difference_test(found) is None


@settings(max_examples=40)
@given(PAIRS | PASSES, st.integers(1, 4), st.floats(0.5, 0.999))
def test_every_number_is_finite_and_the_interval_holds_the_difference(
    values: list[tuple[float, float]], size: int, confidence: float
) -> None:
    found = paired(values, [index // size + 1 for index in range(len(values))])
    interval, test = paired_difference(found, confidence), difference_test(found)
    bounds = lower_bound(found, confidence), upper_bound(found, confidence)
    if interval is None:
        assert len(set(found.clusters)) == 1
        assert bounds == (None, None) and test is None
        return
    numbers = (interval.low, interval.value, interval.high)
    assert all(map(math.isfinite, numbers)) and list(numbers) == sorted(numbers)
    assert bounds[0] is not None and bounds[1] is not None
    assert bounds[0] - 1e-12 <= interval.value <= bounds[1] + 1e-12
    assert test is not None and 0 <= test.p_value <= 1


@settings(max_examples=40)
@given(PAIRS | PASSES, st.floats(0.5, 0.999))
def test_the_other_way_round_everything_changes_its_sign(values: list[tuple[float, float]], confidence: float) -> None:
    there, back = paired(values), paired(swapped(values))
    one, other = paired_difference(there, confidence), paired_difference(back, confidence)
    assert one is not None and other is not None
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)
    bound, back_bound = lower_bound(there, confidence), upper_bound(back, confidence)
    assert bound is not None and back_bound is not None
    assert bound == pytest.approx(-back_bound, abs=1e-9)
    test, back_test = difference_test(there), difference_test(back)
    assert test is not None and back_test is not None
    assert test.p_value == pytest.approx(back_test.p_value)


@settings(max_examples=40)
@given(PAIRS, st.floats(0.1, 100), st.floats(0.5, 0.99), st.floats(0, 0.009))
def test_intervals_stretch_with_their_unit_and_widen_with_confidence(
    values: list[tuple[float, float]], scale: float, confidence: float, more: float
) -> None:
    plain, wider = (paired_difference(paired(values), level) for level in (confidence, confidence + more))
    stretched = paired_difference(paired((scale * one, scale * other) for one, other in values), confidence)
    assert plain is not None and wider is not None and stretched is not None
    if plain.method != "equal differences":
        assert (stretched.low, stretched.high) == pytest.approx((scale * plain.low, scale * plain.high), abs=1e-7)
    assert wider.low <= plain.low + 1e-9 and plain.high <= wider.high + 1e-9


def false_alarms(draw: Callable[[], Paired], times: int) -> int:
    bounds = [lower_bound(draw(), 0.95) for _ in range(times)]
    return sum(bound is not None and bound > 0 for bound in bounds)


@pytest.mark.parametrize(("n", "rate"), [(20, 0.5), (40, 0.3), (60, 0.8), (100, 0.95)])
def test_the_bound_raises_as_many_false_alarms_as_it_may(n: int, rate: float) -> None:
    """The 99.9 % range of 400 trials at 5 % is 7 to 36; fewer than 7 would be a bound that says too little."""
    source = random.Random(n)

    def draw() -> Paired:
        return paired((float(source.random() < rate), float(source.random() < rate)) for _ in range(n))

    assert 7 <= false_alarms(draw, 400) <= 36


def test_the_bound_raises_no_more_false_alarms_where_samples_share_clusters() -> None:
    source, clusters = random.Random(11), [index // 5 + 1 for index in range(100)]

    def run() -> list[float]:
        rates = [source.choice([0.1, 0.5, 0.9]) for _ in range(20)]
        return [float(source.random() < rate) for rate in rates for _ in range(5)]

    pairs = [list(zip(run(), run(), strict=True)) for _ in range(400)]
    each, whole = iter(pairs), iter(pairs)
    assert 7 <= false_alarms(lambda: paired(next(whole), clusters), 400) <= 36
    assert false_alarms(lambda: paired(next(each)), 400) > 40, "they matter here"


@pytest.mark.parametrize(("one", "other"), [(0.5, 0.5), (0.8, 0.6), (0.5, 0.9)])
def test_the_interval_of_few_pairs_covers_what_it_says(one: float, other: float) -> None:
    source, hits = random.Random(12), 0
    for _ in range(200):
        found = paired_difference(
            paired((float(source.random() < one), float(source.random() < other)) for _ in range(12))
        )
        hits += found is not None and found.low <= other - one + 1e-9 and other - one - 1e-9 <= found.high
    assert hits / 200 >= 0.9


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        pytest.param([], [], id="none"),
        pytest.param([0.04], [0.04], id="one"),
        pytest.param([0.01, 0.02, 0.03, 0.04, 0.05], [0.05, 0.08, 0.09, 0.09, 0.09], id="each-at-least-the-one-before"),
        pytest.param([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02], id="in-the-order-given"),
        pytest.param([0.9, 0.6], [1.0, 1.0], id="at-most-one"),
    ],
)
def test_holms_adjusted_p_values(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_rule_rejects(p_values: list[float], level: float) -> None:
    rejected = 0
    for rank, p_value in enumerate(sorted(p_values)):
        if p_value * (len(p_values) - rank) > level:
            break
        rejected += 1
    assert sum(p_value <= level for p_value in holm(p_values)) == rejected


def rate(passed: int, n: int) -> Estimate:
    found = estimate_mean(points([1.0] * passed + [0.0] * (n - passed)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("threshold", "more"),
    [
        pytest.param(0.5, 0, id="decided-above"),
        pytest.param(0.9, 0, id="decided-below"),
        pytest.param(0.7, 31, id="above"),
        pytest.param(0.85, 146, id="below"),
        pytest.param(0.8, None, id="never"),
    ],
)
def test_how_many_more_samples_would_decide(threshold: float, more: int | None) -> None:
    assert samples_to_decide(rate(40, 50), threshold) == more
    if more:
        n = 50 + more
        low, high = wilson_interval(0.8 * n, n)
        assert low > threshold or high < threshold
        low, high = wilson_interval(0.8 * (n - 1), n - 1)
        assert low <= threshold <= high


SPREAD = [index % 7 / 7 for index in range(35)]
ESTIMATES = {
    "wilson": rate(20, 35),
    "t": estimate_mean(points(SPREAD)),
    "cluster t": estimate_mean(points(SPREAD, [index // 5 + 1 for index in range(35)])),
    "cluster wilson": estimate_mean(points([1.0] * 20 + [0.0] * 15, [index // 5 + 1 for index in range(35)])),
    "order statistics": estimate_percentile(SPREAD, 50),
    "bootstrap": paired_difference(paired((0.0, value) for value in SPREAD)),
    "equal differences": paired_difference(paired(discordant(0, 3))),
}


@pytest.mark.parametrize("method", ESTIMATES)
@pytest.mark.parametrize("side", [-1, 1])
def test_the_nearer_the_threshold_the_more_samples_it_takes(method: str, side: int) -> None:
    found = ESTIMATES[method]
    assert found is not None and found.method == method
    distance = found.value - found.low if side < 0 else found.high - found.value
    answers = [samples_to_decide(found, found.value + side * distance * share) for share in (1.01, 0.9, 0.5, 0.1)]
    if distance:
        assert answers[0] == 0
        assert all(answer is not None and answer > 0 for answer in answers[1:])
        assert answers == sorted(answers)  # type: ignore[type-var]
    assert samples_to_decide(found, found.value) is None


def test_no_number_of_samples_shows_what_is_nearly_the_threshold() -> None:
    assert samples_to_decide(rate(20, 40), 0.5 + 1e-6) is None


def test_how_many_samples_a_width_or_a_difference_takes() -> None:
    assert samples_for_half_width(0.1) == 93
    assert samples_for_half_width(0.0) is None
    # The t test's own power at that size, by scipy's noncentral t.
    n = samples_to_detect(0.1, 0.5)
    assert n == 197
    beyond = scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, n - 1), n - 1, 0.1 / 0.5 * math.sqrt(n))
    assert beyond == pytest.approx(0.8, abs=0.01)
    assert samples_to_detect(0, 0.5) is None
    assert spread_of_discordant(0.1, 0.26) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="impossible"):
        spread_of_discordant(0.3, 0.2)


@pytest.mark.parametrize(("percent", "n"), [(50, 6), (90, 36), (95, 72), (99, 368), (0, None), (100, None)])
def test_how_many_values_bound_a_percentile(percent: float, n: int | None) -> None:
    assert samples_for_percentile(percent) == n
    if n:
        assert estimate_percentile([float(value) for value in range(n)], percent) is not None
        assert estimate_percentile([float(value) for value in range(n - 1)], percent) is None
