"""`stateval compare`: two real runs side by side, what is refused, and what a machine is told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.comparison.compare import Wish, compare_runs
from stateval.comparison.measured import MeasuredRun
from stateval.records.digest import digest_of
from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.result import ErrorCategory, Observation, SampleError, SampleResult, StageKeys
from stateval.records.usage import Timing, Usage
from stateval.results.directory import ResultsDirectory
from stateval.results.opening import open_results
from stateval.results.run_record import RunInputs
from stateval.stats.paired import pair
from stateval.stats.points import Points, sample_points
from stateval.stats.table import ObservationTable
from tests.support import letta_results as le
from tests.support.evaltester import EvalTester, Finished

SKILLED = """
import os


def make(sample):
    def answer(message):
        known = os.environ["KNOWN"].split(",")
        if message in os.environ.get("BROKEN", "").split(","):
            raise RuntimeError("the server went away")
        return message if message in known else "I do not know"

    return answer
"""
WORDS = ["red", "blue", "green", "white", "black", "grey"]


def write_suite(evaltester: EvalTester, words: list[str] = WORDS, **fields: Any) -> None:
    rows = [{"id": word, "input": word, "ground_truth": word} for word in words]
    fields = {"reward": {"kind": "metric", "metric_key": "quality"}} | fields
    evaltester.write_suite(rows, agent=SKILLED, **fields)


def run(evaltester: EvalTester, name: str, known: str, broken: str = "", *arguments: str) -> Path:
    env = {"KNOWN": known, "BROKEN": broken}
    finished = evaltester.command("run", "suite.yaml", "--output", name, "--quiet", *arguments, env=env)
    assert finished.status == 0, finished.output
    return evaltester.path / name


def compared(*paths: Path, **wish: Any) -> dict[str, Any]:
    """What `compare --json` prints; `test_json_is_the_whole_comparison` holds that it is the same."""
    return dict(json.loads(compare_runs([open_results(path) for path in paths], Wish(**wish)).to_json()))


def refused(finished: Finished) -> str:
    assert (finished.status, finished.stdout) == (2, ""), finished.output
    return finished.stderr


def store(
    path: Path,
    scores: dict[str, list[float | None]],
    *,
    inputs: RunInputs | None = None,
    labels: dict[str, dict[str, list[float | None]]] | None = None,
    row: str | None = "a" * 24,
    planned: int | None = None,
    latency: float = 1.0,
    cluster: str | None = None,
    **record: Any,
) -> Path:
    """A run of these scores by sample, one for each repeat; None is an error. Several models by `labels`."""
    models = labels or {"m": scores}
    runs = max((len(values) for by_sample in models.values() for values in by_sample.values()), default=1)
    known = RunInputs(dataset=None, graders={"quality": "g" * 24}, reward="r" * 24) if inputs is None else inputs
    fixed = {"suite": "s", "identity": "i", "version": "0", "num_runs": runs, "inputs": known}
    count = max(map(len, models.values())) if planned is None else planned
    with ResultsDirectory.begin(path, labels=list(models), planned=count, **fixed, **record) as directory:
        for label, by_sample in models.items():
            for number in range(1, runs + 1):
                with directory.journal(label, number) as journal:
                    for key, values in by_sample.items():
                        journal.append(_result(key, label, number, values[number - 1], row, latency, cluster))
        directory.finish()
    return path


def _result(
    key: str, label: str, run: int, score: float | None, row: str | None, latency: float, cluster: str | None
) -> SampleResult:
    error = SampleError(category=ErrorCategory.TARGET, exception_type="OSError", message="gone")
    return SampleResult(
        sample_id=key,
        model_handle=label,
        run=run,
        grades={} if score is None else {"quality": GradeResult(score=score)},
        reward=None if score is None else RewardOutput(score=score),
        error=error if score is None else None,
        timing=Timing(total=latency, target=latency),
        usage=Usage(prompt_tokens=10, cost=0.5),
        stage_keys=StageKeys(target="t", row=row, grades={"quality": "q"}),
        cluster=cluster,
    )


def reward_of(comparison: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return next(metric for metric in comparison["models"][number]["metrics"] if metric["metric"] == "reward")


def changes_of(comparison: dict[str, Any], number: int = 0) -> dict[str, list[str]]:
    changes = comparison["models"][number]["changes"][0]
    names = ("newly_failing", "newly_passing", "still_failing")
    return {name: [sample["id"] for sample in changes[name]] for name in names}


def test_json_is_the_whole_comparison(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {"a": [1.0], "b": [None], "ü": [0.25]})
    now = store(evaltester.path / "now", {"a": [0.0], "b": [1.0]})
    finished = evaltester.command("compare", before, now, "--json", "--confidence", "0.9")
    assert finished.status == 0, finished.output
    assert json.loads(finished.stdout) == compared(before, now, confidence=0.9)


def test_two_runs_of_one_agent_are_compared_sample_by_sample(evaltester: EvalTester) -> None:
    write_suite(evaltester)
    before = run(evaltester, "before", "red,blue,green")
    now = run(evaltester, "now", "red,blue,white,black", "grey")
    comparison = compared(before, now)
    assert comparison["marks"] == []
    assert comparison["models"][0]["n_shared"] == 6
    assert changes_of(comparison) == {
        "newly_failing": ["green"],
        "newly_passing": ["black", "white"],
        "still_failing": ["grey"],
    }
    reward = reward_of(comparison)
    assert (reward["n"], reward["gained"], reward["lost"]) == (6, 2, 1)
    assert reward["difference"] == pytest.approx(1 / 6)
    assert (reward["p_method"], reward["p_value"]) == ("mcnemar exact", 1.0)
    assert reward["interval"][0] < reward["difference"] < reward["interval"][1]


def test_fault_52_errors_stay_in_the_denominator_and_both_means_have_their_n(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {str(n): [1.0] for n in range(10)})
    now = store(evaltester.path / "now", {str(n): [1.0 if n < 5 else None] for n in range(10)})
    comparison = compared(before, now)
    reward = reward_of(comparison)
    assert (reward["other"]["mean_scored"], reward["other"]["n_scored"]) == (1.0, 5)
    assert (reward["other"]["mean_counted"], reward["other"]["n_counted"]) == (0.5, 10)
    assert (reward["difference"], reward["n"], reward["change"]) == (-0.5, 10, "no clear difference")
    assert (reward["disagree"], round(reward["p_value"], 9)) == (True, 0.0625)
    assert (reward["scored"]["difference"], reward["scored"]["n"]) == (0.0, 5)
    failing = comparison["models"][0]["changes"][0]["newly_failing"]
    assert [sample["id"] for sample in failing] == ["5", "6", "7", "8", "9"]
    assert all(sample["other_errored"] and not sample["one_errored"] for sample in failing)
    assert comparison["models"][0]["other"]["ledgers"]["reward"]["errored"] == {"target": 5}
    shown = evaltester.command("compare", before, now).stdout
    assert "sample 5: 1 -> 0 (errored)" in shown
    assert "B, reward: 10 planned = 5 passed + 0 failed + 0 unscored + 5 errored (target 5)" in shown


def test_fault_64_errors_are_errors_in_both_ledgers_of_letta_evals_runs_too(evaltester: EvalTester) -> None:
    before = le.write_reward_era(evaltester.path / "before", [le.scored(0, 1.0), le.scored(1, 1.0)])
    now = le.write_reward_era(evaltester.path / "now", [le.scored(0, 1.0), le.empty(1)])
    comparison = compared(before, now)
    assert comparison["models"][0]["other"]["ledgers"]["reward"]["errored"] == {"extraction": 1}
    assert changes_of(comparison)["newly_failing"] == ["1"]


def test_suites_that_leave_errors_out_are_compared_without_them(evaltester: EvalTester) -> None:
    record = {"on_error": "exclude"}
    before = store(evaltester.path / "before", {"a": [1.0], "b": [1.0], "c": [0.0]}, **record)
    now = store(evaltester.path / "now", {"a": [1.0], "b": [None], "c": [1.0]}, **record)
    comparison = compared(before, now)
    reward = reward_of(comparison)
    assert (reward["n"], reward["difference"]) == (2, 0.5)
    assert "errored_as" not in reward
    assert changes_of(comparison)["newly_failing"] == ["b"], "an error is no pass"


def test_fault_62_four_tasks_of_three_runs_are_four_samples(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {key: [0.0, 0.0, 0.0] for key in "abcd"})
    now = store(evaltester.path / "now", {key: [1.0, 1.0, 1.0] for key in "abcd"})
    reward = reward_of(compared(before, now))
    assert (reward["n"], reward["gained"], reward["lost"], reward["p_value"]) == (4, 4, 0, pytest.approx(0.125))


def test_a_sample_fails_where_the_mean_of_its_repeats_is_below_the_threshold(evaltester: EvalTester) -> None:
    record = {"pass_threshold": 0.5}
    before = store(
        evaltester.path / "before", {"a": [1.0, 1.0, 0.0], "b": [0.0, 0.0, 1.0], "c": [1.0, 1.0, 1.0]}, **record
    )
    now = store(evaltester.path / "now", {"a": [1.0, None, 0.0], "b": [1.0, 0.0, 1.0], "c": [1.0, 1.0, 0.0]}, **record)
    assert changes_of(compared(before, now)) == {
        "newly_failing": ["a"],
        "newly_passing": ["b"],
        "still_failing": [],
    }


@pytest.mark.parametrize("difference", [0.0, 0.25], ids=["fault-59 none differs", "fault-59 all differ alike"])
def test_equal_differences_have_an_interval_of_numbers(evaltester: EvalTester, difference: float) -> None:
    before = store(evaltester.path / "before", {key: [0.5] for key in "abcdefgh"})
    now = store(evaltester.path / "now", {key: [0.5 + difference] for key in "abcdefgh"})
    finished = evaltester.command("compare", before, now, "--json")
    assert finished.status == 0
    assert "nan" not in finished.stdout.lower()
    reward = reward_of(json.loads(finished.stdout))
    assert reward["difference"] == difference
    assert reward["interval"][0] <= difference <= reward["interval"][1]


def test_fault_59_one_cluster_has_no_interval_and_no_verdict(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {key: [0.0] for key in "abcd"}, cluster="one")
    now = store(evaltester.path / "now", {key: [1.0] for key in "abcd"}, cluster="one")
    reward = reward_of(compared(before, now))
    assert (reward["n_clusters"], reward["change"]) == (1, "cannot be said")
    assert "interval" not in reward


def test_one_shared_sample_has_a_difference_and_no_interval(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {"a": [0.0], "b": [0.0]})
    now = store(evaltester.path / "now", {"a": [1.0], "c": [0.0]})
    comparison = compared(before, now)
    reward = reward_of(comparison)
    assert (reward["n"], reward["difference"], reward["change"]) == (1, 1.0, "cannot be said")
    model = comparison["models"][0]
    assert (model["only_in_one"], model["only_in_other"]) == (["b"], ["c"])
    shown = evaltester.command("compare", before, now)
    assert "reward: cannot be said: 0.000 -> 1.000, +1.000 -, n = 1 sample; too few independent samples" in shown.stdout
    assert evaltester.command("compare", before, now, "--fail-on", "regression").status == 3


def test_no_shared_sample_is_wrong_input_with_advice(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {"a": [0.0], "b": [0.0]})
    now = store(evaltester.path / "now", {"c": [1.0]})
    told = refused(evaltester.command("compare", before, now))
    assert "no sample is in both" in told
    assert "`a`, `b`, ..." in told
    assert "give the rows of both datasets an `id`" in told


@pytest.mark.parametrize("what", ["another grader", "another row"])
def test_fault_38_what_does_not_compare_is_refused_and_marked_where_it_is_forced(
    evaltester: EvalTester, what: str
) -> None:
    write_suite(evaltester)
    before = run(evaltester, "before", "red,blue")
    if what == "another grader":
        write_suite(evaltester, graders={"quality": {"kind": "tool", "function": "exact_match"}})
    else:
        rows = [{"id": word, "input": word, "ground_truth": word.upper()} for word in WORDS]
        evaltester.write_rows(rows)
    now = run(evaltester, "now", "red,blue,green")
    told = refused(evaltester.command("compare", before, now))
    named = {"another grader": "the grader of `quality`", "another row": "6 of 6 shared samples have other rows: `"}
    assert "do not compare: " in told
    assert named[what] in told
    assert "--force" in told
    mark = "NOT COMPARABLE, compared all the same (--force): "
    for arguments in (["--format", "terminal"], ["--format", "markdown"], ["--json"]):
        forced = evaltester.command("compare", before, now, "--force", *arguments)
        assert forced.status == 0
        first = json.loads(forced.stdout)["marks"][0] if "--json" in arguments else forced.stdout.splitlines()[0]
        assert mark in first
        assert named[what].replace("`", "")[:20] in first.replace("`", "")
    assert next(iter(json.loads(forced.stdout))) == "marks"


def test_fault_38_metrics_that_nothing_differs_for_can_be_compared_alone(evaltester: EvalTester) -> None:
    graders = {
        "quality": {"kind": "tool", "function": "contains"},
        "exact": {"kind": "tool", "function": "exact_match"},
    }
    write_suite(evaltester, graders=graders)
    before = run(evaltester, "before", "red,blue")
    graders["quality"]["function"] = "exact_match"
    write_suite(evaltester, graders=graders)
    now = run(evaltester, "now", "red,blue,green")
    told = refused(evaltester.command("compare", before, now))
    assert "`--metric exact --metric latency" in told
    comparison = compared(before, now, metrics=("exact", "latency"))
    assert [metric["metric"] for metric in comparison["models"][0]["metrics"]] == ["exact", "latency"]
    assert "the grader of `quality`" in refused(evaltester.command("compare", before, now, "--metric", "reward"))


def test_a_difference_in_rows_that_are_not_shared_does_not_matter(evaltester: EvalTester) -> None:
    write_suite(evaltester)
    before = run(evaltester, "before", "red,blue")
    write_suite(evaltester, ["red", "blue", "green", "yellow"])
    comparison = compared(before, run(evaltester, "now", "red,yellow"))
    assert comparison["marks"] == []
    model = comparison["models"][0]
    assert (model["n_shared"], model["only_in_one"]) == (3, ["black", "grey", "white"])
    assert model["only_in_other"] == ["yellow"]


def test_an_unfinished_run_is_compared_with_a_mark(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {key: [1.0] for key in "abcd"})
    now = store(evaltester.path / "now", {key: [1.0] for key in "ab"}, planned=4)
    finished = evaltester.command("compare", before, now)
    assert finished.status == 0
    assert finished.stdout.splitlines()[0] == f"UNFINISHED: {now} (m) has 2 of 4 planned observations"
    assert "2 not reached" in finished.stdout
    gated = evaltester.command("compare", before, now, "--fail-on", "newly-failing")
    assert gated.status == 4
    assert "did not finish" in gated.stderr


@pytest.mark.parametrize(
    ("now", "fail_on", "status"),
    [
        (1.0, ["regression"], 0),
        (0.0, ["regression"], 1),
        (0.0, ["newly-failing"], 1),
        (0.0, [], 0),
        (0.9, ["newly-failing", "regression"], 1),
    ],
)
def test_fail_on(evaltester: EvalTester, now: float, fail_on: list[str], status: int) -> None:
    before = store(evaltester.path / "before", {key: [1.0] for key in "abcdefgh"})
    after = store(evaltester.path / "now", {key: [now] for key in "abcdefgh"})
    options = [argument for name in fail_on for argument in ("--fail-on", name)]
    assert evaltester.command("compare", before, after, *options).status == status


def test_one_newly_failing_sample_is_no_regression_yet(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {str(n): [1.0] for n in range(20)})
    now = store(evaltester.path / "now", {str(n): [float(n > 0)] for n in range(20)})
    assert evaltester.command("compare", before, now, "--fail-on", "regression").status == 0
    assert evaltester.command("compare", before, now, "--fail-on", "newly-failing").status == 1


@pytest.mark.parametrize(("lost", "change", "status"), [(4, "no clear difference", 0), (6, "worse", 1)])
def test_worse_is_what_the_interval_and_the_test_say(
    evaltester: EvalTester, lost: int, change: str, status: int
) -> None:
    before = store(evaltester.path / "before", {str(n): [1.0] for n in range(50)})
    now = store(evaltester.path / "now", {str(n): [float(n >= lost)] for n in range(50)})
    reward = reward_of(compared(before, now))
    assert reward["interval"][1] < 0
    assert (reward["change"], reward["p_value"] > 0.05) == (change, lost == 4)
    finished = evaltester.command("compare", before, now, "--fail-on", "regression")
    assert (finished.status, "interval and test disagree" in finished.stdout) == (status, lost == 4)


def test_latency_is_a_regression_only_where_it_is_asked_for_and_rises(evaltester: EvalTester) -> None:
    scores: dict[str, list[float | None]] = {key: [1.0] for key in "abcdefgh"}
    before = store(evaltester.path / "before", scores, latency=1.0)
    now = store(evaltester.path / "now", scores, latency=2.0)
    gate = ["--fail-on", "regression"]
    assert evaltester.command("compare", before, now, *gate).status == 0
    slower = evaltester.command("compare", before, now, *gate, "--metric", "response_time")
    assert slower.status == 1
    assert "latency: worse: 1.000 -> 2.000, +1.000" in slower.stdout
    assert evaltester.command("compare", now, before, *gate, "--metric", "latency").status == 0


def test_several_runs_are_compared_with_the_first_and_their_p_values_adjusted(evaltester: EvalTester) -> None:
    keys = [f"{n:02}" for n in range(12)]
    runs = [
        store(evaltester.path / name, {key: [float(int(key) < passing)] for key in keys})
        for name, passing in (("a", 2), ("b", 9), ("c", 12))
    ]
    comparison = compared(*runs)
    assert [Path(model["other"]["path"]).name for model in comparison["models"]] == ["b", "c"]
    p_values = [(reward_of(comparison, n)["p_value"], reward_of(comparison, n)["p_adjusted"]) for n in (0, 1)]
    assert p_values[0][0] == pytest.approx(2 / 2**7)
    assert p_values[1][0] == pytest.approx(2 / 2**10)
    assert [adjusted for _, adjusted in p_values] == [pytest.approx(2 / 2**7), pytest.approx(4 / 2**10)]
    assert "p_adjusted" not in reward_of(compared(*runs[:2]))


def test_models_of_one_run_are_compared_with_its_first(evaltester: EvalTester) -> None:
    scores = {"x": {"a": [1.0], "b": [0.0]}, "y": {"a": [0.0], "b": [0.0]}, "z": {"a": [1.0], "b": [1.0]}}
    path = store(evaltester.path / "run", {}, labels=scores)
    comparison = compared(path)
    assert [(m["one"]["model"], m["other"]["model"]) for m in comparison["models"]] == [("x", "y"), ("x", "z")]
    assert [changes_of(comparison, n)["newly_failing"] for n in (0, 1)] == [["a"], []]


def test_models_are_matched_by_name_and_the_only_ones_whatever_they_are_called(evaltester: EvalTester) -> None:
    path = evaltester.path
    one = store(path / "one", {}, labels={"x": {"a": [1.0]}, "y": {"a": [0.0]}})
    other = store(path / "other", {}, labels={"y": {"a": [1.0]}, "w": {"a": [1.0]}})
    matched = compared(one, other)
    assert [(m["one"]["model"], m["other"]["model"]) for m in matched["models"]] == [("y", "y")]
    alone = store(path / "alone", {}, labels={"v": {"a": [1.0]}})
    single = store(path / "single", {"a": [0.0]})
    assert compared(alone, single)["models"][0]["other"]["model"] == "m"
    told = refused(evaltester.command("compare", one, alone))
    assert "no model is in both runs" in told
    assert "has `x`, `y`" in told


def test_the_directory_of_a_model_that_ran_several_times_stands_for_it(evaltester: EvalTester) -> None:
    one = store(evaltester.path / "x", {}, labels={"x/1": {key: [1.0, 1.0] for key in "abcdefgh"}})
    labels: dict[str, dict[str, list[float | None]]] = {
        "y/1": {key: [0.0, 0.0] for key in "abcdefgh"},
        "z/1": {key: [1.0, 0.0] for key in "abcdefgh"},
    }
    other = store(evaltester.path / "y", {}, labels=labels)
    told = refused(evaltester.command("compare", one, other))
    place = sorted(path for path in other.iterdir() if (path / "run_1.jsonl").exists())[0]
    assert f"{place}`" in told
    found = open_results(place)
    assert (found.labels, found.num_runs, found.planned) == (("y/1",), 2, 8)
    comparison = compared(one, place)
    assert (reward_of(comparison)["difference"], reward_of(comparison)["n"]) == (-1.0, 8)
    assert comparison["models"][0]["other"]["finished"] is True
    nothing = evaltester.path / "nothing"
    nothing.mkdir()
    assert "did you mean" not in evaltester.command("compare", Path("nothing"), one).stderr


@pytest.mark.parametrize("era", ["reward", "gate"])
def test_runs_of_letta_evals_are_compared(evaltester: EvalTester, era: str) -> None:
    if era == "reward":
        before = le.write_reward_era(evaltester.path / "before", [le.scored(0, 1.0), le.scored(1, 0.0)])
        now = le.write_reward_era(evaltester.path / "now", [le.scored(1, 1.0), le.failed(0)])
    else:
        before = le.write_gate_era(evaltester.path / "before", [le.old(0, 1.0), le.old(1, 0.0)])
        now = le.write_gate_era(evaltester.path / "now", [le.old(1, 1.0), le.old_failed(0)])
    comparison = compared(before, now)
    assert changes_of(comparison) == {"newly_failing": ["0"], "newly_passing": ["1"], "still_failing": []}
    assert comparison["marks"] == [
        f"CANNOT BE CHECKED: {'`quality`, `reward`' if era == 'reward' else '`quality`'}: the configuration is the "
        "same, the graders' code is not known"
    ]
    metrics = {metric["metric"]: metric for metric in comparison["models"][0]["metrics"]}
    assert ("latency" in metrics) == (era == "reward"), "seconds that nobody took are not compared"
    assert metrics["cost"]["n"] == 1


def test_fault_38_a_judges_rubric_differs_in_letta_evals_runs(evaltester: EvalTester) -> None:
    def judged(rubric: str, folder: str) -> dict[str, Any]:
        return {"quality": {"kind": "model_judge", "model": "gpt-4o-mini", "prompt": rubric, "prompt_path": folder}}

    paths = [
        le.write_reward_era(evaltester.path / name, [le.scored(0, 1.0)], graders=judged(rubric, f"/home/{name}/r.txt"))
        for name, rubric in (("a", "Be strict."), ("b", "Be strict."), ("c", "Be kind."))
    ]
    assert evaltester.command("compare", *paths[:2]).status == 0, "where the rubric's file was is no difference"
    assert "the grader of `quality`" in refused(evaltester.command("compare", paths[0], paths[2]))


def test_rows_of_letta_evals_runs_are_compared_by_what_they_say(evaltester: EvalTester) -> None:
    before = le.write_reward_era(evaltester.path / "before", [le.scored(0, 1.0), le.scored(1, 1.0)])
    now = le.write_gate_era(evaltester.path / "now", [le.old(0, 1.0), le.old(1, 1.0)])
    comparison = compared(before, now)
    assert comparison["models"][0]["comparability"]["n_rows"] == 2
    assert not any("rows" in mark for mark in comparison["marks"])
    changed = le.old(1, 1.0)
    changed["result"]["sample"]["ground_truth"] = "something else"
    other = le.write_gate_era(evaltester.path / "other", [le.old(0, 1.0), changed])
    assert "1 of 2 shared samples have other rows: `1`" in refused(evaltester.command("compare", before, other))


def test_a_run_of_stateval_compares_with_one_of_letta_evals_and_says_what_is_not_known(evaltester: EvalTester) -> None:
    theirs = le.write_reward_era(evaltester.path / "theirs", [le.scored(0, 1.0), le.scored(1, 0.0)])
    evaltester.write_suite([{"id": n, "input": f"say {n}", "ground_truth": str(n)} for n in range(2)])
    evaltester.run()
    comparison = compared(theirs, evaltester.results_path)
    assert comparison["marks"] == ["CANNOT BE CHECKED: whether `quality`, `reward` graded alike: one run does not say"]
    assert changes_of(comparison)["newly_passing"] == ["1"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: b"",
        lambda text: text[:100],
        lambda text: text.splitlines(keepends=True)[0],
        lambda text: text.replace(b'"quality":1.0', b'"quality":"x"'),
        lambda text: text.replace(b'"scores"', b'"stores"'),
        lambda text: text.replace(b'"offset":', b'"offset":1'),
        lambda text: b"[]\n" + text,
        lambda text: b"garbage\n",
    ],
)
def test_a_damaged_index_changes_no_number(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    scores: dict[str, list[float | None]] = {"a": [1.0, 0.0], "b": [None, 1.0], "c": [0.5, 0.5]}
    before = store(tmp_path / "before", scores, cluster="x", labels={"m": scores})
    now = store(tmp_path / "now", {"a": [1.0, None], "b": [1.0, 1.0], "c": [0.0, 0.25]})
    whole = compared(before, now)
    for index in (now / ".stateval" / "index").iterdir():
        index.write_bytes(damage(index.read_bytes()))
    assert compared(before, now) == whole


@given(st.data())
def test_rows_of_an_index_make_the_same_table_as_observations(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    values = st.none() | st.sampled_from([0.0, 0.3, 1.0])
    drawn = data.draw(st.dictionaries(st.sampled_from(["a", "b", "ü", "\ud83d", "x" * 50]), values, max_size=4))
    path = store(tmp_path_factory.mktemp("run") / "r", {key: [value] for key, value in drawn.items()}, planned=5)
    results = open_results(path)
    measured, table = MeasuredRun(results, "m"), ObservationTable.of(results.observations("m"), ["quality"])
    for metric in ("reward", "quality", "latency", "cost", "tokens"):
        assert list(measured.table.select().cells(metric)) == list(table.select().cells(metric))
    assert set(measured.names({digest_of(key) for key in drawn}).values()) == set(drawn)


cells = st.tuples(st.sampled_from("abcdef"), st.none() | st.sampled_from([0.0, 0.25, 1.0]), st.none() | st.just("x"))


@given(st.lists(cells, max_size=12), st.lists(cells, max_size=12), st.sampled_from([None, 0.0]))
def test_columns_at_once_come_to_the_same_as_one_value_at_a_time(
    one: list[tuple[str, float | None, str | None]],
    other: list[tuple[str, float | None, str | None]],
    errored: float | None,
) -> None:
    def points(rows: list[tuple[str, float | None, str | None]], *, slow: bool) -> Points:
        seen = (
            Observation(key, 1, {} if value is None else {"q": value}, Timing(total=1, target=1), cluster=cluster)
            for key, value, cluster in rows
        )
        table = ObservationTable.of(seen, ["q"])
        return sample_points(table.select(), "q", errored=errored, value_of=float if slow else None)

    assert points(one, slow=False) == points(one, slow=True)
    same = [(key, 0.5, cluster) for key, _, cluster in one]
    for rows in (other, same):
        before, now = points(one, slow=True), points(rows, slow=True)
        differences = {
            sample: after - value
            for sample, value in zip(before.samples, before.values, strict=True)
            for its, after in zip(now.samples, now.values, strict=True)
            if its == sample
        }
        paired = pair(before, now)
        assert dict(zip(paired.samples, paired.differences, strict=True)) == pytest.approx(differences)


HOSTILE = ["<b>|`x` @all", "::error::no", "a\x1b[31mb", "[l](http://x)\n# h", "*" * 200, "\u202eabc", "=1+1"]


def test_what_a_dataset_wrote_is_no_markup_in_any_format(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {key: [1.0] for key in HOSTILE})
    now = store(evaltester.path / "now", {key: [0.0] for key in HOSTILE})
    shown = evaltester.command("compare", before, now).stdout
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", shown) == []
    assert not re.search(r"^::", shown, re.MULTILINE)
    assert "sample \\x3a:error::no: 1 -> 0" in shown
    text = evaltester.command("compare", before, now, "--markdown").stdout
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text) == []
    assert not re.search(r"^(::|# h)", text, re.MULTILINE)
    assert "* ``<b>|`x` @all``: 1 -> 0" in text
    assert "* `[l](http://x)\\n# h`: 1 -> 0" in text
    comparison = compared(before, now)
    assert set(changes_of(comparison)["newly_failing"]) == set(HOSTILE), "JSON has the ids as they are"


def test_a_metric_of_a_foreign_file_is_no_command_for_a_log(evaltester: EvalTester) -> None:
    line = le.scored(0, 1.0) | {"grades": {"::error::no": {"score": 1.0}, "a\nb": {"score": 0.0}}}
    path = le.write_reward_era(evaltester.path / "le", [line, line | {"sample_id": 1}])
    shown = evaltester.command("compare", path, path).stdout
    assert "\\x3a:error::no: no clear difference" in shown
    assert not re.search("^ *::|^b", shown, re.MULTILINE)


def test_long_lists_are_cut_and_say_so_but_not_in_json(evaltester: EvalTester) -> None:
    keys = [f"s{n}" for n in range(30)]
    before = store(evaltester.path / "before", {key: [1.0] for key in keys})
    now = store(evaltester.path / "now", {key: [0.0] for key in keys})
    shown = evaltester.command("compare", before, now).stdout
    assert shown.count(": 1 -> 0") == 10
    assert "... and 20 more" in shown
    assert evaltester.command("compare", before, now, "--limit", "0").stdout.count(": 1 -> 0") == 0
    assert changes_of(compared(before, now))["newly_failing"] == keys
    assert len(changes_of(compared(before, now, limit=2))["newly_failing"]) == 2


@pytest.mark.parametrize(
    ("name", "options", "begins"),
    [
        ("c.json", [], '{\n  "marks"'),
        ("c.md", [], "## Comparison"),
        ("c.txt", [], "Intervals are of 95 %"),
        ("c.txt", ["--json"], '{\n  "marks"'),
    ],
)
def test_a_file_is_written_in_the_format_of_its_name(
    evaltester: EvalTester, name: str, options: list[str], begins: str
) -> None:
    before = store(evaltester.path / "before", {key: [1.0] for key in "abc"})
    now = store(evaltester.path / "now", {key: [1.0] for key in "abc"})
    finished = evaltester.command("compare", before, now, "--output", name, *options)
    assert finished.status == 0, finished.output
    assert (evaltester.path / name).read_text(encoding="utf-8").startswith(begins)
    assert finished.stdout.startswith("reward: no clear difference: 1.000 -> 1.000, +0.000 [")
    assert finished.stdout.rstrip().endswith(f"wrote {evaltester.path / name}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one", "nope"], "nope does not exist"),
        (["one", "on"], "did you mean one?"),
        (["one"], "one run of one model"),
        (["one", "one", "--metric", "qualty"], "there is no metric `qualty`"),
        (["one", "one", "--confidence", "95"], "a confidence lies between 0 and 1"),
        (["one", "one", "--json", "--markdown"], "one format at a time"),
        (["one", "damaged"], "line 2"),
        (["one", "."], "holds no results of stateval or letta-evals itself; give one of the runs in it"),
        (["one", "one", "--output", "one/m.jsonl/x.md"], "cannot be written"),
    ],
)
def test_wrong_input_ends_with_status_2_and_says_what_to_do(
    evaltester: EvalTester, arguments: list[str], said: str
) -> None:
    store(evaltester.path / "one", {"a": [1.0], "b": [1.0]})
    damaged = le.write_reward_era(evaltester.path / "damaged", [le.scored(0, 1.0)]) / "openai-gpt-4.1.jsonl"
    damaged.write_bytes(damaged.read_bytes() + b"{}\n")
    assert said in refused(evaltester.command("compare", *arguments))


def test_the_last_line_of_a_sample_counts(evaltester: EvalTester) -> None:
    before = store(evaltester.path / "before", {"a": [0.0], "b": [0.0]})
    now = store(evaltester.path / "now", {"a": [0.0], "b": [0.0]})
    file = now / "m.jsonl"
    again = file.read_bytes().splitlines(keepends=True)[0].replace(b'"score":0.0', b'"score":1.0')
    file.write_bytes(file.read_bytes() + again)
    single = compared(before / "m.jsonl", file)
    assert changes_of(single)["newly_passing"] == ["a"]
    assert single["models"][0]["other"]["observations"] == 2


def test_secrets_are_not_shown(evaltester: EvalTester) -> None:
    env = {"SOME_API_KEY": "very-secret-value"}
    before = store(evaltester.path / "before", {"very-secret-value": [1.0], "b": [1.0]})
    now = store(evaltester.path / "now", {"very-secret-value": [0.0], "b": [1.0]})
    for options in (["--json"], ["--markdown"], []):
        shown = evaltester.command("compare", before, now, *options, env=env).stdout
        assert "very-secret-value" not in shown
        assert "[redacted]" in shown


TERMINAL = """\
Intervals are of 95 %; a difference is B - A.

