"""What a run came to, made of the tables of observations alone: the same table that gates look at."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from stateval.gates.intervals import estimate_score
from stateval.records.summary import ErrorSummary, MetricSummary, ModelSummary, PerRunSummary, Summary
from stateval.records.usage import TimingStats
from stateval.records.verdict import GateVerdict
from stateval.stats.comparison import Operator, holds
from stateval.stats.describe import maximum, mean, minimum, percentile, standard_deviation
from stateval.stats.ledger import ledger
from stateval.stats.points import sample_points
from stateval.stats.repeats import pass_at_k, pass_hat_k
from stateval.stats.sums import RunSums
from stateval.stats.table import REWARD, ObservationTable, Selection


def summarise(
    suite: str,
    tables: Mapping[str, ObservationTable],
    *,
    planned_per_run: int,
    num_runs: int,
    has_reward: bool,
    on_error: str,
    pass_threshold: float = 1.0,
    gates: Sequence[GateVerdict] = (),
    skipped: Mapping[str, int] | None = None,
    stopped_because: str | None = None,
    agents_left: int | None = None,
) -> Summary:
    """The whole run. It is finished where the ledgers say that every planned observation was reached, and only then.

    Args:
        tables: by the model's label, one for each model that was planned.
        planned_per_run: samples in the dataset.
        skipped: observations that were left out on purpose, by the model's label.
    """
    models = [
        summarise_model(
            label,
            table,
            planned_per_run=planned_per_run,
            num_runs=num_runs,
            has_reward=has_reward,
            on_error=on_error,
            pass_threshold=pass_threshold,
            skipped=(skipped or {}).get(label, 0),
        )
        for label, table in tables.items()
    ]
    return Summary(
        suite=suite,
        models=models,
        gates=list(gates),
        finished=is_finished(tables, planned_per_run=planned_per_run, num_runs=num_runs, skipped=skipped),
        stopped_because=stopped_because,
        agents_left=agents_left,
    )


def is_finished(
    tables: Mapping[str, ObservationTable],
    *,
    planned_per_run: int,
    num_runs: int,
    skipped: Mapping[str, int] | None = None,
) -> bool:
    """Whether every planned observation of every model was reached."""
    planned = planned_per_run * num_runs
    return all(len(table) + (skipped or {}).get(label, 0) == planned for label, table in tables.items())


def summarise_model(
    label: str,
    table: ObservationTable,
    *,
    planned_per_run: int,
    num_runs: int,
    has_reward: bool,
    on_error: str,
    pass_threshold: float = 1.0,
    skipped: int = 0,
) -> ModelSummary:
    """One model over all runs. Raises ValueError where the table holds more observations than were planned.

    Over several runs `reward` and `per_metric` are the means of the runs' means, and `reward_std` and
    `per_metric_std` the spread (n - 1) of these; percentiles of time are over all observations, never means of
    percentiles.
    """
    everything = table.select()
    metrics = [*table.metric_keys, *([REWARD] if has_reward and REWARD not in table.metric_keys else [])]
    runs = [_of_run(table, run, has_reward) for run in range(1, num_runs + 1)]
    sums = sum((table.sums(run) for run in table.runs), RunSums())
    rewards = [run.reward for run in runs if run.reward is not None]
    by_metric = {key: [run.per_metric[key] for run in runs if key in run.per_metric] for key in table.metric_keys}
    several = num_runs > 1
    return ModelSummary(
        model=label,
        n_total=planned_per_run,
        n_attempted=sums.observations - sums.errors,
        reward=mean(rewards),
        reward_std=standard_deviation(rewards),
        per_metric=_defined({key: mean(means) for key, means in by_metric.items()}),
        per_metric_std=_defined({k: standard_deviation(v) for k, v in by_metric.items()}) if several else None,
        usage=sums.usage,
        timing=_timing(everything, sums),
        cost_missing=sums.cost_missing,
        errors=_errors(everything),
        runs=runs if several else None,
        metrics={
            key: _of_metric(
                everything,
                key,
                exclude_errors=on_error == "exclude",
                num_runs=num_runs,
                pass_threshold=pass_threshold,
            )
            for key in metrics
        },
        ledgers={
            key: ledger(
                everything, key, planned=planned_per_run * num_runs, pass_threshold=pass_threshold, skipped=skipped
            )
            for key in metrics
        },
    )


def _of_run(table: ObservationTable, run: int, has_reward: bool) -> PerRunSummary:
    selection, sums = table.select(run=run), table.sums(run)
    values = {key: selection.values(key) for key in table.metric_keys}
    rewards = table.rewards(selection.rows) if has_reward else array("d")
    scored = {REWARD: len(rewards)} if has_reward else {}
    return PerRunSummary(
        run=run,
        reward=mean(rewards),
        per_metric=_defined({key: mean(of_key) for key, of_key in values.items()}),
        n_observed=len(selection),
        n_scored=scored | {key: len(of_key) for key, of_key in values.items()},
        usage=sums.usage,
        timing=_timing(selection, sums),
        n_errors=sums.errors,
        cost_missing=sums.cost_missing,
    )


def _of_metric(
    selection: Selection, metric: str, *, exclude_errors: bool, num_runs: int, pass_threshold: float
) -> MetricSummary:
    values = selection.values(metric)
    n_errors = len(selection) - len(values)
    n_counted = len(values) if exclude_errors else len(selection)
    worst = None if exclude_errors else 0.0
    scored = estimate_score(selection, metric, errored=None)
    counted = None
    if n_counted != len(values):
        counted = estimate_score(selection, metric, errored=worst)
    at_k, hat_k = _over_repeats(selection, metric, worst, num_runs, pass_threshold)
    return MetricSummary(
        n_scored=len(values),
        n_counted=n_counted,
        mean_scored=mean(values),
        mean_counted=math.fsum(values) / n_counted if n_counted else None,
        std_dev=standard_deviation(values),
        minimum=minimum(values),
        maximum=maximum(values),
        n_errors=n_errors,
        n_samples=selection.n_samples,
        standard_error=scored.standard_error if scored else None,
        interval=(scored.low, scored.high) if scored else None,
        interval_method=scored.method if scored else None,
        n_clusters=scored.n_clusters if scored else None,
        counted_standard_error=counted.standard_error if counted else None,
        counted_interval=(counted.low, counted.high) if counted else None,
        counted_interval_method=counted.method if counted else None,
        counted_n_clusters=counted.n_clusters if counted else None,
        pass_at_k=at_k,
        pass_hat_k=hat_k,
    )


def _over_repeats(
    selection: Selection, metric: str, worst: float | None, num_runs: int, pass_threshold: float
) -> tuple[list[float | None] | None, list[float | None] | None]:
    """pass@k and pass^k for k = 1 .. the number of runs; None where there is one run, or nothing to estimate from."""
    if num_runs == 1:
        return None, None

    def passes(value: float) -> float:
        return float(holds(value, Operator.GTE, pass_threshold))

    points = sample_points(selection, metric, errored=worst, value_of=passes)
    if not points.n:
        return None, None
    # Few pairs of trials and passes occur, however many samples there are.
    samples = Counter(
        (trials, round(value * trials)) for value, trials in zip(points.values, points.trials, strict=True)
    )
    ks = range(1, num_runs + 1)
    return [_mean_over(samples, pass_at_k, k) for k in ks], [_mean_over(samples, pass_hat_k, k) for k in ks]


def _mean_over(
    samples: Counter[tuple[int, int]], chance: Callable[[int, int, int], float | None], k: int
) -> float | None:
    chances = [(chance(trials, passed, k), count) for (trials, passed), count in samples.items()]
    known = [value * count for value, count in chances if value is not None]
    return math.fsum(known) / samples.total() if len(known) == len(chances) else None


def _timing(selection: Selection, sums: RunSums) -> TimingStats | None:
    seconds = selection.table.seconds(selection.rows)
    mean_total, p50, p95 = mean(seconds), percentile(seconds, 50), percentile(seconds, 95)
    mean_target = _mean_of(sums.target)
    if mean_total is None or mean_target is None or p50 is None or p95 is None:
        return None
    return TimingStats(
        mean_total=mean_total,
        mean_target=mean_target,
        mean_extraction=_mean_of(sums.extraction),
        p50_total=p50,
        p95_total=p95,
        per_grader_mean=_defined({key: _mean_of(pair) for key, pair in sums.graders.items()}) or None,
    )


def _errors(selection: Selection) -> ErrorSummary | None:
    categories = selection.table.error_categories(selection.rows)
    if not categories:
        return None
    return ErrorSummary(
        total_errors=categories.total(),
        by_category={str(category): count for category, count in categories.items()},
        by_exception_type=dict(selection.table.exception_types),
    )


def _mean_of(sum_and_count: tuple[float, int]) -> float | None:
    total, count = sum_and_count
    return total / count if count else None


def _defined(values: Mapping[str, float | None]) -> dict[str, float]:
    return {key: value for key, value in values.items() if value is not None}
