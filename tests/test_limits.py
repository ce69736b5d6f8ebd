"""Limits end a run cleanly: what ran is kept, the exit status is 4, and the run can go on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.evaltester import EvalTester

AGENT = """
import os
import time


class Agent:
    def __init__(self, sample):
        self.sample = sample

    def send(self, message):
        time.sleep(float(os.environ.get("SECONDS_TO_ANSWER", "0.01")))
        if self.sample.metadata.get("fails"):
            raise RuntimeError("no")
        return "apples"

    def usage(self):
        return self.sample.metadata.get("usage")


def make(sample):
    return Agent(sample)
"""
USAGE = {"prompt_tokens": 80, "completion_tokens": 20, "cost": 0.5}


def write(tester: EvalTester, limits: dict[str, Any], count: int = 40, **metadata: Any) -> None:
    metadata = {"usage": USAGE, **metadata}
    rows = [{"id": n, "input": "x", "ground_truth": "apples", "metadata": metadata} for n in range(count)]
    gate = {"metric_key": "quality", "op": "gte", "value": 0.5}
    tester.write_suite(rows, agent=AGENT, limits=limits, max_concurrent=2, gate=gate)


@pytest.mark.parametrize(
    ("limits", "metadata", "reason"),
    [
        ({"cost_usd": 5}, {}, "the limit of 5 USD is reached"),
        ({"tokens": 1000}, {}, "the limit of 1,000 tokens is reached"),
        ({"errors": 3}, {"fails": True}, "the limit of 3 errors is reached"),
    ],
)
def test_a_limit_stops_the_run_which_can_go_on(
    evaltester: EvalTester, limits: dict[str, Any], metadata: dict[str, Any], reason: str
) -> None:
    write(evaltester, limits, **metadata)
    stopped = evaltester.run()
    assert stopped.status == 4, stopped.output
    assert reason in stopped.stderr
    assert "the same command goes on" in stopped.stderr
    summary = evaltester.summary()
    assert summary.finished is False
    assert summary.stopped_because is not None and reason in summary.stopped_because
    assert summary.gates[0].outcome == "inconclusive"
    done = len(evaltester.results())
    assert done == summary.models[0].ledgers["reward"].planned - summary.models[0].ledgers["reward"].not_reached
    assert 3 <= done <= 12
    later = evaltester.run()
    assert f"resuming: {done} of 40 done" in later.stdout
    assert len(evaltester.results()) > done
    (name,) = limits
    finished = evaltester.run("suite.yaml", "--set", f"limits.{name}=1000000")
    assert len(evaltester.results()) == 40
    assert finished.status == (4 if metadata else 0), finished.output


def test_minutes_are_a_limit(evaltester: EvalTester) -> None:
    write(evaltester, {"minutes": 0.01}, 400)
    stopped = evaltester.run(env={"SECONDS_TO_ANSWER": "0.05"})
    assert stopped.status == 4
    assert "the limit of 0.01 minutes is reached" in stopped.stderr
    assert 0 < len(evaltester.results()) < 400
    assert evaltester.run("suite.yaml", "--set", "limits.minutes=10").status == 0
    assert len(evaltester.results()) == 400


def test_a_limit_that_is_reached_with_the_last_sample_stops_nothing(evaltester: EvalTester) -> None:
    write(evaltester, {"cost_usd": 2.0}, 4)
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert evaltester.summary().finished


@pytest.mark.parametrize(
    ("limits", "usage", "reason"),
    [
        ({"cost_usd": 5}, {"prompt_tokens": 1, "completion_tokens": 1}, "does not say what it cost"),
        ({"cost_usd": 5}, None, "does not say what it cost"),
        ({"tokens": 5}, None, "does not say how many tokens"),
    ],
)
def test_a_limit_that_cannot_be_kept_stops_the_run(
    evaltester: EvalTester, limits: dict[str, Any], usage: dict[str, Any] | None, reason: str
) -> None:
    write(evaltester, limits, usage=usage)
    stopped = evaltester.run()
    assert stopped.status == 4
    assert reason in stopped.stderr


def test_dollars_of_a_model_without_a_price_are_refused_at_the_start(evaltester: EvalTester) -> None:
    target = {"kind": "local_agent", "agent": {}, "model_handles": ["own"], "base_url": "http://127.0.0.1:9/v1"}
    evaltester.write_suite(target=target, limits={"cost_usd": 1})
    refused = evaltester.run()
    assert refused.status == 2
    assert "limits.cost_usd" in refused.stderr
    assert "no known price" in refused.stderr


@pytest.mark.parametrize("limits", [{"tokens": 0}, {"cost_usd": -1}, {"minutes": 0}, {"errors": 0}, {"dollars": 3}])
def test_limits_that_are_none_are_refused(evaltester: EvalTester, limits: dict[str, Any]) -> None:
    write(evaltester, limits)
    refused = evaltester.run()
    assert refused.status == 2
    assert "suite.yaml:" in refused.stderr and next(iter(limits)) in refused.stderr
