"""What gates ask of the data before they decide: so many samples, so few errors, a run that finished."""

from __future__ import annotations

from typing import Any

import pytest

from stateval.gates import gate_warnings, parse_gates
from stateval.records.result import ErrorCategory
from stateval.records.usage import Usage
from stateval.records.verdict import Outcome
from stateval.stats.table import ObservationTable
from tests.support.gates import INCONCLUSIVE, PASS, certain, decide, passes, runs_of, scored, simple, table_of


@pytest.mark.parametrize("confidence", [None, 0.95])
def test_fault_62_min_n_counts_samples_and_not_their_repeats(confidence: float | None) -> None:
    gate = simple(min_n=5, confidence=confidence)
    verdict = decide(gate, runs_of(*[[1, 1, 1]] * 4), num_runs=3)
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "only 4 samples; `min_n` is 5")
    assert decide(gate, runs_of(*[[1, 1, 1]] * 5), num_runs=3).outcome is PASS


def test_min_n_counts_what_the_number_is_about() -> None:
    table = passes(4, 8, errors=4)
    assert decide(simple(min_n=5, value=0.1), table).outcome is PASS
    assert decide(simple(min_n=5, value=0.1), table, on_error="exclude").reason == "only 4 samples; `min_n` is 5"


@pytest.mark.parametrize(
    ("rate", "confidence", "outcome"),
    [
        (None, None, PASS),
        (0.2, None, PASS),
        (0.19, None, INCONCLUSIVE),
        (0, None, INCONCLUSIVE),
        pytest.param(None, 0.95, INCONCLUSIVE, id="fault-52-a-tenth-where-confidence-is-set"),
        (0.2, 0.95, PASS),
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "exclude"])
def test_too_many_errors_decide_nothing(
    rate: float | None, confidence: float | None, outcome: Outcome, on_error: str
) -> None:
    gate = simple(value=0.5, max_error_rate=rate, confidence=confidence)
    verdict = decide(gate, passes(80, 100, errors=20), on_error=on_error)
    assert verdict.outcome is outcome
    if outcome is INCONCLUSIVE:
        assert verdict.reason is not None
        assert "20 % of the observations errored" in verdict.reason


@pytest.mark.parametrize(
    ("metric", "rows", "outcome"),
    [
        ("latency", {"error": ErrorCategory.TARGET}, INCONCLUSIVE),
        ("cost", {"error": ErrorCategory.TARGET, "usage": Usage(cost=0.1)}, INCONCLUSIVE),
        ("tokens", {"error": ErrorCategory.TARGET, "usage": Usage(prompt_tokens=1)}, INCONCLUSIVE),
        ("latency", {"error": ErrorCategory.GRADING, "usage": Usage(cost=0.1)}, PASS),
    ],
)
def test_a_failed_conversation_counts_for_resources_too(metric: str, rows: dict[str, Any], outcome: Outcome) -> None:
    fine = {"scores": {"quality": 1.0}, "usage": Usage(prompt_tokens=1, cost=0.1)}
    table = table_of(*[fine] * 8, *[{"scores": {}, **rows}] * 2)
    gate = simple(metric_key=metric, op="lt", value=100, max_error_rate=0.1)
    assert decide(gate, table, on_error="exclude").outcome is outcome


@pytest.mark.parametrize("on_error", [pytest.param(o, id=f"fault-52-{o}") for o in ("fail", "exclude")])
def test_where_errors_would_turn_the_verdict_nothing_is_decided(on_error: str) -> None:
    verdict = decide(certain("accuracy", value=75, max_error_rate=0.2), passes(160, 200, errors=20), on_error=on_error)
    assert (verdict.outcome, verdict.reason) == (
        INCONCLUSIVE,
        "the verdict hangs on the 20 errored observations: "
        "counted as not passed: 80 (inconclusive), left out: 88.89 (pass)",
    )
    assert verdict.measured == pytest.approx(80 if on_error == "fail" else 160 / 1.8)
    assert decide(certain("accuracy", value=60, max_error_rate=0.2), passes(160, 200, errors=20)).outcome is PASS


