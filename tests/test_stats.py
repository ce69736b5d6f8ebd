"""Means, percentiles, pass@k, the observation table and the ledger."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.records.result import ErrorCategory, Observation
from stateval.records.usage import Timing, Usage
from stateval.stats.comparison import Operator, holds
from stateval.stats.describe import maximum, mean, median, minimum, percentile, standard_deviation
from stateval.stats.ledger import ledger
from stateval.stats.repeats import pass_at_k, pass_hat_k
from stateval.stats.table import ObservationTable

NUMBERS = st.lists(st.floats(0, 1), max_size=40)


def observation(sample: str = "1", score: float | None = 1.0, **fields: object) -> Observation:
    scores = {} if score is None else {"accuracy": score}
    return Observation(
        **{"sample_id": sample, "run": 1, "scores": scores, "timing": Timing(total=2, target=1), **fields}
    )


def table_of(*observations: Observation, metrics: tuple[str, ...] = ("accuracy",)) -> ObservationTable:
    table = ObservationTable(metrics)
    for one in observations:
        table.add(one)
    return table


@given(NUMBERS, st.floats(0, 100))
def test_percentiles_are_numpys(values: list[float], percent: float) -> None:
    expected = float(numpy.percentile(values, percent, method="linear")) if values else None
    assert percentile(values, percent) == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(NUMBERS)
def test_mean_and_spread_are_numpys_or_none(values: list[float]) -> None:
    assert mean(values) == (pytest.approx(numpy.mean(values)) if values else None)
    expected = pytest.approx(numpy.std(values, ddof=1), abs=1e-12) if len(values) > 1 else None
    assert standard_deviation(values) == expected
    assert (minimum(values), maximum(values)) == ((min(values), max(values)) if values else (None, None))


@pytest.mark.parametrize(
    ("values", "p50", "p95"),
    [
        pytest.param([7.0], 7.0, 7.0, id="fault-56-one"),
        pytest.param([2.0, 1.0], 1.5, 1.95, id="fault-56-two"),
        pytest.param([4.0, 1.0, 3.0, 2.0], 2.5, 3.85, id="fault-56-four"),
        pytest.param([float(n) for n in range(1, 21)], 10.5, 19.05, id="fault-56-twenty"),
    ],
)
def test_percentiles_with_known_answers(values: list[float], p50: float, p95: float) -> None:
    assert percentile(values, 50) == median(values) == pytest.approx(p50)
    assert percentile(values, 95) == pytest.approx(p95)


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        pytest.param([], None, id="fault-59-nothing"),
        pytest.param([0.4], None, id="fault-59-one-value"),
        pytest.param([0.1] * 10, 0.0, id="fault-59-all-equal"),
    ],
)
def test_what_is_undefined_is_none_and_never_nan(values: list[float], spread: float | None) -> None:
    assert standard_deviation(values) == (None if spread is None else pytest.approx(spread, abs=1e-15))
    assert all(
        value is None or math.isfinite(value) for value in (mean(values), median(values), percentile(values, 99))
    )


def test_a_percentile_outside_of_0_and_100_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1.0], 101)


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_counts_all_choices_of_k_trials(case: tuple[int, int, int]) -> None:
    trials, passed, k = case
    choices = list(combinations([True] * passed + [False] * (trials - passed), k))
    assert pass_at_k(trials, passed, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(trials, passed, k) == pytest.approx(sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize(
    "estimate", [pytest.param(pass_at_k, id="fault-58-any"), pytest.param(pass_hat_k, id="fault-58-all")]
)
def test_k_above_the_trials_is_undefined(estimate: object) -> None:
    assert estimate(2, 2, 3) is None  # type: ignore[operator]


@pytest.mark.parametrize(
    ("operator", "at", "above", "below"),
    [
        (Operator.GT, False, True, False),
        (Operator.GTE, True, True, False),
        (Operator.LT, False, False, True),
        (Operator.LTE, True, False, True),
        (Operator.EQ, True, False, False),
    ],
)
def test_comparison_by_tolerance(operator: Operator, at: bool, above: bool, below: bool) -> None:
    assert holds(0.1 + 0.2, operator, 0.3) is at
    assert holds(0.3 + 1e-6, operator, 0.3) is above
    assert holds(0.3 - 1e-6, operator, 0.3) is below


def test_a_table_selects_by_run_and_by_any_of_the_tags() -> None:
    table = table_of(
        observation("1", 0.1, tags=("a",)),
        observation("2", 0.2, tags=("a", "b")),
        observation("1", 0.3, run=2, tags=("a",)),
        observation("3", 0.4, run=2),
    )
    assert table.runs == [1, 2]
    assert list(table.select(run=2).values("accuracy")) == [0.3, 0.4]
    assert list(table.select(tags=["b", "nosuch"]).values("accuracy")) == [0.2]
    assert list(table.select(run=2, tags=["a"]).values("accuracy")) == [0.3]
    assert len(table.select(tags=["nosuch"])) == 0
    assert (len(table.select()), table.select().n_samples) == (4, 3)


def test_resources_are_metrics_and_a_grader_of_the_same_name_wins() -> None:
    one = observation(
        usage=Usage(prompt_tokens=3, completion_tokens=4, cost=0.5),
        scores={"accuracy": 1.0, "latency": 0.25},
        reward=0.75,
    )
    plain = table_of(one).select()
    assert [list(plain.values(name)) for name in ("latency", "response_time", "cost", "tokens", "reward")] == [
        [1.0],
        [1.0],
        [0.5],
        [7.0],
        [0.75],
    ]
    shadowed = table_of(one, metrics=("accuracy", "latency"))
    assert list(shadowed.select().values("latency")) == [0.25]
    assert list(shadowed.select().values("response_time")) == [1.0]
    assert not shadowed.is_resource("latency")
    hidden = table_of(observation(scores={"reward": 0.5}, reward=1.0), metrics=("reward",))
    assert list(hidden.select().values("reward")) == [0.5]
    assert list(hidden.rewards([0])) == [1.0]


def test_what_is_not_known_is_no_value() -> None:
    table = table_of(
        observation("1", None, error=ErrorCategory.TARGET),
        observation("2", usage=Usage(prompt_tokens=1)),
    ).select()
    assert [table.n_errored(name) for name in ("accuracy", "latency", "cost", "tokens")] == [1, 1, 2, 1]


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_refused_and_leaves_no_trace(score: float) -> None:
    table = table_of(observation())
    with pytest.raises(ValueError, match="not finite"):
        table.add(observation("2", score))
    assert list(table.select().values("accuracy")) == [1.0]


def test_a_metric_that_does_not_exist_is_no_empty_column() -> None:
    table = table_of(observation())
    assert not table.has("nosuch")
    with pytest.raises(KeyError):
        table.select().values("nosuch")


def test_an_observation_takes_few_bytes() -> None:
    table = ObservationTable(["a", "b"])
    one = observation(scores={"a": 1.0, "b": 0.5}, tags=("x",))
    table.add(one)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(10_000):
        table.add(one)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown / 10_000 < 110


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        pytest.param({"score": 0.5}, "passed", id="fault-121-at-the-threshold"),
        pytest.param({"score": 0.49}, "failed", id="fault-121-below-the-threshold"),
        pytest.param({"timed_out": True}, "passed", id="fault-65-time-out-and-score"),
        pytest.param(
            {"score": None, "timed_out": True, "error": ErrorCategory.TARGET}, "timed_out", id="fault-65-time-out-alone"
        ),
        pytest.param({"score": None}, "unscored", id="fault-65-nothing-went-wrong"),
        pytest.param({"score": 1.0, "error": ErrorCategory.GRADING}, "passed", id="fault-53-another-grader-failed"),
    ],
)
def test_each_observation_has_one_place_in_the_ledger(fields: dict[str, object], place: str) -> None:
    found = ledger(table_of(observation(**fields)).select(), "accuracy", planned=1, pass_threshold=0.5)  # type: ignore[arg-type]
    assert getattr(found, place) == found.accounted == 1


@pytest.mark.parametrize("category", [pytest.param(c, id=f"fault-65-{c}") for c in ErrorCategory])
def test_an_error_of_any_stage_stands_under_its_category(category: ErrorCategory) -> None:
    table = table_of(observation(score=None, error=category))
    assert ledger(table.select(), "accuracy", planned=1).errored == {category: 1}


def test_a_metric_has_the_error_of_its_own_grader() -> None:
    failed = observation(
        score=None,
        error=ErrorCategory.EXTRACTION,
        errors={"accuracy": ErrorCategory.GRADING, "b": ErrorCategory.EXTRACTION},
    )
    table = table_of(failed, metrics=("accuracy", "b")).select()
    assert ledger(table, "accuracy", planned=1).errored == {ErrorCategory.GRADING: 1}
    assert ledger(table, "b", planned=1).errored == {ErrorCategory.EXTRACTION: 1}


def test_more_than_was_planned_is_an_error() -> None:
    with pytest.raises(ValueError, match="more than the 1 planned"):
        ledger(table_of(observation("1"), observation("2")).select(), "accuracy", planned=1)


OBSERVATIONS = st.builds(
    observation,
    st.sampled_from("abcd"),
    st.none() | st.floats(0, 1),
    error=st.none() | st.sampled_from(ErrorCategory),
    timed_out=st.booleans(),
    reward=st.none() | st.floats(0, 1),
    errors=st.dictionaries(st.just("accuracy"), st.sampled_from(ErrorCategory)),
)


@given(
    st.lists(OBSERVATIONS, max_size=20),
    st.integers(0, 5),
    st.integers(0, 5),
    st.floats(0, 1),
    st.sampled_from(["accuracy", "reward"]),
)
def test_the_ledger_always_adds_up(
    observations: list[Observation], skipped: int, missing: int, threshold: float, metric: str
) -> None:
    planned = len(observations) + skipped + missing
    selection = table_of(*observations).select()
    found = ledger(selection, metric, planned=planned, pass_threshold=threshold, skipped=skipped)
    assert found.accounted == found.planned == planned
    assert (found.skipped, found.not_reached) == (skipped, missing)
    assert found.passed + found.failed == len(selection.values(metric))
