"""Comparing a run with an earlier one, sample by sample: what fails, what passes, and what must not be compared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from stateval.errors import UsageError
from stateval.gates import BaselineKey, BaselineRun, check_gates, evaluate_gates, gate_warnings, parse_gates
from stateval.records.result import Observation
from stateval.records.usage import Timing, Usage
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.table import ObservationTable
from tests.support.evaltester import EvalTester
from tests.support.gates import FAIL, INCONCLUSIVE, PASS, passes, runs_of, scored, simple, table_of


def gate(**fields: Any) -> dict[str, Any]:
    """A comparison with the run in `old`."""
    outside = {name: fields.pop(name) for name in ("min_n", "max_error_rate", "where", "on_fail") if name in fields}
    return {"baseline": {"results": "old", **fields}, **outside}


def compare(
    rule: Any, earlier: ObservationTable, today: ObservationTable, *, metric: str = "quality", **options: Any
) -> GateVerdict:
    marks = options.pop("marks", ())
    rules = {"on_error": "fail", "num_runs": 1, "finished": True, **options}
    baselines = {BaselineKey("old", metric, "m"): BaselineRun(earlier, marks)}
    (verdict,) = evaluate_gates(parse_gates(rule), {"m": today}, baselines=baselines, **rules)
    return verdict


# what a gate may say


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (gate(max_drop=-0.1), "greater than or equal to 0"),
        (gate(confidence=95), "written as a share"),
        (gate(force="yes"), "valid boolean"),
        (gate(threshold=1), "Extra inputs"),
        ({"baseline": {}}, "Field required"),
        ({"baseline": {"results": ""}}, "at least 1 character"),
        ({**gate(), "confidence": 0.9}, "stands inside `baseline`"),
        ({**gate(), "op": "gte"}, "Field required"),
        ({**gate(), "kind": "weighted_average", "weights": {"a": 1}, "op": "gt", "value": 0}, "compares one metric"),
    ],
)
def test_what_a_comparison_may_not_say(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parse_gates(rule)


def test_a_comparison_stands_alone_or_by_its_kind_or_beside_a_condition() -> None:
    rules = (gate(), {**gate(), "kind": "baseline"}, {**gate(), **simple()})
    kinds = [parse_gates(rule)[0].gate.kind for rule in rules]
    assert kinds == ["baseline", "baseline", "simple"]


@pytest.mark.parametrize(
    ("rule", "keys", "has_reward", "problem"),
    [
        (gate(), ["a"], True, None),
        (gate(), ["a", "b"], True, None),
        (gate(), ["a", "b"], False, "several graders and no reward"),
        (gate(metric_key="b"), ["a", "b"], False, None),
        ({**gate(), "metric_key": "b"}, ["a", "b"], False, None),
        (gate(metric_key="aa"), ["a", "b"], False, "did you mean `a`"),
        (gate(metric_key="response_time"), ["a"], False, "needs a `max_drop`: how many seconds"),
        (gate(metric_key="cost", max_drop=0), ["a"], False, None),
        (gate(metric_key="cost"), ["a", "cost"], False, None),
    ],
)
def test_what_is_compared_is_known_before_the_run(rule: Any, keys: list[str], has_reward: bool, problem: str) -> None:
    found = check_gates(parse_gates(rule), keys, has_reward=has_reward)
    assert found == [] if problem is None else problem in found[0]


def test_a_comparison_needs_no_further_limit_of_errors() -> None:
    assert gate_warnings(parse_gates(gate())[0], ["quality"], samples=5, on_error="exclude") == []
    assert "never reached" in gate_warnings(parse_gates(gate(min_n=9))[0], ["quality"], samples=5)[0]


# what it decides


def test_the_verdict_says_what_was_measured_and_of_how_many() -> None:
    earlier, today = scored(*[1.0] * 40, *[0.0] * 12), scored(*[1.0] * 20, *[0.0] * 30)
    verdict = compare(gate(), earlier, today)
    differences = [0.0] * 20 + [1.0] * 20 + [0.0] * 10
    bound = sum(differences) / 50 - stats.t.ppf(0.95, 49) * stats.sem(differences)
    assert (verdict.measured, verdict.bound) == (pytest.approx(0.4), pytest.approx(bound))
    assert verdict == GateVerdict(
        condition="drop of quality since old <= 0.02",
        outcome=FAIL,
        model="m",
        metric="quality",
        measured=verdict.measured,
        operator="lte",
        threshold=0.02,
        confidence=0.95,
        n=50,
        n_samples=50,
        n_clusters=50,
        n_errored=0,
        baseline="old",
        bound=verdict.bound,
        n_only_here=0,
        n_only_baseline=2,
        on_fail="fail",
    )
    assert GateVerdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize(
    ("fell", "max_drop", "outcome"),
    [
        (0, 0, PASS),
        (1, 0, PASS),
        (10, 0, FAIL),
        (10, 0.1, FAIL),
        (10, 0.15, PASS),
        (50, 0.8, FAIL),
        (50, 0.9, INCONCLUSIVE),
    ],
)
def test_only_a_drop_that_is_shown_fails(fell: int, max_drop: float, outcome: Outcome) -> None:
    assert compare(gate(max_drop=max_drop), passes(50, 50), passes(50 - fell, 50)).outcome is outcome


@pytest.mark.parametrize(("op", "outcomes"), [("gte", (FAIL, PASS)), ("lte", (PASS, FAIL))])
def test_where_little_is_wanted_a_rise_is_the_loss(op: str, outcomes: tuple[Outcome, Outcome]) -> None:
    rule = {**simple(op=op), **gate()}
    fall, rise = (compare(rule, passes(a, 50), passes(b, 50)).children[1] for a, b in ((45, 15), (15, 45)))
    assert (fall.outcome, rise.outcome) == outcomes
    assert fall.condition.startswith("drop of" if op == "gte" else "rise of")


@pytest.mark.parametrize(("seconds", "outcome"), [(1.2, PASS), (3.0, FAIL)])
def test_of_a_resource_the_loss_is_a_rise(seconds: float, outcome: Outcome) -> None:
    def run(target: float) -> ObservationTable:
        return table_of(*({"scores": {}, "timing": Timing(total=9, target=target + i % 3 / 10)} for i in range(20)))

    verdict = compare(gate(metric_key="response_time", max_drop=0.5), run(1.0), run(seconds), metric="latency")
    assert (verdict.outcome, verdict.measured) == (outcome, pytest.approx(seconds - 1))
    unknown = table_of({"scores": {}, "usage": Usage(cost=1.0)}, {"scores": {}}, {"scores": {}, "usage": Usage(cost=1)})
    verdict = compare(gate(metric_key="cost", max_drop=0.5), unknown, unknown, metric="cost")
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "cost is not known for 1 of 3 observations today")


@pytest.mark.parametrize(
    ("rule", "metrics", "metric"),
    [
        (gate(), ("quality",), "quality"),
        (gate(), ("a", "b"), "reward"),
        ({**gate(), "metric_key": "b"}, ("a", "b"), "b"),
        ({**gate(metric_key="a"), "metric_key": "b"}, ("a", "b"), "a"),
    ],
)
def test_the_metric_is_the_gates_the_only_graders_or_the_reward(rule: Any, metrics: Any, metric: str) -> None:
    table = table_of(*({"scores": dict.fromkeys(metrics, 1.0), "reward": 1.0} for _ in range(9)), metrics=metrics)
    verdict = compare(rule, table, table, metric=metric)
    assert (verdict.metric, verdict.outcome) == (metric, PASS)


def test_beside_a_condition_both_must_hold() -> None:
    rule = {**simple(value=0.3, min_n=5), **gate()}
    verdict = compare(rule, passes(50, 50), passes(25, 50))
    assert (verdict.condition, verdict.outcome) == ("all of", FAIL)
    assert [(child.outcome, child.baseline) for child in verdict.children] == [(PASS, None), (FAIL, "old")]


def test_comparisons_are_conditions_of_logical_gates_and_named_gates() -> None:
    rule = {"kind": "logical", "operator": "or", "conditions": [simple(value=0.9), gate(max_drop=0.6)], "min_n": 3}
    assert compare(rule, passes(50, 50), passes(25, 50)).outcome is PASS
    assert [c.reason for c in compare(rule, passes(2, 2), passes(2, 2)).children][1] == (
        "only 2 samples are in both runs; `min_n` is 3"
    )
    rows = [{"scores": {"quality": 1.0}, "tags": ("old",)}] * 5 + [{"scores": {"quality": 0.0}, "tags": ("new",)}] * 5
    verdict = compare(gate(where={"tags": ["old"]}, on_fail="warn"), table_of(*rows), table_of(*rows))
    assert (verdict.n, verdict.on_fail) == (5, "warn")
    assert verdict.condition == "drop of quality since old <= 0.02 where tags: old"


@pytest.mark.parametrize(
    ("earlier", "today", "options", "reason"),
    [
        pytest.param(
            passes(9, 9), passes(0, 9), {"finished": False}, "the run did not finish", id="fault-61-unfinished"
        ),
        pytest.param(passes(9, 9), scored(), {}, "no sample was run", id="fault-49-nothing-ran"),
        pytest.param(passes(1, 1), passes(0, 1), {}, "1 sample is in both runs; a comparison takes two", id="one-pair"),
        pytest.param(
            passes(9, 9), passes(4, 9, errors=5), {}, "55.6 % of the observations errored", id="fault-50-errors-today"
        ),
        pytest.param(
            passes(4, 9, errors=5), passes(9, 9), {}, "55.6 % of the observations errored", id="fault-50-errors-then"
        ),
        pytest.param(
            scored(*[None] * 3), passes(3, 3), {}, "100 % of the observations errored", id="fault-64-nothing-but-errors"
        ),
    ],
)
def test_a_comparison_is_never_decided_for_want_of_data(earlier: Any, today: Any, options: Any, reason: str) -> None:
    verdict = compare(gate(), earlier, today, **options)
    assert verdict.outcome is INCONCLUSIVE
    assert verdict.reason is not None
    assert reason in verdict.reason


def test_errors_alone_are_no_values_whatever_rate_is_allowed() -> None:
    verdict = compare(gate(max_error_rate=1), passes(9, 9), scored(*[None] * 9))
    assert (verdict.outcome, verdict.reason) == (
        INCONCLUSIVE,
        "no observation of one of the runs has a value of quality",
    )


def test_a_single_cluster_is_no_evidence() -> None:
    rows = [{"scores": {"quality": 1.0}, "cluster": "all"}] * 9
    assert compare(gate(), table_of(*rows), table_of(*rows)).outcome is INCONCLUSIVE


def test_fault_62_repeats_are_averaged_within_their_sample() -> None:
    earlier, today = runs_of(*[[1, 1, 1]] * 4), runs_of(*[[0, 1, 1]] * 4)
    verdict = compare(gate(), earlier, today, num_runs=3)
    assert (verdict.n, verdict.measured, verdict.runs_total) == (4, pytest.approx(1 / 3), None)


@pytest.mark.parametrize("on_error", [pytest.param(o, id=f"fault-52-{o}") for o in ("fail", "exclude")])
def test_where_errors_would_turn_the_comparison_nothing_is_decided(on_error: str) -> None:
    verdict = compare(gate(max_drop=0), passes(100, 100), passes(92, 100, errors=8), on_error=on_error)
    assert (verdict.outcome, verdict.reason) == (
        INCONCLUSIVE,
        "the verdict hangs on the 8 errored observations of both runs: counted as 0: 0.08 (fail), left out: 0 (pass)",
    )


def test_what_was_forced_is_marked_and_what_was_not_read_decides_nothing() -> None:
    assert compare(gate(force=True), passes(9, 9), passes(9, 9), marks=("other rows",)).marks == ["other rows"]
    verdict = compare(gate(), passes(9, 9), passes(9, 9), metric="other")
    assert (verdict.outcome, verdict.reason) == (INCONCLUSIVE, "the earlier run was not read")


SCORES = st.sampled_from([0.0, 0.5, 1.0])


@given(scores=st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=30), data=st.data())
def test_what_is_shown_is_never_more_than_was_measured_and_better_scores_lower_that(scores: Any, data: Any) -> None:
    place = data.draw(st.integers(0, len(scores) - 1))
    earlier, today = scored(*(a for a, _ in scores)), [b for _, b in scores]
    before, after = (
        compare(gate(max_drop=0), earlier, scored(*now)) for now in (today, [*today[:place], 1.0, *today[place + 1 :]])
    )
    for verdict in (before, after):
        assert verdict.bound is not None
        assert verdict.measured is not None
        assert verdict.bound <= verdict.measured + 1e-12
        assert (verdict.outcome is FAIL) is (verdict.bound > 1e-9)
    assert (after.measured or 0) <= (before.measured or 0) + 1e-12


# one and the same agent, twice


def noisy_runs(pair: int, samples: int, drop: float = 0.0) -> Iterator[ObservationTable]:
    """Two runs of an agent that answers each sample with a chance of its own; the second with less by `drop`."""
    chances = [random.Random(f"sample {n}").betavariate(2, 1) for n in range(samples)]
    for run, less in enumerate((0.0, drop)):
        luck = random.Random(f"pair {pair} run {run}")
        yield ObservationTable.of(
            (
                Observation(str(n), 1, {"quality": float(luck.random() < chance - less)}, Timing(total=1, target=1))
                for n, chance in enumerate(chances)
            ),
            ["quality"],
        )


PAIRS = 400


def test_an_unchanged_agent_fails_as_often_as_promised_and_a_worse_one_fails() -> None:
    """A/A: with `max_drop: 0` at 95 % about one comparison in twenty fails by chance, within the binomial band."""
    low, high = stats.binom.interval(0.99, PAIRS, 0.05)
    false_alarms = sum(compare(gate(max_drop=0), *noisy_runs(pair, 60)).outcome is FAIL for pair in range(PAIRS))
    assert low <= false_alarms <= high
    found = [compare(gate(max_drop=0), *noisy_runs(pair, 60, drop=0.3)).outcome for pair in range(40)]
    assert found.count(FAIL) >= 36
    assert INCONCLUSIVE not in found


NOISY_AGENT = """
import os
import random

