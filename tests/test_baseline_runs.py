"""Baselines as the real command finds them: what is compared with what, and what is refused before anything runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from stateval import EvalGate
from stateval.gates import parse_gates
from tests.support.evaltester import EvalTester


def refused(evaltester: EvalTester, **fields: Any) -> str:
    """What is said of a baseline in `old` that today's run must not be compared with; the agent is never asked."""
    evaltester.write_suite(agent="def make(sample):\n    raise SystemExit('asked')\n", **fields)
    done = evaltester.run()
    assert done.status == 2, done.output
    assert not evaltester.results_path.exists()
    return done.stderr


def made(evaltester: EvalTester, **fields: Any) -> None:
    """A baseline of the two usual rows."""
    evaltester.write_suite(**fields)
    done = evaltester.command("run", "suite.yaml", "--output", "old")
    assert done.status == 0, done.output


AGAINST = {"baseline": {"results": "old"}}


def test_a_baseline_that_is_not_there_is_said_at_once_with_what_to_do(evaltester: EvalTester) -> None:
    said = refused(evaltester, gate=AGAINST)
    assert f"the baseline {evaltester.path / 'old'} does not exist; a baseline is the directory of a finished" in said
    done = evaltester.command("validate", "suite.yaml")
    assert (done.status, f"the baseline {evaltester.path / 'old'} does not exist" in done.stdout) == (0, True)
    evaltester.write("old/notes.txt", "nothing")
    assert "the baseline cannot be read" in refused(evaltester, gate=AGAINST)


@pytest.mark.parametrize(
    ("then", "today", "words"),
    [
        ({}, {"gate": {"baseline": {"results": "old", "metric_key": "tone"}}, "graders": "two"}, "no metric `tone`"),
        ({}, {"rows": "other"}, "1 of 2 samples in both have other rows (such as `1`)"),
        ({}, {"rows": "new"}, "has no sample of today's dataset"),
        ({}, {"graders": "whole"}, "the grader `quality` (its code, rubric, judge, settings or extractor) is not the"),
        ({"target": "two"}, {}, "has no model `default`; its models are: `a`, `b`"),
    ],
)
def test_what_differs_is_refused_before_the_agent_is_asked(
    evaltester: EvalTester, then: dict[str, Any], today: dict[str, Any], words: str
) -> None:
    contains = {"kind": "tool", "function": "contains"}
    values: dict[str, Any] = {
        "two": {"quality": contains, "tone": contains},
        "whole": {"quality": {**contains, "grader_config": {"whole": True}}},
        "other": [{"input": "red", "ground_truth": "red"}, {"input": "blue", "ground_truth": "blue"}],
        "new": [{"id": "x", "input": "red", "ground_truth": "red"}],
    }
    if then:
        then = {"target": {"kind": "python", "factory": "agent.py:make", "model_handles": ["a", "b"]}}
    made(evaltester, **then)
    fields = {name: values[value] if isinstance(value, str) else value for name, value in today.items()}
    said = refused(evaltester, **{"gate": AGAINST, **fields})
    assert words in said
    assert "error: the baseline " in said


@pytest.mark.parametrize("forced", [False, True])
def test_a_baseline_that_cannot_be_checked_is_refused_or_marked(evaltester: EvalTester, forced: bool) -> None:
    """A run of letta-evals says nothing of its graders' code, and of no row."""
    config = {"graders": {"quality": {"kind": "tool", "function": "contains"}}}
    samples = [{"id": n, "input": "red", "ground_truth": "red"} for n in range(2)]
    lines = [
        {
            "sample_id": n,
            "agent_id": None,
            "model_handle": None,
            "trajectory": [],
            "submissions": {"quality": "red"},
            "grades": {"quality": {"score": 1.0, "rationale": "", "metadata": {}}},
            "timing": {"total": 1.0, "target": 1.0},
        }
        for n in range(2)
    ]
    evaltester.write("old/suite.json", json.dumps({"suite": "s", "config": config, "samples": samples}, indent=2))
    evaltester.write("old/default.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    against = {"baseline": {"results": "old", "metric_key": "quality", "force": forced}}
    if not forced:
        said = refused(evaltester, gate=against)
        assert "is the same is not known; whether 2 of 2 samples in both had the same rows is not known" in said
        assert "`force: true`" in said
        return
    evaltester.write_suite(gate=against)
    done = evaltester.run()
    assert "NOT COMPARABLE, forced: whether 2 of 2 samples in both had the same rows is not known" in done.stdout
    (verdict,) = evaltester.summary().gates
    assert verdict.marks is not None
    assert len(verdict.marks) == 2


def test_differing_rows_can_be_forced_and_are_marked(evaltester: EvalTester) -> None:
    made(evaltester)
    rows = [{"input": "red", "ground_truth": "red"}, {"input": "blue", "ground_truth": "blue"}]
    evaltester.write_suite(rows, gate={"baseline": {"results": "old", "force": True}})
    done = evaltester.run()
    assert (done.status, "NOT COMPARABLE, forced: 1 of 2 samples in both have other rows" in done.stdout) == (0, True)


def test_a_dataset_that_grew_is_compared_over_what_both_have(evaltester: EvalTester) -> None:
    made(evaltester)
    texts = (("red", "red"), ("blue", "green"), ("x", "y"))
    rows = [{"input": text, "ground_truth": truth} for text, truth in texts]
    evaltester.write_suite(rows, gate=AGAINST)
    done = evaltester.run()
    assert done.status == 0, done.output
    assert "n = 2 in both, 1 only here" in done.stdout


def test_fault_61_an_unfinished_baseline_is_refused_and_history_stands_in_for_it(evaltester: EvalTester) -> None:
    rows = [{"id": f"{n}", "input": "red", "ground_truth": "red"} for n in range(4)]
    broken = "def make(sample):\n    raise RuntimeError('no')\n"
    evaltester.write_suite(rows, agent=broken, on_error="stop")
    assert evaltester.command("run", "suite.yaml", "--output", "old").status == 4
    evaltester.write_suite(rows, gate=AGAINST)
    done = evaltester.run()
    assert (done.status, "is of a run that did not finish" in done.stderr) == (2, True), done.output
    evaltester.write_suite(rows, name="first.yaml")
    assert evaltester.command("run", "first.yaml", "--output", "old", "--fresh").status == 0
    evaltester.write_suite(rows, agent=broken, on_error="stop", name="broken.yaml")
    assert evaltester.command("run", "broken.yaml", "--output", "old").status == 4
    evaltester.write_suite(rows, gate=AGAINST)
    done = evaltester.run()
    assert (done.status, "n = 4 in both" in done.stdout) == (0, True), done.output


def test_the_gate_of_the_python_api_takes_confidence_and_min_n() -> None:
    named = EvalGate(min_score=0.5, confidence=0.95, min_n=30).named()
    assert named == parse_gates({"metric_key": "reward", "op": "gte", "value": 0.5, "confidence": 0.95, "min_n": 30})[0]
    with pytest.raises(ValidationError, match="less than 1"):
        EvalGate(min_score=0.5, confidence=1).named()
