"""Kept conversations, graded anew: no agent runs, only what changed is computed, and errors are never reused."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from stateval import EvalSuite
from stateval.results.directory import ResultsDirectory
from tests.support.evaltester import EvalTester

AGENT = """
import os

LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "conversations.log")


def make(sample):
    def answer(message):
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{sample.id}\\n")
        if sample.id == "s7":
            raise RuntimeError("the server is down")
        return f"You like {'apples' if int(sample.id[1:]) % 2 else 'pears'}."

    return answer
"""
GRADERS = """
import os

from stateval import grader

HERE = os.path.dirname(os.path.abspath(__file__))


@grader
def judge(sample, submission):
    with open(os.path.join(HERE, "judged.log"), "a", encoding="utf-8") as log:
        log.write(f"{sample.id}\\n")
    if os.path.exists(os.path.join(HERE, "judge is down")) and sample.id == "s3":
        raise ConnectionError("429")
    return 0.5
"""
ROWS = [{"id": f"s{n}", "input": f"What do I like? ({n})", "ground_truth": "apples"} for n in range(12)]


@pytest.fixture
def kept(evaltester: EvalTester) -> EvalTester:
    """A project with a finished run in `results`, of which s7 errored."""
    evaltester.write("graders.py", GRADERS)
    graders = {
        "said": {"kind": "tool", "function": "contains"},
        "judge": {"kind": "tool", "function": "graders.py:judge"},
    }
    evaltester.write_suite(ROWS, agent=AGENT, graders=graders, reward={"kind": "metric", "metric_key": "said"})
    assert evaltester.run().status == 0
    for log in ("conversations.log", "judged.log"):
        (evaltester.path / log).unlink()
    return evaltester


def logged(tester: EvalTester, name: str) -> list[str]:
    path = tester.path / name
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def regraded(tester: EvalTester, *arguments: str | Path, status: int = 0) -> ResultsDirectory:
    place = tester.path / "again"
    finished = tester.command("run", "suite.yaml", "--output", place, *arguments)
    assert finished.status == status, finished.output
    assert logged(tester, "conversations.log") == [], "the agent was run"
    return ResultsDirectory.open(place)


def test_no_agent_runs_and_nothing_that_stands_is_computed(kept: EvalTester) -> None:
    again = regraded(kept, "--cached", kept.results_path)
    assert logged(kept, "judged.log") == []
    before, after = kept.results(), {str(result.sample_id): result for result in again.results("default")}
    assert before.keys() == after.keys()
    for key, result in after.items():
        assert result.grades == before[key].grades
        assert result.trajectory == before[key].trajectory
        assert result.reward == before[key].reward
        assert result.error == before[key].error
    assert lines_of(kept.results_path) == 12


def test_only_the_grader_that_changed_is_asked(kept: EvalTester) -> None:
    again = regraded(kept, "--cached", kept.results_path, "--set", "graders.said.function=exact_match")
    assert logged(kept, "judged.log") == []
    scores = {str(result.sample_id): result for result in again.results("default")}
    assert {result.grades["said"].score for result in scores.values() if result.grades} == {0.0}
    assert scores["s1"].reward is not None and scores["s1"].reward.score == 0.0
    assert scores["s7"].error is not None and scores["s7"].error.category == "target"
    summary = again.summary()
    assert summary is not None and summary.models[0].metrics["said"].n_scored == 11


def test_a_changed_source_of_a_grader_is_noticed(kept: EvalTester) -> None:
    kept.write("graders.py", GRADERS.replace("return 0.5", "return 0.75"))
    again = regraded(kept, "-c", kept.results_path)
    assert sorted(logged(kept, "judged.log")) == sorted(row["id"] for row in ROWS if row["id"] != "s7")
    assert {result.grades["judge"].score for result in again.results("default") if result.grades} == {0.75}


def test_fault_82_a_grade_that_failed_is_computed_again(kept: EvalTester) -> None:
    kept.write("judge is down", "")
    kept.write("graders.py", GRADERS.replace("return 0.5", "return 0.6"))
    first = regraded(kept, "--cached", kept.results_path)
    assert [str(r.sample_id) for r in first.results("default") if r.grade_errors] == ["s3"]
    (kept.path / "judge is down").unlink()
    (kept.path / "judged.log").unlink()
    place = kept.path / "third"
    assert kept.command("run", "suite.yaml", "--cached", kept.path / "again", "--output", place).status == 0
    assert logged(kept, "judged.log") == ["s3"]
    third = {str(result.sample_id): result for result in ResultsDirectory.open(place).results("default")}
    assert third["s3"].grades["judge"].score == 0.6
    assert third["s3"].error is None


def test_in_place_the_earlier_run_goes_to_history(kept: EvalTester) -> None:
    finished = kept.run("suite.yaml", "--cached", kept.results_path, "--set", "graders.said.function=exact_match")
    assert finished.status == 0, finished.output
    (earlier,) = (kept.results_path / "history").iterdir()
    assert lines_of(earlier) == lines_of(kept.results_path) == 12
    assert kept.results()["s1"].grades["said"].score == 0.0
    assert logged(kept, "conversations.log") == []


def test_one_file_of_results_is_taken_too(kept: EvalTester) -> None:
    alone = kept.path / "alone" / "some.jsonl"
    alone.parent.mkdir()
    shutil.copy(kept.results_path / "default.jsonl", alone)
    again = regraded(kept, "--cached", alone)
    assert len(list(again.results("default"))) == 12
    assert logged(kept, "judged.log") == []


def test_results_of_letta_evals_are_graded(kept: EvalTester) -> None:
    theirs = kept.path / "theirs"
    theirs.mkdir()
    message = {"id": "m", "date": "2026-01-01T00:00:00Z", "message_type": "assistant_message", "content": "apples"}
    with (theirs / "results.jsonl").open("w", encoding="utf-8") as file:
        for row in ROWS:
            result = {
                "sample": row,
                "submission": "apples",
                "trajectory": [[message]],
                "grade": {"score": 0.0, "rationale": "a bad grader"},
                "model_name": None,
            }
            file.write(json.dumps({"type": "result", "result": result}) + "\n")
    (theirs / "header.json").write_text(json.dumps({"type": "header", "suite": "s", "config": {}}), encoding="utf-8")
    (theirs / "summary.json").write_text(json.dumps({"type": "summary", "suite": "s"}), encoding="utf-8")
    again = regraded(kept, "--cached", theirs)
    assert {result.grades["said"].score for result in again.results("default")} == {1.0}
    assert len(list(again.results("default"))) == 12


def test_rows_without_a_conversation_leave_the_run_unfinished(kept: EvalTester) -> None:
    rows: list[dict[str, Any]] = [*ROWS, {"id": "new", "input": "x", "ground_truth": "y"}]
    rows[2] = {**rows[2], "input": "something else"}
    kept.write_rows(rows)
    again = regraded(kept, "--cached", kept.results_path, status=4)
    assert len(list(again.results("default"))) == 11
    summary = again.summary()
    assert summary is not None and summary.finished is False
    assert summary.models[0].ledgers["reward"].not_reached == 2
    assert summary.stopped_because == "2 observations have no kept conversation that fits their row"


def test_a_truth_that_changed_is_no_other_conversation(kept: EvalTester) -> None:
    kept.write_rows([{**row, "ground_truth": "pears"} for row in ROWS])
    again = regraded(kept, "--cached", kept.results_path)
    scores = {
        str(result.sample_id): result.grades["said"].score for result in again.results("default") if result.grades
    }
    assert scores == {f"s{n}": float(n % 2 == 0) for n in range(12) if n != 7}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cached", "nowhere"], "nowhere"),
        (["--cached", "results", "--num-runs", "2"], "no run 2"),
        (["--cached", "results", "--model-handle", "a", "--model-handle", "b"], "no results of `a`"),
    ],
)
def test_what_cannot_be_graded_is_said_before_anything_runs(kept: EvalTester, arguments: list[str], words: str) -> None:
    finished = kept.command("run", "suite.yaml", "--output", "again", *arguments)
    assert finished.status == 2, finished.output
    assert words in finished.stderr
    assert logged(kept, "conversations.log") == []


def test_other_ids_are_an_error(kept: EvalTester) -> None:
    kept.write_rows([{**row, "id": f"other-{row['id']}"} for row in ROWS])
    finished = kept.command("run", "suite.yaml", "--output", "again", "--cached", "results")
    assert finished.status == 2
    assert "no sample of the dataset has a result there" in finished.stderr


def test_repeats_are_answered_from_their_own_run(kept: EvalTester) -> None:
    place = kept.path / "repeated"
    kept.command("run", "suite.yaml", "--output", place, "--num-runs", "3")
    (kept.path / "conversations.log").unlink()
    again = regraded(kept, "--cached", place, "--num-runs", "3")
    for run in (1, 2, 3):
        theirs = {r.sample_id: r.trajectory for r in ResultsDirectory.open(place).results("default", run)}
        assert {r.sample_id: r.trajectory for r in again.results("default", run)} == theirs
        assert all(result.run == run for result in again.results("default", run))


def test_the_python_api_grades_anew_and_goes_on(kept: EvalTester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kept.path)
    suite = EvalSuite.from_file("suite.yaml")
    results = suite.run(cached="results", save=False)
    assert results.summary.models[0].metrics["said"].n_scored == 11
    assert logged(kept, "conversations.log") == []
    again = EvalSuite.from_file("suite.yaml").run(resume="results", retry_errors=True)
    assert logged(kept, "conversations.log") == ["s7"]
    assert again.error_count == 1


def lines_of(directory: Path) -> int:
    return (directory / "default.jsonl").read_bytes().count(b"\n")


def test_what_cannot_be_graded_leaves_the_run_in_the_directory_where_it_is(kept: EvalTester) -> None:
    kept.write_rows([{**row, "id": f"other-{row['id']}"} for row in ROWS])
    assert kept.run("suite.yaml", "--cached", kept.results_path).status == 2
    assert not (kept.results_path / "history").exists()
    assert len(kept.results()) == 12


def test_kept_conversations_cost_nothing(kept: EvalTester) -> None:
    """A limit in tokens would stop a run of agents that do not tell of any."""
    again = regraded(kept, "--cached", kept.results_path, "--set", "limits.tokens=1")
    assert len(list(again.results("default"))) == 12


def test_fault_74_a_signal_ends_a_run_in_which_nothing_ever_waits(kept: EvalTester) -> None:
    rows = [{"id": f"s{n}", "input": "x", "ground_truth": "apples"} for n in range(4000)]
    kept.write_rows(rows)
    kept.write("agent.py", "def make(sample):\n    return lambda message: 'apples'\n")
    place = kept.path / "many"
    assert kept.command("run", "suite.yaml", "--output", place, "--display", "none").status == 0
    kept.write("graders.py", GRADERS.replace("return 0.5", "sum(range(20000)); return 0.6"))
    process = kept.start("run", "suite.yaml", "--cached", place, "--output", kept.path / "again", "--display", "json")
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "sample_finished":
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    graded = len(list(ResultsDirectory.open(kept.path / "again").results("default")))
    assert 0 < graded < 4000
    finished = kept.command("run", "suite.yaml", "--cached", place, "--output", kept.path / "again")
    assert finished.status == 0, finished.output
    assert f"resuming: {graded:,} of 4,000 done" in finished.stdout
    assert len(list(ResultsDirectory.open(kept.path / "again").results("default"))) == 4000


def test_in_place_a_run_that_was_stopped_goes_on_with_the_conversations_that_it_moved(kept: EvalTester) -> None:
    kept.write("graders.py", GRADERS.replace("return 0.5", "import time; time.sleep(0.2); return 0.7"))
    cached = ("--cached", kept.results_path, "--max-concurrent", "1")
    process = kept.start("run", "suite.yaml", "--output", kept.results_path, *cached, "--display", "json")
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "sample_finished":
        pass
    process.kill()
    process.communicate()
    refused = kept.run()
    assert refused.status == 2
    assert "it grades conversations anew, with `--cached history/" in refused.stderr
    finished = kept.run("suite.yaml", *cached)
    assert finished.status == 0, finished.output
    assert "resuming: " in finished.stdout
    assert len(kept.results()) == lines_of(kept.results_path) == 12
    assert {result.grades["judge"].score for result in kept.results().values() if result.grades} == {0.7}
    assert logged(kept, "conversations.log") == []


def test_conversations_of_letta_evals_about_something_else_are_not_graded(kept: EvalTester) -> None:
    theirs = kept.path / "theirs"
    theirs.mkdir()
    other = [{**row, "input": "something else"} if row["id"] == "s4" else row for row in ROWS]
    suite = {"suite": "s", "config": {"graders": {"said": {"kind": "tool", "function": "contains"}}}, "samples": other}
    (theirs / "suite.json").write_text(json.dumps(suite), encoding="utf-8")
    message = {"id": "m", "date": "2026-01-01T00:00:00Z", "message_type": "assistant_message", "content": "apples"}
    timing = {"total": 1.0, "target": 1.0}
    with (theirs / "default.jsonl").open("w", encoding="utf-8") as file:
        for row in ROWS:
            line = {"sample_id": row["id"], "trajectory": [[message]], "grades": {}, "timing": timing}
            file.write(json.dumps(line) + "\n")
    again = regraded(kept, "--cached", theirs, status=4)
    assert {str(result.sample_id) for result in again.results("default")} == {row["id"] for row in ROWS} - {"s4"}
