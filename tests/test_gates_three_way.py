"""Gates that are decided by an interval, and what evidence gates ask for: pass, fail, or not enough to say."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from stateval.gates import parse_gates
from stateval.gates.evaluate import all_of, any_of
from stateval.records.summary import MetricSummary
from stateval.records.usage import Timing, Usage
from stateval.records.verdict import GateVerdict, Outcome
from stateval.running.summary import summarise_model
from stateval.stats.table import ObservationTable
from tests.support.evaltester import EvalTester
from tests.support.gates import FAIL, INCONCLUSIVE, PASS, certain, decide, passes, runs_of, scored, simple, table_of


def both(*conditions: dict[str, Any], operator: str = "and", **fields: Any) -> dict[str, Any]:
    return {"kind": "logical", "operator": operator, "conditions": list(conditions), **fields}


def weighted(**fields: Any) -> dict[str, Any]:
    return {"kind": "weighted_average", "weights": {"a": 3, "b": 1}, "op": "gte", "value": 0.5, **fields}


# what a gate may say


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (simple(confidence=95), "written as a share: 0.95, not 95"),
        (simple(confidence=0.5), "greater than 0.5"),
        (simple(confidence=1), "less than 1"),
        (simple(confidence=True), "not true or false"),
        (certain("avg_score", "eq"), "`eq` asks for one exact value"),
        (certain("min"), "`min` has no interval"),
        (certain("max", "lt"), "`max` has no interval"),
        (weighted(confidence=0.9, op="eq"), "`eq` asks for one exact value"),
        (weighted(confidence=0.9, aggregation="p95"), "a weighted sum of `p95` has no interval"),
        (both(simple("min"), confidence=0.9), "holds for all conditions, but `min` has no interval"),
        (both(both(simple("avg_score", "eq")), confidence=0.9), "holds for all conditions, but `eq`"),
        (simple(min_n=0), "greater than or equal to 1"),
        (simple(min_n=2.5), "valid integer"),
        (simple(max_error_rate=10), "less than or equal to 1"),
        (simple(max_error_rate=-0.1), "greater than or equal to 0"),
    ],
)
def test_what_a_gate_may_not_say_of_its_evidence(gate: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parse_gates(gate)


def test_validate_says_in_one_plain_sentence_where_it_stands(evaltester: EvalTester) -> None:
    evaltester.write_suite(gate={"aggregation": "min", "op": "gte", "value": 0.5, "confidence": 0.95})
    done = evaltester.command("validate", "suite.yaml")
    assert done.status == 2
    assert "suite.yaml:14: gate.confidence: `min` has no interval" in done.output


def test_a_logical_gate_hands_down_what_its_conditions_do_not_say() -> None:
    gate = both(simple(value=0.6), simple(value=0.6, min_n=2, confidence=0.6), confidence=0.95, min_n=20)
    verdict = decide(gate, passes(9, 10))
    assert [child.outcome for child in verdict.children] == [INCONCLUSIVE, PASS]
    assert [child.confidence for child in verdict.children] == [0.95, 0.6]
    assert verdict.children[0].reason == "only 10 samples; `min_n` is 20"


# the three-way verdict


@pytest.mark.parametrize(
    ("aggregation", "scale"), [("avg_score", 1), ("accuracy", 100), ("pass_rate", 1), ("pass_at_k", 1)]
)
@pytest.mark.parametrize(
    ("op", "value", "outcome"),
    [
        ("gte", 0.6, PASS),
        ("gt", 0.66, PASS),
        ("gte", 0.7, INCONCLUSIVE),
        ("gte", 0.9, FAIL),
        ("lt", 0.9, PASS),
        ("lte", 0.85, INCONCLUSIVE),
        ("lte", 0.6, FAIL),
    ],
)
def test_40_of_50_by_wilson(aggregation: str, scale: float, op: str, value: float, outcome: Outcome) -> None:
    verdict = decide(certain(aggregation, op, value * scale), passes(40, 50))
    published = stats.binomtest(40, 50).proportion_ci(0.95, method="wilson")
    assert (verdict.outcome, verdict.method) == (outcome, "wilson")
    assert verdict.interval == (pytest.approx(scale * published.low), pytest.approx(scale * published.high))
    assert (verdict.measured, verdict.n, verdict.n_samples, verdict.n_clusters) == (0.8 * scale, 50, 50, 50)


def test_the_verdict_says_how_many_more_samples_would_decide() -> None:
    verdict = decide(certain("accuracy", value=70), passes(40, 50))
    assert verdict.reason == "about 31 more samples would decide, if the rate stays at 80 %"
    assert verdict.samples_needed == 31
    never = decide(certain(value=0.8), passes(40, 50))
    assert (never.reason, never.samples_needed) == ("no number of samples would decide, if the mean stays at 0.8", None)


@pytest.mark.parametrize("passed", [2, 8, 13, 17, 20])
@pytest.mark.parametrize("value", [0.25, 0.5, 0.76])
def test_so_many_more_samples_of_the_same_rate_do_decide(passed: int, value: float) -> None:
    verdict = decide(certain("pass_rate", value=value), passes(passed, 20))
    times = 1 + -(-(verdict.samples_needed or 0) // 20)
    assert (verdict.outcome is INCONCLUSIVE) is (times > 1)
    assert decide(certain("pass_rate", value=value), passes(passed * times, 20 * times)).outcome is not INCONCLUSIVE
    if times > 2:
        fewer = times - 2
        assert decide(certain("pass_rate", value=value), passes(passed * fewer, 20 * fewer)).outcome is INCONCLUSIVE


def test_a_mean_of_other_scores_is_decided_by_students_t() -> None:
    scores = [0.2, 0.5, 0.9, 0.7, 0.6, 0.8]
    verdict = decide(certain(confidence=0.9), scored(*scores))
    wanted = stats.t.interval(0.9, 5, loc=numpy.mean(scores), scale=stats.sem(scores))
    assert (verdict.interval, verdict.method) == (pytest.approx(wanted), "t")


@pytest.mark.parametrize(
    ("scores", "method"),
    [
        pytest.param([0.8] * 3, "equal scores", id="fault-59-all-scores-equal"),
        pytest.param([1.0] * 3, "wilson", id="fault-59-all-pass"),
        pytest.param([0.8], None, id="fault-59-one-sample"),
    ],
)
def test_few_scores_that_are_all_alike_prove_little(scores: list[float], method: str | None) -> None:
    verdict = decide(certain(value=0.75), scored(*scores))
    assert (verdict.outcome, verdict.method) == (INCONCLUSIVE, method)
    assert decide(certain(value=0.7), scored(*[0.8] * 40)).outcome is PASS
    assert decide(certain(value=0.9), scored(*[0.8] * 40)).outcome is FAIL


def clustered(*scores: float, cluster_of: Any) -> ObservationTable:
    return table_of(*({"scores": {"quality": s}, "cluster": cluster_of(i)} for i, s in enumerate(scores)))


@pytest.mark.parametrize("aggregation", ["avg_score", "accuracy", "median"])
def test_fault_59_one_cluster_is_no_evidence(aggregation: str) -> None:
    table = clustered(*[1.0, 0.9] * 50, cluster_of=lambda _: "all")
    verdict = decide(certain(aggregation, value=0.1), table)
    assert (verdict.outcome, verdict.interval) == (INCONCLUSIVE, None)
    assert verdict.reason is not None
    assert "too few of the samples are independent" in verdict.reason


def test_samples_of_one_cluster_do_not_count_as_independent() -> None:
    scores = [1.0] * 6 + [0.0] * 2 + [1.0] * 12
    alone = decide(certain("accuracy", value=65), scored(*scores))
    grouped = decide(certain("accuracy", value=65), clustered(*scores, cluster_of=lambda i: str(i // 2)))
    assert (alone.outcome, grouped.outcome, grouped.n_clusters) == (PASS, INCONCLUSIVE, 10)


@pytest.mark.parametrize("aggregation", ["avg_score", "accuracy"])
def test_fault_62_repeats_are_not_pooled_as_if_independent(aggregation: str) -> None:
    """12 of 12 passes are 4 of 4 tasks."""
    value = 60 if aggregation == "accuracy" else 0.6
    verdict = decide(certain(aggregation, value=value), runs_of(*[[1, 1, 1]] * 4), num_runs=3)
    assert (verdict.outcome, verdict.n, verdict.n_samples, verdict.n_clusters) == (INCONCLUSIVE, 12, 4, 4)
    assert decide(certain(aggregation, value=value), scored(*[1] * 12)).outcome is PASS


@pytest.mark.parametrize(
    ("aggregation", "n", "ends"),
    [
        pytest.param("median", 20, (5, 14), id="fault-56-median-of-20"),
        pytest.param("p50", 20, (5, 14), id="fault-56-p50-of-20"),
        pytest.param("p95", 100, (89, 99), id="fault-56-p95-of-100"),
    ],
)
def test_percentiles_lie_between_order_statistics(aggregation: str, n: int, ends: tuple[int, int]) -> None:
    scores = [i / n for i in range(n)]
    random.Random(1).shuffle(scores)
    verdict = decide(certain(aggregation), scored(*scores))
    assert (verdict.interval, verdict.method) == ((ends[0] / n, ends[1] / n), "order statistics")


@pytest.mark.parametrize(("aggregation", "least"), [("median", 6), ("p95", 72)])
def test_a_percentile_of_too_few_values_is_never_decided(aggregation: str, least: int) -> None:
    verdict = decide(certain(aggregation, value=0.1), scored(*[1.0] * (least - 1)))
    assert (verdict.outcome, verdict.interval) == (INCONCLUSIVE, None)
    few = f"{least - 1} samples are too few for an interval of `{aggregation}`"
    assert verdict.reason == f"{few}, which takes {least} at 0.95"
    assert decide(certain(aggregation, value=0.1), scored(*[1.0] * least)).outcome is PASS


def test_percentiles_over_repeats_are_of_observations_with_samples_as_clusters() -> None:
    verdict = decide(certain("median", value=0.5), runs_of(*[[0.2, 0.8, 0.9]] * 10), num_runs=3)
    assert (verdict.measured, verdict.n, verdict.n_samples, verdict.n_clusters) == (0.8, 30, 10, 10)


@pytest.mark.parametrize(
    ("aggregation", "measured"),
    [pytest.param("pass_at_k", 0.9, id="fault-58-at"), pytest.param("pass_hat_k", 0.6, id="fault-58-hat")],
)
def test_k_tries_have_an_interval_over_samples(aggregation: str, measured: float) -> None:
    table = runs_of(*[[1, 1]] * 12, *[[1, 0]] * 6, *[[0, 0]] * 2)
    verdict = decide(certain(aggregation), table, num_runs=2)
    wanted = stats.binomtest(round(20 * measured), 20).proportion_ci(0.95, method="wilson")
    assert (verdict.measured, verdict.n_samples) == (measured, 20)
    assert verdict.interval == (pytest.approx(wanted.low), pytest.approx(wanted.high))


def test_a_weighted_average_is_formed_within_each_sample() -> None:
    """What one metric loses and the other wins in the same sample cancels out; apart, their spreads would add up."""
    pairs = [(i / 20, 1 - i / 20) for i in range(21)]
    table = table_of(*({"scores": {"a": a, "b": b}} for a, b in pairs), metrics=("a", "b"))
    verdict = decide(weighted(confidence=0.95, value=0.35), table)
    within = [0.75 * a + 0.25 * b for a, b in pairs]
    wanted = stats.t.interval(0.95, 20, loc=numpy.mean(within), scale=stats.sem(within))
    assert (verdict.interval, verdict.outcome) == (pytest.approx(wanted), PASS)
    assert [child.operator for child in verdict.children] == [None, None]


@pytest.mark.parametrize(("on_error", "n", "measured"), [("fail", 20, 0.9625), ("exclude", 19, 1.0)])
def test_a_sample_that_lacks_a_weighted_metric_counts_as_on_error_says(on_error: str, n: int, measured: float) -> None:
    rows = [{"scores": {"a": 1.0, "b": 1.0}}] * 19 + [{"scores": {"b": 1.0}}]
    verdict = decide(weighted(confidence=0.9), table_of(*rows, metrics=("a", "b")), on_error=on_error)
    assert (verdict.outcome, verdict.n_clusters, verdict.measured) == (PASS, n, pytest.approx(measured))


@pytest.mark.parametrize(("value", "outcome"), [(2.5, PASS), (2.0, INCONCLUSIVE), (1.5, FAIL)])
def test_resources_have_intervals_too(value: float, outcome: Outcome) -> None:
    rows = [{"scores": {}, "timing": Timing(total=9, target=1.8 + i % 5 / 10)} for i in range(30)]
    verdict = decide(certain(metric_key="latency", op="lt", value=value), table_of(*rows))
    assert (verdict.outcome, verdict.method) == (outcome, "t")
    alike = [{"scores": {}, "usage": Usage(cost=0.5)}] * 3
    assert decide(certain(metric_key="cost", op="lt", value=1), table_of(*alike)).outcome is PASS


def test_fault_53_gate_and_summary_have_one_interval() -> None:
    table = runs_of(*[[1, 0.5]] * 6, *[[0.2, None]] * 2)
    summary = summarise_model("m", table, planned_per_run=8, num_runs=2, has_reward=False, on_error="fail")
    metric: MetricSummary = summary.metrics["quality"]
    verdict = decide(certain(max_error_rate=1), table, num_runs=2)
    assert (verdict.interval, verdict.method) == (metric.counted_interval, metric.counted_interval_method)
    excluded = decide(certain(max_error_rate=1), table, num_runs=2, on_error="exclude")
    assert (excluded.interval, excluded.n_clusters) == (metric.interval, metric.n_clusters)


# properties

SCORE = st.sampled_from([0.0, 0.25, 0.8, 1.0])
SCORES = st.lists(st.none() | SCORE, min_size=1, max_size=40)
LIMITS = {"confidence": st.sampled_from([0.6, 0.8, 0.95]), "max_error_rate": st.sampled_from([None, 0, 0.5, 1])}
CONDITIONS = st.fixed_dictionaries(
    {
        "aggregation": st.sampled_from(["avg_score", "accuracy", "pass_rate", "median", "p95", "pass_at_k"]),
        "op": st.sampled_from(["gt", "gte", "lt", "lte"]),
        "value": st.sampled_from([0.0, 0.3, 0.7, 1.0, 60.0]),
        "min_n": st.none() | st.integers(1, 10),
        **LIMITS,
    }
)


@given(gate=CONDITIONS, scores=SCORES, on_error=st.sampled_from(["fail", "exclude"]), finished=st.booleans())
def test_nothing_passes_for_want_of_data(gate: Any, scores: list[float | None], on_error: str, finished: bool) -> None:
    verdict = decide(gate, scored(*scores), on_error=on_error, finished=finished)
    n_scored = len(scores) - scores.count(None)
    if verdict.outcome is PASS:
        assert finished
        assert n_scored >= (1 if on_error == "fail" else gate["min_n"] or 1)
        most = 0.1 if gate["max_error_rate"] is None else gate["max_error_rate"]
        assert scores.count(None) / len(scores) <= most + 1e-9
        assert verdict.interval is not None
        assert verdict.interval[0] <= verdict.interval[1]
    assert GateVerdict.from_json(verdict.to_json()) == verdict


@given(gate=CONDITIONS, scores=st.lists(SCORE, min_size=1, max_size=40), data=st.data())
def test_a_better_score_never_turns_pass_into_fail(gate: Any, scores: list[float], data: Any) -> None:
    place = data.draw(st.integers(0, len(scores) - 1))
    better = 1.0 if gate["op"] in ("gt", "gte") else 0.0
    before = decide(gate, scored(*scores)).outcome
    after = decide(gate, scored(*scores[:place], better, *scores[place + 1 :])).outcome
    assert (before, after) != (PASS, FAIL)
    if gate["aggregation"] in ("accuracy", "pass_rate"):  # a rate's interval moves as a whole
        order = [FAIL, INCONCLUSIVE, PASS]
        assert order.index(after) >= order.index(before)


@given(conditions=st.lists(CONDITIONS, min_size=1, max_size=4), scores=SCORES, operator=st.sampled_from(["and", "or"]))
def test_logical_gates_are_kleenes(conditions: list[Any], scores: list[float | None], operator: str) -> None:
    verdict = decide(both(*conditions, operator=operator), scored(*scores))
    alone = [decide(condition, scored(*scores)).outcome for condition in conditions]
    assert [child.outcome for child in verdict.children] == alone
    assert verdict.outcome is (all_of if operator == "and" else any_of)(alone)


# the real command

AGENT = """
class Agent:
    def send(self, message):
        if message.startswith("raise"):
            raise RuntimeError("broken")
        return message if message.startswith("yes") else f"Error: {message} failed"

