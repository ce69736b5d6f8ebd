"""Gates that ask how well the judge behind a metric agrees with people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stateval.errors import ExitStatus
from stateval.gates import JudgeCheckKey, JudgeStanding, check_gates, parse_gates
from stateval.records.digest import hash_of
from stateval.records.judge_check import JudgeCheck, MetricCheck
from stateval.records.verdict import Outcome
from stateval.stats.agreement import agreement
from stateval.suite.build import build_plan
from stateval.suite.load import load_suite
from tests.support.gates import FAIL, INCONCLUSIVE, PASS, decide, scored, simple, table_of
from tests.support.model_server import ModelServer, Reply
from tests.support.scripted_judge import answer_of, judge_environment, judge_server

CHECK = {"judge_check": "check.json"}
JUDGED = {"kind": "model_judge", "model": "openai/scripted", "prompt": "Is it good?"}
PLAIN = {"kind": "tool", "function": "contains"}
GATE = {"metric_key": "quality", "op": "gte", "value": 0.5, "judge_check": "check.json"}


def standing(kappa: float | None = 0.8, *, void: str | None = None, metric: str = "quality") -> dict[str, Any]:
    return {"judge_checks": {JudgeCheckKey("check.json", metric): JudgeStanding(True, kappa, void)}}


def test_a_judge_that_agrees_with_people_lets_the_verdict_stand():
    verdict = decide(simple(**CHECK, min_judge_kappa=0.6), scored(1, 1, 0), **standing(0.8))
    assert (verdict.outcome, verdict.judge_check, verdict.judge_kappa) == (PASS, "check.json", 0.8)
    assert decide(simple(**CHECK, min_judge_kappa=0.6), scored(0, 0, 1), **standing(0.8)).outcome is FAIL


@pytest.mark.parametrize("scores", [(1, 1), (0, 0)])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (standing(0.59), "kappa is 0.59"),
        (standing(None), "no kappa"),
        (standing(0.9, void="made with another judge"), "another judge"),
        ({"judge_checks": {}}, "was not read"),
        ({}, "was not read"),
    ],
)
def test_a_check_that_says_too_little_decides_nothing_either_way(scores, options, told):
    verdict = decide(simple(**CHECK, min_judge_kappa=0.6), scored(*scores), **options)
    assert verdict.outcome is INCONCLUSIVE
    assert verdict.reason is not None
    assert told in verdict.reason


def test_the_least_kappa_is_met_within_rounding_and_not_below():
    gate = simple(**CHECK, min_judge_kappa=0.6)
    assert decide(gate, scored(1), **standing(0.1 + 0.5 - 1e-12)).outcome is PASS
    assert decide(gate, scored(1), **standing(0.5999)).outcome is INCONCLUSIVE
    assert decide(simple(**CHECK, min_judge_kappa=0), scored(1), **standing(-0.01)).outcome is INCONCLUSIVE
    assert decide(simple(**CHECK), scored(1), **standing(-0.9)).outcome is PASS


def test_a_logical_gate_hands_it_down_to_what_models_judge():
    table = table_of({"scores": {"quality": 1.0, "plain": 1.0}}, metrics=("quality", "plain"))
    gate = {
        "kind": "logical",
        "operator": "and",
        **CHECK,
        "min_judge_kappa": 0.6,
        "conditions": [simple(metric_key="quality"), simple(metric_key="plain")],
    }
    checks = {
        JudgeCheckKey("check.json", "quality"): JudgeStanding(True, 0.1),
        JudgeCheckKey("check.json", "plain"): JudgeStanding(False),
    }
    verdict = decide(gate, table, judge_checks=checks)
    assert [child.outcome for child in verdict.children] == [INCONCLUSIVE, PASS]
    assert verdict.outcome is INCONCLUSIVE
    assert decide({**gate, "operator": "or"}, table, judge_checks=checks).outcome is PASS


@given(
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=1, max_size=8),
    operator=st.sampled_from(["gte", "gt", "lte", "lt", "eq"]),
    value=st.floats(0, 1),
    void=st.booleans(),
    logical=st.sampled_from([None, "and", "or"]),
)
def test_with_a_check_that_does_not_hold_no_gate_ever_passes_or_fails(scores, operator, value, void, logical):
    found = standing(0.9, void="another judge") if void else standing(0.2)
    gate = simple(op=operator, value=value, **CHECK, min_judge_kappa=0.6)
    if logical:
        gate = {"kind": "logical", "operator": logical, "conditions": [gate, gate]}
    assert decide(gate, scored(*scores), **found).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("kappa", [-1.1, 2, True, "much", float("nan")])
def test_a_kappa_lies_between_minus_one_and_one(kappa):
    with pytest.raises(ValidationError):
        parse_gates(simple(**CHECK, min_judge_kappa=kappa))


def test_a_least_kappa_without_a_check_is_an_error():
    (complaint,) = check_gates(parse_gates(simple(min_judge_kappa=0.6)), ["quality"], has_reward=True)
    assert "judge_check" in complaint


ROWS = [{"id": str(number), "input": f"say {number}", "ground_truth": "say"} for number in range(4)]


def checked(
    evaltester,
    gate: Any,
    *,
    kappa_of: str = "good",
    options: Sequence[str] = (),
    validate: bool = False,
    **changes: Any,
) -> Any:
    """Runs or validates a suite with a gate and the file that it reads, by what is measured of its judge."""
    evaltester.write_suite(ROWS, graders={"quality": JUDGED, "plain": PLAIN}, gate=gate, **changes)
    with judge_server() as server, pytest.MonkeyPatch.context() as environment:
        for name, value in judge_environment(server).items():
            environment.setenv(name, str(value))
        plan = build_plan(load_suite(evaltester.path / "suite.yaml", []))
        judge = next(binding.grader for binding in plan.graders if binding.key == "quality")
        people = [1.0, 0.0, 1.0, 0.0]
        judged = {"good": people, "poor": [1.0, 1.0, 0.0, 0.0], "none": [1.0] * 4}[kappa_of]
        if kappa_of == "none":
            people = judged
        metric = MetricCheck(
            metric="quality",
            fingerprint=hash_of(judge.fingerprint),
            models=("openai/scripted",),
            threshold=0.5,
            overall=agreement(judged, people, 0.5),
        )
        check = JudgeCheck(created=datetime.now(UTC), suite="suite", metrics={"quality": metric})
        evaltester.write("check.json", check.to_json().decode())
        run = evaltester.run if not validate else partial(evaltester.command, "validate")
        return run("suite.yaml", *options, env=dict(judge_environment(server)))


@pytest.mark.parametrize(
    ("kappa_of", "least", "status", "told"),
    [
        ("good", 0.6, ExitStatus.PASSED, "kappa 1"),
        ("poor", 0.6, ExitStatus.INCONCLUSIVE, "kappa is 0"),
        ("none", 0.6, ExitStatus.INCONCLUSIVE, "no kappa"),
    ],
)
def test_a_run_stands_on_the_file_beside_the_suite(evaltester, kappa_of, least, status, told):
    finished = checked(evaltester, {**GATE, "min_judge_kappa": least}, kappa_of=kappa_of)
    assert finished.status == status, finished.output
    assert told in finished.output


def test_another_rubric_makes_the_check_void(evaltester):
    gate = {**GATE, "min_judge_kappa": 0.6}
    assert checked(evaltester, gate, options=["--set", "graders.quality.timeout=9"]).status == ExitStatus.PASSED
    finished = checked(evaltester, gate, options=["--set", "graders.quality.prompt=Is it really good?"])
    assert finished.status == ExitStatus.INCONCLUSIVE, finished.output
    assert "another judge" in finished.output
    assert "stateval judge check" in finished.output


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({**GATE, "metric_key": "plain"}, "no model judges"),
        ({**GATE, "judge_check": "nowhere.json"}, "does not exist"),
        ({**GATE, "judge_check": "damaged.json"}, "damaged"),
        ({**GATE, "judge_check": "other.json"}, "says nothing of `quality`"),
        ({"metric_key": "quality", "op": "gte", "value": 1, "min_judge_kappa": 0.6}, "needs a `judge_check`"),
    ],
)
def test_what_is_wrong_with_a_check_is_said_before_anything_runs(evaltester, gate, told):
    evaltester.write("damaged.json", "{")
    evaltester.write("other.json", json.dumps({"created": "2026-01-01T00:00:00Z", "suite": "s", "metrics": {}}))
    evaltester.write_suite(ROWS, graders={"quality": JUDGED, "plain": PLAIN}, gate=gate)
    with judge_server() as server:
        environment = dict(judge_environment(server))
        finished = evaltester.run(env=environment)
        validated = evaltester.command("validate", "suite.yaml", env=environment)
        assert not server.requests
    assert finished.status == ExitStatus.INPUT_WRONG, finished.output
    assert told in finished.output
    assert told in validated.output, "a file that is not there yet is a warning, all else is wrong"
    assert validated.status == (ExitStatus.PASSED if told == "does not exist" else ExitStatus.INPUT_WRONG)


def test_validate_warns_of_a_check_that_another_judge_was_measured_for(evaltester):
    same = checked(evaltester, GATE, validate=True)
    changed = checked(evaltester, GATE, validate=True, options=["--set", "graders.quality.prompt=Is it really good?"])
    assert "another judge" not in same.output
    assert "another judge" in changed.output
    assert (same.status, changed.status) == (ExitStatus.PASSED, ExitStatus.PASSED)


def test_the_reward_stands_on_all_judges_that_it_is_made_of(evaltester):
    gate = {**GATE, "metric_key": "reward", "min_judge_kappa": 0.6}
    finished = checked(evaltester, gate, kappa_of="poor", reward={"kind": "metric", "metric_key": "quality"})
    assert finished.status == ExitStatus.INCONCLUSIVE, finished.output
    assert checked(evaltester, gate, reward={"kind": "metric", "metric_key": "quality"}).status == ExitStatus.PASSED


def test_an_alias_that_moved_since_the_check_decides_nothing(evaltester):
    labels = "".join(f"{row['id']},say {number},{number % 2}\n" for number, row in enumerate(ROWS))
    evaltester.write("labels.csv", f"id,submission,label\n{labels}")
    gate = {**GATE, "value": 0.4, "judge_check": "judge-check.json", "min_judge_kappa": 0.1}
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGED, "plain": PLAIN}, gate=gate)
    name = "then"

    def judge(request: Any) -> Reply:
        return Reply(answer_of(request, lambda shown, criterion: int(shown.data["submission"][-1]) % 2), model=name)

    with ModelServer(judge) as server:
        environment = dict(judge_environment(server))
        options = ("--labels", "labels.csv", "--metric", "quality")
        made = evaltester.command("judge", "check", suite, *options, env=environment)
        assert made.status == ExitStatus.PASSED, made.output
        same = evaltester.run(suite, env=environment)
        assert same.status == ExitStatus.PASSED, same.output
        name = "now"
        moved = evaltester.run(suite, "--fresh", env=environment)
    assert moved.status == ExitStatus.INCONCLUSIVE, moved.output
    assert "answered as `now`, and was measured as `then`" in " ".join(moved.output.split())
