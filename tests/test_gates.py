"""Gates: what they may say, what they decide, and that they never pass for want of data."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from stateval.errors import UsageError
from stateval.gates import (
    GateField,
    LogicalGate,
    NamedGate,
    SimpleGate,
    WeightedAverageGate,
    check_gates,
    evaluate_gates,
    gate_warnings,
    metric_names,
    overall,
    parse_gates,
)
from stateval.gates.evaluate import all_of, any_of
from stateval.records.result import ErrorCategory, Observation
from stateval.records.usage import Timing, Usage
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.ledger import ledger
from stateval.stats.table import ObservationTable
from tests.support.gates import FAIL, INCONCLUSIVE, PASS, decide, runs_of, scored, simple, table_of

# what a gate may say


def test_a_gate_without_kind_is_simple_and_zero_is_a_number() -> None:
    (gate,) = parse_gates({"metric_key": "quality", "op": "gte", "value": 0, "pass_threshold": 0})
    assert gate == NamedGate(gate=SimpleGate(metric_key="quality", op="gte", value=0, pass_threshold=0))


def test_old_spellings_are_read() -> None:
    (gate,) = parse_gates({"metric": "accuracy", "op": "gte", "value": 60, "pass_op": "gt", "pass_value": 0.5})
    assert gate.gate == SimpleGate(aggregation="accuracy", op="gte", value=60, pass_op="gt", pass_threshold=0.5)


def test_an_old_pass_value_alone_takes_the_operator_of_the_gate() -> None:
    (gate,) = parse_gates({"metric": "accuracy", "op": "gt", "value": 60, "pass_value": 0.5})
    assert gate.gate == SimpleGate(aggregation="accuracy", op="gt", value=60, pass_op="gt", pass_threshold=0.5)


def test_an_old_and_a_new_spelling_together_are_refused() -> None:
    with pytest.raises(ValidationError, match="old spelling of `aggregation`"):
        parse_gates({"metric": "accuracy", "aggregation": "min", "op": "gte", "value": 1})


def test_a_list_of_named_gates() -> None:
    gates = parse_gates(
        [
            {"name": "safety", "op": "eq", "value": 1, "where": {"tags": ["safety"]}},
            {"name": "speed", "metric_key": "latency", "op": "lt", "value": 3, "on_fail": "warn"},
        ]
    )
    assert [(gate.name, gate.on_fail) for gate in gates] == [("safety", "fail"), ("speed", "warn")]
    assert gates[0].where is not None
    assert gates[0].where.tags == ["safety"]
    assert parse_gates(None) == ()


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ({"op": "gte"}, "Field required"),
        ({"op": "near", "value": 1}, "'gt', 'gte', 'lt', 'lte' or 'eq'"),
        ({"op": "gte", "value": math.nan}, "finite"),
        ({"op": "gte", "value": True}, "not true or false"),
        ({"op": "gte", "value": 1, "treshold": 2}, "Extra inputs"),
        ({"kind": "fancy"}, "simple, logical, weighted_average or baseline"),
        ([], "at least 1 item"),
        ({"kind": "logical", "operator": "and", "conditions": []}, "at least 1 item"),
        ({"kind": "weighted_average", "weights": {}, "op": "gte", "value": 1}, "at least 1 item"),
        ({"kind": "weighted_average", "weights": {"a": -1}, "op": "gte", "value": 1}, "greater than or equal to 0"),
        ({"kind": "weighted_average", "weights": {"a": 0, "b": 0}, "op": "gte", "value": 1}, "at least one"),
        ({"op": "gte", "value": 1, "where": {"tags": []}}, "at least 1 item"),
    ],
)
def test_what_a_gate_may_not_say(gate: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parse_gates(gate)


def test_the_field_of_a_suite_file_is_read_alike_and_has_a_json_schema() -> None:
    class Suite(BaseModel):
        gate: GateField

    weighted = {"kind": "weighted_average", "weights": {"a": 1}, "op": "gte", "value": 1}
    nested = {"kind": "logical", "operator": "or", "conditions": [weighted, simple()], "name": "x", "on_fail": "warn"}
    for gate in ({"metric": "min", "op": "gte", "value": 1}, [nested, simple(where={"tags": ["t"]})]):
        assert parse_gates(Suite(gate=gate).gate) == parse_gates(gate)
    definitions = Suite.model_json_schema()["$defs"]
    assert {"name", "on_fail", "where", "pass_op"} <= set(definitions["SimpleEntry"]["properties"])
    assert definitions["SimpleGate"]["additionalProperties"] is False


def test_metric_names_of_all_kinds() -> None:
    weighted = {"kind": "weighted_average", "weights": {"b": 1, "a": 0}, "op": "gt", "value": 0}
    gate = {"kind": "logical", "operator": "or", "conditions": [simple(metric_key="a"), weighted, simple()]}
    assert metric_names(parse_gates(gate)[0]) == ("a", "b", None)


@pytest.mark.parametrize(
    ("gate", "keys", "has_reward", "problem"),
    [
        (simple(metric_key="qualty"), ["quality"], True, "did you mean `quality`"),
        (simple(), ["a", "b"], True, "several graders: a, b"),
        (simple(metric_key="reward"), ["a", "b"], False, "add a `reward`"),
        ([simple(metric_key="a", name="x"), simple(metric_key="a", name="x")], ["a"], True, "named `x`"),
        (simple(), ["a"], True, None),
        (simple(metric_key="response_time"), ["a", "b"], False, None),
    ],
)
def test_metrics_are_checked_before_the_run(gate: Any, keys: list[str], has_reward: bool, problem: str | None) -> None:
    problems = check_gates(parse_gates(gate), keys, has_reward=has_reward)
    assert problems == [] if problem is None else problem in problems[0]


def test_an_unknown_metric_is_an_error_at_the_end_too() -> None:
    with pytest.raises(UsageError, match="`nosuch`, which does not exist"):
        decide(simple(metric_key="nosuch"), scored(1))
    with pytest.raises(UsageError, match="several graders"):
        decide(simple(), table_of(metrics=("a", "b")))


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        pytest.param(simple("accuracy", "eq", 66.7), "2 of 3 is not 66.7", id="fault-55-percentage"),
        pytest.param(simple("pass_rate", "eq", 0.667), "2 of 3 is not 66.7", id="fault-55-rate"),
        (simple("accuracy", "gte", 0.8), "percentage"),
        (simple("avg_score", "gte", 80), "can never pass: `avg_score` lies between 0 and 1"),
        (simple("avg_score", "gte", 0), "`avg_score gte 0` can never fail"),
        (simple("min", "gt", 1), "can never pass"),
        (simple("max", "lte", 1), "can never fail"),
        (simple("median", "lt", 0), "can never pass"),
        (simple("median", "lt", 1.5), "can never fail"),
        (simple("avg_score", "eq", 2), "can never pass"),
        (simple("accuracy", "gte", 120), "between 0 and 100"),
        (simple("accuracy", "gte", 50, pass_threshold=0), "no observation can ever fail"),
        (simple("pass_rate", "gte", 0.5, pass_op="lt", pass_threshold=0), "no observation can ever pass"),
        (simple(metric_key="cost", op="lt", value=0), "can never pass: `avg_score` is never below 0"),
        (simple(metric_key="cost", op="gte", value=0), "can never fail"),
        (simple("pass_rate", metric_key="tokens", pass_op="lte", pass_threshold=500), None),
        (simple("avg_score", "lte", 0), None),
        (simple("avg_score", "gt", 0), None),
        (simple("avg_score", "eq", 1), None),
        (simple(metric_key="latency", value=0.1), "grader of that name"),
        (simple(metric_key="tokens", op="lt", value=500), None),
        (simple("accuracy", "gte", 80), None),
        (simple("avg_score", "eq", 0.5), None),
    ],
)
def test_warnings_before_the_run(gate: dict[str, Any], words: str | None) -> None:
    found = gate_warnings(parse_gates({"kind": "logical", "operator": "and", "conditions": [gate]})[0], ["latency"])
    assert found == [] if words is None else words in found[0]


# what it decides


@pytest.mark.parametrize(
    ("gate", "measured", "outcome"),
    [
        (simple("avg_score", value=0.55), 0.55, PASS),
        (simple("accuracy", value=25), 25, PASS),
        (simple("pass_rate", value=0.25), 0.25, PASS),
        (simple("accuracy", value=75, pass_threshold=0.5), 75, PASS),
        (simple("min", value=0.1), 0.1, PASS),
        (simple("max", "lt", value=1), 1, FAIL),
        (simple("median", "eq", value=0.55), 0.55, PASS),
        (simple("p50", "eq", value=0.55), 0.55, PASS),
        (simple("p95", "gt", value=0.94), 0.94, FAIL),
        (simple("p99", "lte", value=0.988), 0.988, PASS),
        (simple("avg_score", metric_key="latency", op="lt", value=2), 1, PASS),
    ],
)
def test_aggregations(gate: dict[str, Any], measured: float, outcome: Outcome) -> None:
    verdict = decide(gate, scored(0.1, 0.5, 0.6, 1.0))
    assert (verdict.measured, verdict.outcome) == (pytest.approx(measured), outcome)


def test_the_verdict_says_why() -> None:
    verdict = decide(simple(value=0.8, metric_key="quality", name="good"), scored(1, None, 1))
    assert verdict == GateVerdict(
        condition="avg_score(quality) >= 0.8",
        outcome=FAIL,
        name="good",
        model="m0",
        metric="quality",
        aggregation="avg_score",
        measured=2 / 3,
        operator="gte",
        threshold=0.8,
        n=3,
        n_samples=3,
        n_errored=1,
        counted="1 errored counted as 0",
        on_fail="fail",
    )


@pytest.mark.parametrize(
    ("scores", "gate", "measured", "outcome"),
    [
        pytest.param([None] * 9 + [1], simple(value=0.9), 0.1, FAIL, id="fault-50-one-survivor"),
        pytest.param([None] * 9 + [1], simple("accuracy", value=90), 10, FAIL, id="fault-50-one-survivor-accuracy"),
        pytest.param([1] * 5 + [None] * 5, simple("accuracy", value=51), 50, FAIL, id="fault-52-half-errored"),
        pytest.param([0] * 5 + [None] * 5, simple(op="lte", value=0.4), 0.5, FAIL, id="fault-52-small-is-good"),
        pytest.param([1, None], simple("pass_rate", "lt", 1, pass_threshold=0), 1, FAIL, id="fault-52-rate-below"),
        pytest.param([1, None], simple("pass_rate", "gt", 0.5, pass_threshold=0), 0.5, FAIL, id="fault-44-threshold-0"),
        pytest.param([0, 0], simple("accuracy", value=100, pass_threshold=0), 100, PASS, id="fault-44-all-pass-at-0"),
        pytest.param([0, 0], simple("avg_score", "gt", 0.0), 0, FAIL, id="fault-44-value-0"),
        pytest.param([0, 0], simple("avg_score", "lte", "0"), 0, PASS, id="fault-44-value-0-as-text"),
        pytest.param([1, 1, 0], simple("accuracy", "eq", 66.7), 200 / 3, FAIL, id="fault-55-two-of-three"),
        pytest.param([0.1, 0.5], simple("avg_score", "gte", 0.3), 0.3, PASS, id="fault-55-mean-of-0.1-and-0.5"),
        pytest.param([0.1 + 0.2], simple("avg_score", "eq", 0.3), 0.3, PASS, id="fault-55-tenths"),
    ],
)
def test_counting_under_on_error_fail(
    scores: list[float | None], gate: dict[str, Any], measured: float, outcome: Outcome
) -> None:
    verdict = decide(gate, scored(*scores))
    assert (verdict.measured, verdict.outcome) == (pytest.approx(measured), outcome)
    assert (verdict.n, verdict.n_errored) == (len(scores), scores.count(None))


@pytest.mark.parametrize(
    ("gate", "counted"),
    [
        (simple(), "2 errored counted as 0"),
        (simple(op="lt"), "2 errored counted as 1"),
        (simple("accuracy"), "2 errored counted as not passed"),
        (simple("accuracy", "lte"), "2 errored counted as passed"),
    ],
)
def test_the_gate_names_how_errors_were_counted(gate: dict[str, Any], counted: str) -> None:
    assert decide(gate, scored(1, None, None)).counted == counted


def test_excluded_errors_leave_the_denominator_and_are_named() -> None:
    verdict = decide(simple("accuracy", value=100), scored(1, None, 1), on_error="exclude")
    assert (verdict.outcome, verdict.n, verdict.n_errored) == (PASS, 2, 1)
    assert verdict.counted == "1 errored left out"


@pytest.mark.parametrize("on_error", ["fail", "exclude", "stop"])
@pytest.mark.parametrize("op", ["gte", "lte"])
def test_without_a_scored_sample_nothing_passes(on_error: str, op: str) -> None:
    value = 0 if op == "gte" else 1
    verdict = decide(simple(op=op, value=value), scored(None, None), on_error=on_error)
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "0 of 2 observations have a value of quality")
    assert decide(simple(value=0), scored(), on_error=on_error).outcome is INCONCLUSIVE
    assert decide(simple(value=0), on_error=on_error).reason == "no model was run"


@pytest.mark.parametrize(
    "scores", [pytest.param([1, 1, 1], id="fault-61-passing"), pytest.param([0], id="fault-61-failing")]
)
def test_an_unfinished_run_is_not_decided(scores: list[float]) -> None:
    verdict = decide(simple(), scored(*scores), finished=False)
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "the run did not finish")
    assert verdict.measured is not None


@pytest.mark.parametrize("on_error", [pytest.param(o, id=f"fault-53-{o}") for o in ("fail", "exclude")])
def test_gate_and_ledger_have_the_same_denominator(on_error: str) -> None:
    table = table_of({"scores": {"quality": 1.0}, "error": ErrorCategory.GRADING}, {"scores": {"quality": 0.0}})
    verdict = decide(simple("accuracy"), table, on_error=on_error)
    counted = ledger(table.select(), "quality", planned=2)
    assert (verdict.measured, verdict.n, verdict.n_errored) == (50, 2, 0)
    assert (counted.passed, counted.failed) == (1, 1)


@pytest.mark.parametrize("score", [pytest.param(s, id=f"fault-121-{s}") for s in (0.5, 0.6, 0.69, 0.7)])
@pytest.mark.parametrize("threshold", [0.5, 0.69, 0.7])
def test_gate_and_ledger_have_one_threshold(score: float, threshold: float) -> None:
    table = scored(score)
    verdict = decide(simple("pass_rate"), table, pass_threshold=threshold)
    assert verdict.measured == ledger(table.select(), "quality", planned=1, pass_threshold=threshold).passed


@pytest.mark.parametrize(
    ("row", "n_errored"),
    [
        pytest.param({"sample_id": "Error: no", "scores": {"quality": 1.0}}, 0, id="fault-64-an-answer"),
        pytest.param({"scores": {}, "errors": {"quality": ErrorCategory.GRADING}}, 1, id="fault-64-an-error"),
        pytest.param({"scores": {}}, 1, id="fault-64-no-grade"),
    ],
)
def test_errors_are_counted_by_what_happened(row: dict[str, Any], n_errored: int) -> None:
    assert decide(simple(), table_of(row, {"scores": {"quality": 1.0}})).n_errored == n_errored


RESOURCES = [
    {"scores": {"quality": 1.0}, "usage": Usage(prompt_tokens=10, cost=0.5)},
    {"scores": {}, "error": ErrorCategory.TARGET},
]


@pytest.mark.parametrize("metric", ["cost", "tokens", "latency", "response_time"])
def test_an_unknown_resource_makes_the_gate_inconclusive(metric: str) -> None:
    verdict = decide(simple(metric_key=metric, op="lt", value=1000), table_of(*RESOURCES))
    assert verdict.outcome is INCONCLUSIVE
    assert verdict.reason is not None
    assert "not known for 1 of 2" in verdict.reason
    assert (
        decide(simple(metric_key=metric, op="lt", value=1000), table_of(*RESOURCES), on_error="exclude").outcome is PASS
    )


@pytest.mark.parametrize("on_error", ["fail", "exclude"])
def test_an_unknown_price_is_not_an_error_that_can_be_excluded(on_error: str) -> None:
    table = table_of({"scores": {}, "usage": Usage(prompt_tokens=1)}, {"scores": {}, "usage": Usage(cost=0)})
    verdict = decide(simple(metric_key="cost", op="lt"), table, on_error=on_error)
    assert (verdict.outcome, verdict.n_errored, verdict.counted) == (INCONCLUSIVE, 0, None)
    failed = {"scores": {}, "error": ErrorCategory.TARGET}
    verdict = decide(simple(metric_key="cost", op="lt"), table_of(failed, failed), on_error=on_error)
    assert (verdict.outcome, verdict.n_errored) == (INCONCLUSIVE, 2)


def test_where_restricts_the_samples_and_errors_outside_do_not_count() -> None:
    table = table_of(
        {"scores": {"quality": 1.0}, "tags": ("safety",)},
        {"scores": {"quality": 0.0}, "tags": ("other",)},
        {"scores": {}, "error": ErrorCategory.TARGET},
    )
    verdict = decide(simple(where={"tags": ["safety", "health"]}), table)
    assert (verdict.outcome, verdict.n, verdict.n_errored) == (PASS, 1, 0)
    assert verdict.condition == "avg_score(quality) >= 0.5 where tags: safety or health"


@pytest.mark.parametrize("op", [pytest.param("gte", id="fault-49-gte"), pytest.param("lte", id="fault-49-lte")])
def test_where_that_matches_nothing_is_inconclusive(op: str) -> None:
    verdict = decide(simple(op=op, value=0.5, where={"tags": ["nosuch"]}), scored(1, 1))
    assert verdict.outcome is INCONCLUSIVE
    assert verdict.reason == "no sample has the tags of `where`"


@pytest.mark.parametrize(
    ("weights", "measured"),
    [
        ({"a": 1, "b": 3}, 0.25),
        ({"a": 0.5, "b": 0.5}, 0.5),
        pytest.param({"a": 0, "b": 2}, 0.0, id="fault-44-weight-0"),
        pytest.param({"a": "0", "b": 0.1}, 0.0, id="fault-44-weight-0-as-text"),
        pytest.param({"a": 0.1, "b": 0.0}, 1.0, id="fault-44-weight-0.0"),
    ],
)
def test_weights_are_normalised(weights: dict[str, Any], measured: float) -> None:
    table = table_of({"scores": {"a": 1.0, "b": 0.0}}, metrics=("a", "b"))
    verdict = decide({"kind": "weighted_average", "weights": weights, "op": "gte", "value": 0.5}, table)
    assert verdict.measured == pytest.approx(measured)
    assert [(child.metric, child.measured) for child in verdict.children] == [("a", 1.0), ("b", 0.0)]


def test_a_weighted_average_needs_every_part_that_has_weight() -> None:
    table = table_of({"scores": {"a": 1.0}}, metrics=("a", "b"))
    gate = {"kind": "weighted_average", "op": "gte", "value": 0.5}
    verdict = decide({**gate, "weights": {"a": 3, "b": 1}}, table)
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "not known: b")
    assert verdict.condition == "0.75 avg_score(a) + 0.25 avg_score(b) >= 0.5"
    assert decide({**gate, "weights": {"a": 3, "b": 0}}, table).outcome is PASS


def test_a_weighted_accuracy_uses_the_thresholds() -> None:
    table = table_of({"scores": {"a": 0.6, "b": 0.4}}, metrics=("a", "b"))
    gate = {
        "kind": "weighted_average",
        "aggregation": "accuracy",
        "weights": {"a": 3, "b": 1},
        "op": "gte",
        "value": 75,
    }
    verdict = decide({**gate, "pass_threshold": 0.5}, table)
    assert (verdict.measured, verdict.outcome) == (75, PASS)
    assert decide(gate, table).measured == 0


@pytest.mark.parametrize(("left", "right"), list(itertools.product(Outcome, repeat=2)))
def test_kleenes_tables(left: Outcome, right: Outcome) -> None:
    truth = {FAIL: 0, INCONCLUSIVE: 1, PASS: 2}
    assert truth[all_of([left, right])] == min(truth[left], truth[right])
    assert truth[any_of([left, right])] == max(truth[left], truth[right])


@pytest.mark.parametrize(("operator", "outcome"), [("and", FAIL), ("or", PASS)])
def test_logical_gates_nest(operator: str, outcome: Outcome) -> None:
    never = simple(metric_key="cost", op="lt")
    nested = {"kind": "logical", "operator": "and", "conditions": [simple(value=0.9), simple(value=0.5)]}
    verdict = decide(
        {"kind": "logical", "operator": operator, "conditions": [never, nested, simple("min")]}, scored(0.6, 0.6)
    )
    assert verdict.outcome is outcome
    assert [child.outcome for child in verdict.children] == [INCONCLUSIVE, FAIL, PASS]
    assert [child.outcome for child in verdict.children[1].children] == [FAIL, PASS]


def test_the_gate_must_hold_for_each_model() -> None:
    verdict = decide(simple(), scored(1), scored(0), scored(None))
    assert verdict.outcome is FAIL
    assert [(child.model, child.outcome) for child in verdict.children] == [
        ("m0", PASS),
        ("m1", FAIL),
        ("m2", INCONCLUSIVE),
    ]
    assert decide(simple(), scored(1), scored(None)).outcome is INCONCLUSIVE
    assert decide(simple(), scored(1), scored(0.5)).outcome is PASS


@pytest.mark.parametrize(
    ("samples", "measured", "runs_passed"),
    [
        pytest.param([[1, 0, 1], [1, 0, 1], [1, 0, 1], [1, 1, 1]], 75, 2, id="fault-62-4-samples-3-runs"),
        pytest.param([[1, 1, 1]] * 4, 100, 3, id="fault-62-12-of-12"),
    ],
)
def test_over_several_runs_all_observations_count_and_the_runs_that_pass_alone(
    samples: list[list[float | None]], measured: float, runs_passed: int
) -> None:
    verdict = decide(simple("accuracy", value=70), runs_of(*samples), num_runs=3)
    assert (verdict.outcome, verdict.measured) == (PASS, measured)
    assert (verdict.n, verdict.n_samples) == (12, 4)
    assert (verdict.runs_passed, verdict.runs_total) == (runs_passed, 3)


@pytest.mark.parametrize(
    ("aggregation", "op", "samples", "measured"),
    [
        ("pass_at_k", "gte", [[1, 0], [0, 0], [1, 1]], 2 / 3),
        ("pass_hat_k", "gte", [[1, 0], [0, 0], [1, 1]], 1 / 3),
        ("pass_hat_k", "gte", [[1, None], [1, 1]], 1 / 2),
        ("pass_at_k", "lte", [[0, None], [0, 0]], 1 / 2),
        pytest.param("pass_at_k", "gte", [[1, 0, 0], [1, 1]], 5 / 6, id="fault-58-unequal-numbers-of-trials"),
    ],
)
def test_repeats(aggregation: str, op: str, samples: list[list[float | None]], measured: float) -> None:
    verdict = decide(simple(aggregation, op), runs_of(*samples), num_runs=2)
    assert verdict.measured == pytest.approx(measured)
    assert verdict.condition == f"{aggregation}(quality, k = 2) {'>=' if op == 'gte' else '<='} 0.5"
    assert verdict.runs_total is None


@pytest.mark.parametrize("aggregation", [pytest.param(a, id=f"fault-58-{a}") for a in ("pass_at_k", "pass_hat_k")])
def test_k_above_the_trials_is_inconclusive(aggregation: str) -> None:
    verdict = decide(simple(aggregation, value=0), runs_of([1, 1], [1]), num_runs=2)
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "some sample has fewer than k = 2 trials")
    excluded = decide(simple(aggregation, value=0), runs_of([1, 1], [1, None]), num_runs=2, on_error="exclude")
    assert excluded.outcome is INCONCLUSIVE


def test_warnings_do_not_decide() -> None:
    gates = parse_gates([simple(name="a"), simple(name="b", value=0.9, on_fail="warn")])
    verdicts = evaluate_gates(gates, {"m": scored(0.6)}, on_error="fail", num_runs=1, finished=True)
    assert [verdict.outcome for verdict in verdicts] == [PASS, FAIL]
    assert overall(verdicts) is PASS
    assert overall(verdicts[1:]) is overall([]) is None


# against an oracle that shares no code with the gates

SCORES = st.none() | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
AGGREGATIONS = ["avg_score", "accuracy", "pass_rate", "min", "max", "median", "p50", "p95", "p99"]
LEAVES = st.builds(
    SimpleGate,
    metric_key=st.sampled_from("ab"),
    aggregation=st.sampled_from([*AGGREGATIONS, "pass_at_k", "pass_hat_k"]),
    op=st.sampled_from(["gt", "gte", "lt", "lte", "eq"]),
    value=st.sampled_from([0.0, 0.2, 0.5, 1.0, 50.0]),
    pass_threshold=st.none() | st.sampled_from([0.0, 0.5]),
)
WEIGHTED = st.builds(
    WeightedAverageGate,
    kind=st.just("weighted_average"),
    aggregation=st.sampled_from(AGGREGATIONS),
    weights=st.fixed_dictionaries({"a": st.sampled_from([0, 1, 2.5]), "b": st.sampled_from([0.5, 1])}),
    op=st.sampled_from(["gt", "gte", "lt", "lte"]),
    value=st.sampled_from([0.0, 0.3, 0.7, 40.0]),
)
GATES = st.recursive(
    LEAVES | WEIGHTED,
    lambda inner: st.builds(
        LogicalGate,
        kind=st.just("logical"),
        operator=st.sampled_from(["and", "or"]),
        conditions=st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)


def oracle_value(
    gate: Any, metric: str, rows: list[tuple[str, dict[str, float]]], exclude: bool, k: int
) -> float | None:
    if not any(metric in scores for _, scores in rows):
        return None
    small = gate.op in ("lt", "lte")
    threshold = 0.75 if gate.pass_threshold is None else gate.pass_threshold
    values, passes, by_sample = [], [], defaultdict(list)
    for sample, scores in rows:
        by_sample[sample] += []
        if metric in scores:
            values.append(scores[metric])
            passes.append(scores[metric] >= threshold)
            by_sample[sample].append(passes[-1])
        elif not exclude:
            values.append(1.0 if small else 0.0)
            passes.append(small)
            by_sample[sample].append(small)
    if gate.aggregation in ("pass_at_k", "pass_hat_k"):
        if any(len(trials) < k for trials in by_sample.values()):
            return None
        one = any if gate.aggregation == "pass_at_k" else all
        return float(
            numpy.mean([numpy.mean([one(c) for c in itertools.combinations(t, k)]) for t in by_sample.values()])
        )
    return float(
        {
            "avg_score": lambda: numpy.mean(values),
            "accuracy": lambda: numpy.mean(passes) * 100,
            "pass_rate": lambda: numpy.mean(passes),
            "min": lambda: min(values),
            "max": lambda: max(values),
            "median": lambda: numpy.median(values),
            "p50": lambda: numpy.percentile(values, 50),
            "p95": lambda: numpy.percentile(values, 95),
            "p99": lambda: numpy.percentile(values, 99),
        }[gate.aggregation]()
    )


def oracle(gate: Any, rows: list[tuple[str, dict[str, float]]], exclude: bool, k: int) -> Outcome:
    if isinstance(gate, LogicalGate):
        found = [oracle(condition, rows, exclude, k) for condition in gate.conditions]
        wanted, other = (FAIL, PASS) if gate.operator == "and" else (PASS, FAIL)
        return wanted if wanted in found else INCONCLUSIVE if INCONCLUSIVE in found else other
    weights = gate.weights if isinstance(gate, WeightedAverageGate) else {gate.metric_key: 1}
    total = 0.0
    for metric, weight in weights.items():
        value = oracle_value(gate, metric, rows, exclude, k)
        if weight and value is None:
            return INCONCLUSIVE
        total += weight / sum(weights.values()) * (value or 0.0)
    close = abs(total - gate.value) <= 1e-9
    right = {
        "gt": total > gate.value and not close,
        "gte": total > gate.value or close,
        "lt": total < gate.value and not close,
        "lte": total < gate.value or close,
        "eq": close,
    }[gate.op]
    return PASS if right else FAIL


@given(
    gate=GATES,
    scores=st.lists(st.tuples(st.sampled_from("xyz"), SCORES, SCORES), max_size=10),
    exclude=st.booleans(),
    k=st.integers(1, 3),
)
def test_gates_agree_with_a_naive_oracle(
    gate: Any, scores: list[tuple[str, float | None, float | None]], exclude: bool, k: int
) -> None:
    rows = [(s, {key: v for key, v in (("a", a), ("b", b)) if v is not None}) for s, a, b in scores]
    runs: dict[str, int] = defaultdict(int)
    table = ObservationTable(["a", "b"])
    for sample, values in rows:
        runs[sample] += 1
        table.add(Observation(sample_id=sample, run=runs[sample], scores=values, timing=Timing(total=1, target=1)))
    (verdict,) = evaluate_gates(
        [NamedGate(gate=gate)],
        {"m": table},
        on_error="exclude" if exclude else "fail",
        num_runs=k,
        finished=True,
        pass_threshold=0.75,
    )
    assert verdict.outcome is oracle(gate, rows, exclude, k)
    assert GateVerdict.from_json(verdict.to_json()) == verdict