A: before, model m: 4 of 4 planned observations, 4 samples
B: now, model m: 4 of 4 planned observations, 4 samples
4 samples in both, 0 only in A, 0 only in B

reward: no clear difference: 0.500 -> 0.500, +0.000 [-1.000, +1.000], n = 4 samples, McNemar exact p = 1; scored in both: +0.333 [-1.000, +1.000], n = 3

Metric  Run  Mean scored  n  Mean counted  n  Without a value
─────────────────────────────────────────────────────────────
reward  A          0.500  4         0.500  4                0
reward  B          0.667  3         0.500  4                1

Ledger
  A, reward: 4 planned = 2 passed + 2 failed + 0 unscored + 0 errored + 0 timed out + 0 skipped + 0 not reached
  B, reward: 4 planned = 2 passed + 1 failed + 0 unscored + 1 errored (target 1) + 0 timed out + 0 skipped + 0 not reached

reward, newly failing (1)
  sample c: 1 -> 0 (errored)

reward, newly passing (1)
  sample b: 0 -> 1

reward, still failing (1)
  sample d: 0 -> 0
"""  # noqa: E501

MARKDOWN = """\
## Comparison

Intervals are of 95 %; a difference is B - A.

* A: `before`, model `m`: 4 of 4 planned observations, 4 samples
* B: `now`, model `m`: 4 of 4 planned observations, 4 samples
* 4 samples in both, 0 only in A, 0 only in B