class Agent:
    def __init__(self, sample):
        self.luck = random.Random(f"{sample.id} {os.environ['LUCK']}")
        self.skill = float(os.environ.get("SKILL", "0.7"))

    def send(self, message):
        return message if self.luck.random() < self.skill else "no idea"

def make(sample):
    return Agent(sample)
"""
ROWS = [{"id": f"s{n}", "input": f"word {n}", "ground_truth": "word"} for n in range(40)]


def run_noisy(evaltester: EvalTester, luck: int, **fields: Any) -> tuple[int, str]:
    """A run into `results`; status and output."""
    skill = fields.pop("skill", 0.7)
    evaltester.write_suite(fields.pop("rows", ROWS), agent=NOISY_AGENT, **fields)
    done = evaltester.run(env={"LUCK": str(luck), "SKILL": str(skill)})
    return done.status, done.output


def test_pairs_of_runs_of_the_real_command_compare_with_the_last_run_in_the_directory(evaltester: EvalTester) -> None:
    assert run_noisy(evaltester, 0)[0] == 0
    against = {"baseline": {"results": "results", "max_drop": 0}}
    statuses = [run_noisy(evaltester, luck, gate=against)[0] for luck in range(1, 6)]
    assert set(statuses) <= {0, 1}
    assert statuses.count(1) <= 1
    status, output = run_noisy(evaltester, 6, gate=against, skill=0.2)
    assert status == 1, output
    (verdict,) = evaltester.summary().gates
    assert (verdict.n, verdict.outcome, verdict.n_only_here) == (40, FAIL, 0)
    assert "FAIL [default] drop of quality since results <= 0: measured 0." in output
    assert "n = 40 in both" in output
    assert len(list((evaltester.results_path / "history").iterdir())) == 6


def test_an_unknown_metric_is_an_error_at_the_end_too() -> None:
    with pytest.raises(UsageError, match="`nosuch`, which does not exist"):
        compare(gate(metric_key="nosuch"), passes(2, 2), passes(2, 2))


# a loss that cannot be shown does not pass


@pytest.mark.parametrize(
    ("earlier", "today", "fields", "outcome"),
    [
        ([1.0] * 50, [0.0] * 2, {}, INCONCLUSIVE),
        ([1.0] * 50, [0.0] * 4, {}, INCONCLUSIVE),
        ([1.0] * 50, [0.0] * 5, {}, FAIL),
        ([1.0] * 50, [0.0] * 4, {"op": "lt"}, PASS),  # nothing can rise above 1
        ([0.0] * 50, [1.0] * 4, {"op": "lt"}, INCONCLUSIVE),
        ([1.0] * 50, [1.0] * 4, {}, PASS),  # nothing was lost
        ([0.0] * 4 + [1.0] * 46, [0.0] * 4, {}, PASS),
        ([1.0] * 50, [1.0] * 50, {}, PASS),
        ([0.0] * 50, [0.0] * 50, {}, PASS),  # nothing can drop below 0
        ([0.2] * 50, [0.2] * 3, {"max_drop": 0.3}, PASS),
        ([1.0] * 50, [0.0] * 10, {"max_drop": 0.7}, INCONCLUSIVE),
        ([1.0] * 50, [0.0] * 19, {"max_drop": 0.7}, FAIL),
        ([1.0, 0.0] * 50, [1.0, 0.0] * 50, {}, PASS),
    ],
)
def test_a_loss_that_so_few_samples_could_never_show_does_not_pass(
    earlier: list[float], today: list[float], fields: dict[str, Any], outcome: Outcome
) -> None:
    operator = fields.get("op")
    rule = gate(**{name: value for name, value in fields.items() if name != "op"})
    rule = {**rule, **simple(op=operator, value=1.5)} if operator else rule
    verdict = compare(rule, scored(*earlier), scored(*today))
    found = verdict.children[-1] if verdict.children else verdict
    assert found.outcome is outcome, found
    assert ("could not show it" in (found.reason or "")) == (outcome is INCONCLUSIVE)


def test_what_cannot_fail_says_how_many_samples_it_takes() -> None:
    equal = compare(gate(), scored(*[1.0] * 50), scored(*[0.0] * 4))
    assert equal.reason is not None and equal.reason.endswith("that takes about 5")
    rare = compare(gate(max_drop=0), scored(1.0, *[0.0] * 49), scored(*[0.0] * 50))
    assert rare.reason is not None
    needed = int(rare.reason.rsplit(" ", 1)[1])
    assert 100 < needed < 200
    shown = scored(*[1.0] * (needed // 50 + 1), *[0.0] * (needed - needed // 50 - 1))
    assert compare(gate(max_drop=0), shown, scored(*[0.0] * needed)).outcome is FAIL


def test_advice_for_a_comparison_of_too_few_samples() -> None:
    few = parse_gates(gate())[0]
    assert any(
        "inconclusive even where" in said and said.endswith("5 samples")
        for said in gate_warnings(few, ["a"], samples=4)
    )
    assert gate_warnings(few, ["a"], samples=5) == []