def make(sample):
    return Agent()
"""


@pytest.mark.parametrize(
    ("good", "bad", "broken", "status", "words"),
    [
        (30, 0, 0, 0, "95 % interval [0.8865, 1] (wilson); n = 30"),
        (12, 8, 0, 3, "more samples would decide, if the mean stays at 0.6"),
        pytest.param(5, 25, 0, 1, "FAIL", id="fault-64-answers-that-begin-with-error-are-answers"),
        pytest.param(25, 0, 5, 3, "16.7 % of the observations errored; at most 10 % may", id="fault-52-errors"),
    ],
)
def test_the_exit_status_is_that_of_the_verdict(
    evaltester: EvalTester, good: int, bad: int, broken: int, status: int, words: str
) -> None:
    inputs = [f"yes {i}" for i in range(good)] + ["no"] * bad + ["raise"] * broken
    rows = [{"input": text, "ground_truth": "yes"} for text in inputs]
    evaltester.write_suite(rows, agent=AGENT, gate={"op": "gte", "value": 0.7, "confidence": 0.95, "min_n": 10})
    done = evaltester.run()
    assert (done.status, words in done.stdout) == (status, True), done.output
    (verdict,) = evaltester.summary().gates
    assert verdict.confidence == 0.95
    assert verdict.n_errored == broken