| Metric | Change | A | B | Difference | Interval | n | Test | Scored in both | n |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| `reward` | no clear difference | 0.500 | 0.500 | +0.000 | [-1.000, +1.000] | 4 | McNemar exact p = 1 | +0.333 [-1.000, +1.000] | 3 |

| Metric | Run | Mean scored | n | Mean counted | n | Without a value |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
| `reward` | A | 0.500 | 4 | 0.500 | 4 | 0 |
| `reward` | B | 0.667 | 3 | 0.500 | 4 | 1 |

Ledger:

* A, `reward`: 4 planned = 2 passed + 2 failed + 0 unscored + 0 errored + 0 timed out + 0 skipped + 0 not reached
* B, `reward`: 4 planned = 2 passed + 1 failed + 0 unscored + 1 errored (target 1) + 0 timed out + 0 skipped + 0 not reached

`reward`, newly failing (1):

* `c`: 1 -> 0 (errored)

`reward`, newly passing (1):

* `b`: 0 -> 1

`reward`, still failing (1):

* `d`: 0 -> 0
"""  # noqa: E501


def test_the_whole_report(evaltester: EvalTester) -> None:
    store(evaltester.path / "before", {"a": [1.0], "b": [0.0], "c": [1.0], "d": [0.0]})
    store(evaltester.path / "now", {"a": [1.0], "b": [1.0], "c": [None], "d": [0.0]})
    for format_, whole in (("terminal", TERMINAL), ("markdown", MARKDOWN)):
        shown = evaltester.command("compare", "before", "now", "--metric", "reward", "--format", format_).stdout
        assert "".join(f"{line.rstrip()}\n" for line in shown.splitlines()) == whole
