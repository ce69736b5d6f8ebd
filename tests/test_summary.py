"""Summaries of one and several runs."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stateval.gates import evaluate_gates, parse_gates
from stateval.records.result import ErrorCategory, Observation
from stateval.records.summary import MetricSummary, ModelSummary, Summary
from stateval.records.usage import Timing, Usage
from stateval.running.summary import is_finished, summarise, summarise_model
from stateval.stats.table import ObservationTable


def observation(sample: int = 1, **fields: Any) -> Observation:
    return Observation(
        **{"sample_id": str(sample), "run": 1, "scores": {}, "timing": Timing(total=2, target=1), **fields}
    )


def table_of(*observations: Observation, metrics: tuple[str, ...] = ("quality",)) -> ObservationTable:
    table = ObservationTable(metrics)
    for one in observations:
        table.add(one)
    return table


def summary_of(table: ObservationTable, **options: Any) -> ModelSummary:
    settings = {"planned_per_run": 10, "num_runs": 1, "has_reward": True, "on_error": "fail", **options}
    return summarise_model("m", table, **settings)


def scored(sample: int, score: float, **fields: Any) -> Observation:
    return observation(sample, scores={"quality": score}, reward=score, **fields)


def errored(sample: int, category: ErrorCategory = ErrorCategory.TARGET, **fields: Any) -> Observation:
    return observation(sample, error=category, exception_type=fields.pop("exception_type", "TargetError"), **fields)


def test_one_run() -> None:
    table = table_of(scored(1, 1.0), scored(2, 0.5), errored(3), errored(4, ErrorCategory.GRADING))
    summary = summary_of(table, pass_threshold=0.75)
    assert (summary.n_total, summary.n_attempted) == (10, 2)
    assert (summary.reward, summary.reward_std, summary.per_metric) == (0.75, None, {"quality": 0.75})
    assert summary.runs is summary.per_metric_std is None
    assert summary.errors is not None
    assert summary.errors.by_category == {"target": 1, "grading": 1}
    assert summary.errors.by_exception_type == {"TargetError": 2}
    assert set(summary.metrics) == set(summary.ledgers) == {"quality", "reward"}
    ledger = summary.ledgers["reward"]
    assert (ledger.planned, ledger.passed, ledger.failed, ledger.not_reached) == (10, 1, 1, 6)
    assert ledger.errored == {ErrorCategory.TARGET: 1, ErrorCategory.GRADING: 1}
    assert ModelSummary.from_json(summary.to_json()) == summary


@pytest.mark.parametrize(
    ("on_error", "n_counted", "mean_counted"),
    [pytest.param("fail", 4, 0.375, id="fault-52-fail"), pytest.param("exclude", 2, 0.75, id="fault-52-exclude")],
)
def test_both_means_stand_with_their_n(on_error: str, n_counted: int, mean_counted: float) -> None:
    table = table_of(scored(1, 1.0), scored(2, 0.5), errored(3), errored(4))
    metric = summary_of(table, on_error=on_error).metrics["quality"]
    assert (metric.n_scored, metric.mean_scored, metric.n_errors) == (2, 0.75, 2)
    assert (metric.n_counted, metric.mean_counted) == (n_counted, mean_counted)
    assert (metric.minimum, metric.maximum) == (0.5, 1.0)
    assert metric.std_dev == pytest.approx(0.3535533905932738)


@pytest.mark.parametrize("metric", [pytest.param(m, id=f"fault-53-{m}") for m in ("quality", "reward")])
@pytest.mark.parametrize("on_error", ["fail", "exclude"])
def test_report_and_gate_use_the_same_numbers(metric: str, on_error: str) -> None:
    table = table_of(observation(1, scores={"quality": 1.0}, error=ErrorCategory.REWARD), scored(2, 0.25), errored(3))
    gates = parse_gates({"metric_key": metric, "op": "gte", "value": 0.5})
    (verdict,) = evaluate_gates(gates, {"m": table}, on_error=on_error, num_runs=1, finished=True)
    reported = summary_of(table, on_error=on_error).metrics[metric]
    assert (verdict.measured, verdict.n) == (reported.mean_counted, reported.n_counted)


def test_several_runs_are_means_of_runs_with_their_spread() -> None:
    table = table_of(
        scored(1, 1.0),
        scored(2, 0.0),
        scored(1, 1.0, run=2),
        errored(2, run=2),
        errored(1, run=3),
        errored(2, run=3),
    )
    summary = summary_of(table, planned_per_run=2, num_runs=3)
    assert (summary.reward, summary.reward_std) == (0.75, pytest.approx(0.5**0.5 / 2))
    assert summary.per_metric == {"quality": 0.75}
    assert summary.per_metric_std == {"quality": pytest.approx(0.5**0.5 / 2)}
    assert summary.runs is not None
    assert [(run.run, run.reward, run.n_errors) for run in summary.runs] == [(1, 0.5, 0), (2, 1.0, 1), (3, None, 2)]
    assert (summary.n_total, summary.n_attempted) == (2, 3)


@pytest.mark.parametrize("runs", [pytest.param(1, id="fault-62-one-run"), pytest.param(3, id="fault-62-three-runs")])
def test_n_is_given_per_observation_and_per_sample(runs: int) -> None:
    table = table_of(*(scored(sample, 1.0, run=run) for run in range(1, runs + 1) for sample in range(4)))
    metric = summary_of(table, planned_per_run=4, num_runs=runs).metrics["quality"]
    assert (metric.n_scored, metric.n_samples) == (4 * runs, 4)


@pytest.mark.parametrize(
    ("seconds_by_run", "p50", "p95"),
    [
        pytest.param([[1, 2, 3], [100, 4]], 3, 80.8, id="fault-56-unequal-runs"),
        pytest.param([[1], [2]], 1.5, 1.95, id="fault-56-one-sample-a-run"),
    ],
)
def test_percentiles_over_runs_are_not_means_of_percentiles(
    seconds_by_run: list[list[float]], p50: float, p95: float
) -> None:
    table = table_of(
        *(
            scored(sample, 1.0, run=run, timing=Timing(total=seconds, target=1))
            for run, times in enumerate(seconds_by_run, 1)
            for sample, seconds in enumerate(times)
        )
    )
    timing = summary_of(table, num_runs=2).timing
    assert timing is not None
    assert (timing.p50_total, timing.p95_total) == (p50, pytest.approx(p95))


def test_seconds_by_stage_are_means_over_the_observations_that_have_them() -> None:
    graded = Timing(total=4, target=2, extraction=0.5, per_grader={"quality": 0.25})
    timing = summary_of(table_of(scored(1, 1.0, timing=graded), errored(2))).timing
    assert timing is not None
    assert (timing.mean_total, timing.mean_target, timing.mean_extraction) == (3, 1.5, 0.5)
    assert timing.per_grader_mean == {"quality": 0.25}


def test_usage_is_summed_and_missing_prices_are_counted() -> None:
    table = table_of(
        scored(1, 1.0, usage=Usage(prompt_tokens=5, completion_tokens=2, reasoning_tokens=1, cost=0.25)),
        scored(2, 1.0, usage=Usage(prompt_tokens=1)),
        scored(3, 1.0, usage=Usage()),
        scored(4, 1.0),
    )
    summary = summary_of(table)
    assert summary.usage == Usage(prompt_tokens=6, completion_tokens=2, reasoning_tokens=1, cost=0.25)
    assert summary.cost_missing == 1
    assert summary_of(table_of(scored(1, 1.0))).usage.cost is None


def test_nothing_observed_gives_no_numbers() -> None:
    summary = summary_of(table_of(), num_runs=2)
    assert summary.reward is summary.reward_std is summary.timing is summary.errors is None
    assert (summary.per_metric, summary.per_metric_std) == ({}, {})
    assert summary.metrics["quality"].mean_counted is None
    assert summary.ledgers["reward"].not_reached == 20
    assert b"NaN" not in summary.to_json()


def test_without_a_reward_there_is_a_ledger_per_metric() -> None:
    summary = summary_of(table_of(metrics=("a", "b")), has_reward=False)
    assert list(summary.ledgers) == list(summary.metrics) == ["a", "b"]
    assert summary.reward is None


def test_a_grader_named_reward_does_not_hide_the_composed_one() -> None:
    table = table_of(observation(1, scores={"reward": 0.25}, reward=1.0), metrics=("reward",))
    summary = summary_of(table)
    assert (summary.reward, summary.per_metric) == (1.0, {"reward": 0.25})
    assert summary.metrics["reward"].mean_scored == 0.25


@pytest.mark.parametrize(
    ("reached", "skipped", "finished"),
    [
        pytest.param(3, 0, False, id="fault-61-3-of-10"),
        pytest.param(10, 0, True, id="fault-61-all"),
        pytest.param(8, 2, True, id="fault-61-skipped"),
    ],
)
def test_a_run_is_finished_only_where_every_planned_sample_was_reached(
    reached: int, skipped: int, finished: bool
) -> None:
    tables = {"m": table_of(*(scored(n, 1.0) for n in range(reached)))}
    summary = summarise(
        "suite",
        tables,
        planned_per_run=10,
        num_runs=1,
        has_reward=True,
        on_error="fail",
        skipped={"m": skipped},
        stopped_because="limit",
        agents_left=2,
    )
    assert summary.finished is finished
    assert is_finished(tables, planned_per_run=10, num_runs=1, skipped={"m": skipped}) is finished
    assert (summary.stopped_because, summary.agents_left) == ("limit", 2)
    assert summary.models[0].ledgers["quality"].not_reached == 10 - reached - skipped
    assert Summary.from_json(summary.to_json()) == summary


@given(
    st.lists(
        st.builds(
            observation,
            st.integers(0, 5),
            run=st.integers(1, 3),
            scores=st.dictionaries(st.sampled_from(["a", "b"]), st.floats(0, 1)),
            reward=st.none() | st.floats(0, 1),
            error=st.none() | st.sampled_from(ErrorCategory),
            timed_out=st.booleans(),
        ),
        max_size=20,
    )
)
def test_numbers_always_fit_together(observations: list[Observation]) -> None:
    table = table_of(*observations, metrics=("a", "b"))
    summary = summary_of(table, num_runs=3)
    for key, metric in summary.metrics.items():
        ledger = summary.ledgers[key]
        assert ledger.accounted == ledger.planned == 30
        assert ledger.passed + ledger.failed == metric.n_scored
        assert metric.n_scored + metric.n_errors == metric.n_counted == len(observations)
    assert summary.n_attempted + (summary.errors.total_errors if summary.errors else 0) == len(observations)
    assert ModelSummary.from_json(summary.to_json()) == summary


def test_both_means_have_a_standard_error_and_an_interval() -> None:
    scores = [0.25, 0.5, 0.5, 0.75, 1.0, 0.0, 0.5, 0.75]
    metric = summary_of(table_of(*(scored(n, s) for n, s in enumerate(scores)), errored(8), errored(9))).metrics[
        "quality"
    ]
    for values, error, interval in (
        (scores, metric.standard_error, metric.interval),
        ([*scores, 0, 0], metric.counted_standard_error, metric.counted_interval),
    ):
        assert error == pytest.approx(stats.sem(values))
        assert interval == pytest.approx(stats.t.interval(0.95, len(values) - 1, numpy.mean(values), stats.sem(values)))
    assert (metric.interval_method, metric.n_clusters, metric.counted_n_clusters) == ("t", 8, 10)


@pytest.mark.parametrize(
    ("observations", "method"),
    [
        pytest.param([scored(1, 0.5)], None, id="fault-59-one-sample"),
        pytest.param([scored(1, 0.5, cluster="a"), scored(2, 0.75, cluster="a")], None, id="fault-59-one-cluster"),
        pytest.param([scored(1, 0.5), scored(2, 0.5)], "equal scores", id="fault-59-equal-scores"),
        pytest.param([scored(1, 1.0), scored(2, 1.0)], "wilson", id="fault-59-all-pass"),
        pytest.param([errored(1)], None, id="fault-59-no-score"),
    ],
)
def test_where_nothing_is_known_of_the_spread_no_interval_has_no_width(observations: Any, method: str | None) -> None:
    summary = summary_of(table_of(*observations))
    metric = summary.metrics["quality"]
    assert metric.interval_method == method
    assert (metric.interval is None) is (method is None)
    assert metric.interval is None or metric.interval[1] - metric.interval[0] > 0.5
    assert b"NaN" not in summary.to_json()


@pytest.mark.parametrize(
    ("runs", "alone"),
    [
        pytest.param([1.0, 1.0, 1.0], True, id="fault-62-alike"),
        pytest.param([1.0, 0.0, 1.0], False, id="fault-62-mixed"),
    ],
)
def test_intervals_are_over_samples_and_not_over_their_repeats(runs: list[float], alone: bool) -> None:
    table = table_of(*(scored(sample, score, run=run) for run, score in enumerate(runs, 1) for sample in range(4)))
    metric = summary_of(table, planned_per_run=4, num_runs=3).metrics["quality"]
    assert (metric.n_scored, metric.n_clusters) == (12, 4)
    low, _ = metric.interval or (1.0, 1.0)
    pooled = stats.binomtest(round(4 * sum(runs)), 12).proportion_ci(0.95, method="wilson")
    assert low < pooled.low if alone else low > 0


def test_fault_58_k_tries_are_estimated_over_samples_and_undefined_above_the_trials() -> None:
    rows = {1: [1, 1, 1], 2: [1, 0, 0], 3: [0, 0, 0], 4: [1, 0, None]}
    table = table_of(
        *(
            errored(sample, run=run) if score is None else scored(sample, float(score), run=run)
            for sample, scores in rows.items()
            for run, score in enumerate(scores, 1)
        )
    )
    metric = summary_of(table, planned_per_run=4, num_runs=3).metrics["quality"]
    assert metric.pass_at_k == pytest.approx([5 / 12, (1 + 2 / 3 + 0 + 2 / 3) / 4, 0.75])
    assert metric.pass_hat_k == pytest.approx([5 / 12, 0.25, 0.25])
    excluded = summary_of(table, planned_per_run=4, num_runs=3, on_error="exclude").metrics["quality"]
    assert excluded.pass_at_k is not None
    assert [value is None for value in excluded.pass_at_k] == [False, False, True]
    assert summary_of(table_of(scored(1, 1.0))).metrics["quality"].pass_at_k is None
    assert MetricSummary.from_json(excluded.to_json()) == excluded


def test_each_run_names_its_n() -> None:
    table = table_of(scored(1, 1.0), scored(2, 0.0), scored(1, 1.0, run=2), errored(2, run=2))
    runs = summary_of(table, planned_per_run=2, num_runs=3).runs
    assert runs is not None
    assert [(run.n_observed, run.n_scored) for run in runs] == [
        (2, {"reward": 2, "quality": 2}),
        (2, {"reward": 1, "quality": 1}),
        (0, {"reward": 0, "quality": 0}),
    ]


def test_summaries_of_releases_without_intervals_can_be_read() -> None:
    metric = MetricSummary.from_json(b'{"n_scored": 1, "n_counted": 2, "mean_scored": 0.5}')
    assert (metric.interval, metric.pass_at_k) == (None, None)