def test_fault_50_one_survivor_of_ten_passes_nothing() -> None:
    for rate in (None, 1):
        gate = certain("accuracy", value=5, max_error_rate=rate)
        assert decide(gate, passes(1, 10, errors=9), on_error="exclude").outcome is INCONCLUSIVE


@pytest.mark.parametrize(
    ("table", "options", "reason"),
    [
        pytest.param(passes(50, 50), {"finished": False}, "the run did not finish", id="fault-61-unfinished"),
        pytest.param(
            passes(0, 3, errors=3), {}, "0 of 3 observations have a value of quality", id="fault-50-all-errors"
        ),
        pytest.param(scored(), {}, "no sample was run", id="fault-49-nothing-ran"),
    ],
)
def test_confidence_does_not_make_up_for_data(table: ObservationTable, options: Any, reason: str) -> None:
    verdict = decide(certain(value=0.1), table, **options)
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, reason)


def test_fault_49_tags_that_match_nothing_decide_nothing() -> None:
    verdict = decide(certain(where={"tags": ["nosuch"]}, min_n=1), passes(50, 50))
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "no sample has the tags of `where`")


TIMED_OUT = {"timed_out": True, "error": ErrorCategory.TARGET}


@pytest.mark.parametrize(
    ("row", "measured", "rate_exceeded"),
    [
        pytest.param({"scores": {"quality": 1.0}, **TIMED_OUT}, 1.0, False, id="fault-65-time-out-with-a-grade"),
        pytest.param({"scores": {}, **TIMED_OUT}, 0.5, True, id="fault-65-time-out-without-a-grade"),
        pytest.param({"scores": {}, "errors": {"quality": ErrorCategory.GRADING}}, 0.5, True, id="fault-65-grader"),
        pytest.param({"scores": {}}, 0.5, True, id="fault-65-no-grade"),
    ],
)
def test_time_out_grade_and_no_grade_are_three_facts(row: dict[str, Any], measured: float, rate_exceeded: bool) -> None:
    """What has a grade counts with it, whatever else happened; what has none is errored, once."""
    table = table_of({"scores": {"quality": 1.0}}, row)
    verdict = decide(simple(value=0.1, max_error_rate=0.25), table)
    assert verdict.measured == measured
    assert (verdict.outcome is INCONCLUSIVE) is rate_exceeded


@pytest.mark.parametrize(("samples", "outcome"), [(10, INCONCLUSIVE), (40, PASS)])
def test_three_values_over_models(samples: int, outcome: Outcome) -> None:
    verdict = decide(certain(value=0.8), scored(*[1] * 50), scored(*[1] * samples))
    assert verdict.outcome is outcome


@pytest.mark.parametrize(
    ("gate", "options", "words"),
    [
        (simple(min_n=50), {"samples": 20}, "`min_n: 50` is never reached"),
        (simple(min_n=20), {"samples": 20}, None),
        (certain("accuracy", value=100), {"samples": 20}, "can never pass: every interval has room"),
        (certain("pass_rate", value=0.9), {"samples": 20}, "even if all of them do; that takes 35"),
        (certain("pass_rate", value=0.9), {"samples": 35}, None),
        (certain("pass_rate", "lte", 0.1), {"samples": 5}, None),
        (simple(), {"on_error": "exclude"}, "`max_error_rate` limits them"),
        (simple(max_error_rate=0.1), {"on_error": "exclude"}, None),
        (certain(), {"on_error": "exclude"}, None),
    ],
)
def test_advice_on_evidence(gate: dict[str, Any], options: dict[str, Any], words: str | None) -> None:
    found = gate_warnings(parse_gates(gate)[0], ["quality"], **options)
    assert found == [] if words is None else words in found[0]


def test_the_advised_number_of_samples_is_the_least_that_can_pass() -> None:
    gate = certain("pass_rate", value=0.9)
    assert [decide(gate, passes(n, n)).outcome for n in (34, 35)] == [INCONCLUSIVE, PASS]
