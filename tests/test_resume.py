"""A run that was stopped goes on: killed, on a full disk, with other rows, graders or agents than it began with."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stateval.records.result import SampleResult
from stateval.results.directory import ResultsDirectory
from tests.support.evaltester import EvalTester, Finished

AGENT = """
import os
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def make(sample):
    def answer(message):
        with open(os.path.join(HERE, "conversations.log"), "a", encoding="utf-8") as log:
            log.write(sample.id + "\\n")
        time.sleep(float(os.environ.get("SECONDS_TO_ANSWER", "0")))
        while os.path.exists(os.path.join(HERE, "hold")) and sample.id != "s0":
            time.sleep(0.01)
        if os.path.exists(os.path.join(HERE, "broken")) and sample.id.endswith("3"):
            raise RuntimeError("the server is down")
        return f"{sample.id} likes {'apples' if len(sample.id) % 2 else 'pears'}"

    return answer
"""
GRADERS = """
from stateval import grader


@grader
def fair(sample, submission):
    return 0.25


@grader
def moody(sample, submission):
    import os
    if os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "moody")) and sample.id.endswith("3"):
        raise ValueError("not today")
    return 1.0
"""


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"id": f"s{n}", "input": f"What does s{n} like?", "ground_truth": "apples"} for n in range(first, count)]


def write(tester: EvalTester, count: int = 40, **fields: Any) -> None:
    tester.write("graders.py", GRADERS)
    tester.write_suite(rows(count), agent=AGENT, **{"max_concurrent": 4, **fields})


def conversations(tester: EvalTester) -> Counter[str]:
    log = tester.path / "conversations.log"
    return Counter(log.read_text(encoding="utf-8").split() if log.exists() else ())


def forget(tester: EvalTester) -> None:
    (tester.path / "conversations.log").unlink(missing_ok=True)


def stopped_run(tester: EvalTester, least: int = 10, *arguments: str) -> int:
    """Kills a run that has finished so many samples, and says how many there are."""
    process = tester.start(
        *("run", "suite.yaml", "--output", tester.results_path, "--display", "json", *arguments),
        env={"SECONDS_TO_ANSWER": "0.03"},
    )
    assert process.stdout is not None
    for _ in range(least):
        while json.loads(process.stdout.readline())["event"] != "sample_finished":
            pass
    process.kill()
    process.communicate()
    forget(tester)
    return sum(1 for label in tester.directory.labels for _ in tester.directory.observations(label))


def essence(result: SampleResult) -> tuple[Any, ...]:
    """What of a result must not depend on how often the run was stopped."""
    texts = [message.to_dict()["content"] for turn in result.trajectory for message in turn]
    scores = {key: (grade.score, grade.rationale) for key, grade in result.grades.items()}
    reward = result.reward.score if result.reward else None
    return str(result.sample_id), result.run, texts, result.submissions, scores, reward, result.stage_keys


def essences(directory: ResultsDirectory) -> list[tuple[Any, ...]]:
    found = [essence(result) for label in directory.labels for result in directory.results(label)]
    return sorted(found, key=lambda entry: entry[:2])


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def resumed(finished: Finished) -> str:
    """The line that says how much was done."""
    return next(line for line in finished.stdout.splitlines() if line.startswith("resuming"))


@pytest.mark.slow
def test_fault_74_a_run_killed_thirty_times_is_equal_to_an_undisturbed_one(evaltester: EvalTester) -> None:
    chance = random.Random(7)
    write(evaltester, 600, num_runs=2)
    killed = 0
    while killed < 30:
        process = evaltester.start(
            *("run", "suite.yaml", "--output", evaltester.results_path, "--display", "none"),
            env={"SECONDS_TO_ANSWER": "0.05"},
        )
        time.sleep(chance.uniform(0.2, 1.6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed thirty times"
        killed += 1
    before = len(essences(evaltester.directory))
    assert 0 < before < 1200
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert resumed(finished) == f"resuming: {before:,} of 1,200 done"

    undisturbed = evaltester.path / "undisturbed"
    talks = conversations(evaltester)
    assert evaltester.command("run", "suite.yaml", "--output", undisturbed, "--display", "none").status == 0
    whole = ResultsDirectory.open(undisturbed)
    assert essences(evaltester.directory) == essences(whole)
    for run in (1, 2):
        assert lines(evaltester.directory.journal_path("default", run)) == 600
    assert set(talks) == {f"s{n}" for n in range(600)}
    assert talks.total() <= 1200 + 30 * 4, "finished samples ran again"
    ours, theirs = evaltester.summary(), whole.summary()
    assert theirs is not None
    assert ours.models[0].metrics == theirs.models[0].metrics
    assert ours.models[0].ledgers == theirs.models[0].ledgers
    assert not (evaltester.results_path / "history").exists()


@pytest.mark.parametrize("damage", ["torn line", "torn index", "no index", "foreign index", "all of the last line"])
def test_what_a_kill_can_leave_is_mended(evaltester: EvalTester, damage: str) -> None:
    write(evaltester)
    done = stopped_run(evaltester)
    journal, index = evaltester.directory.journal_path("default"), evaltester.directory.index_path("default")
    text = journal.read_bytes()
    match damage:
        case "torn line":
            journal.write_bytes(text[:-25])
        case "torn index":
            index.write_bytes(index.read_bytes()[:-25])
        case "no index":
            index.unlink()
        case "foreign index":
            index.write_bytes(b'{"offset": 5}\nrubbish\n')
        case _:
            journal.write_bytes(text[: text[:-1].rfind(b"\n") + 1])
    whole = done - (damage in {"torn line", "all of the last line"})
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert resumed(finished) == f"resuming: {whole} of 40 done"
    assert sorted(evaltester.results()) == sorted(row["id"] for row in rows(40))
    assert lines(journal) == 40
    assert conversations(evaltester).total() == 40 - whole
    assert [o.sample_id for o in evaltester.directory.observations("default")] == [
        str(result.sample_id) for result in evaltester.directory.results("default")
    ]


def test_a_line_that_is_damaged_in_the_middle_is_named(evaltester: EvalTester) -> None:
    write(evaltester)
    stopped_run(evaltester)
    journal = evaltester.directory.journal_path("default")
    text = journal.read_bytes().splitlines(keepends=True)
    text[2] = b'{"sample_id": "s2", "timing": ' + b"\n"
    journal.write_bytes(b"".join(text))
    evaltester.directory.index_path("default").unlink()
    finished = evaltester.run()
    assert finished.status == 4
    assert "default.jsonl:3: the line is no sample result" in finished.stderr
    journal.write_bytes(b"".join(line for number, line in enumerate(text) if number != 2))
    assert evaltester.run().status == 0
    assert len(evaltester.results()) == 40


def test_a_dataset_that_grew_shrank_and_was_shuffled(evaltester: EvalTester) -> None:
    write(evaltester)
    done = stopped_run(evaltester, 15)
    kept = set(evaltester.results())
    gone = sorted(kept)[:3]
    changed = sorted(kept)[3]
    today = [row for row in rows(50) if row["id"] not in gone]
    for row in today:
        if row["id"] == changed:
            row["input"] = "something else"
    random.Random(1).shuffle(today)
    evaltester.write_rows(today)
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert resumed(finished) == f"resuming: {done - 4} of 47 done"
    assert "3 finished samples are no longer in the dataset" in finished.stdout
    assert sorted(evaltester.results()) == sorted(row["id"] for row in today)
    assert evaltester.summary().models[0].n_total == 47
    assert set(conversations(evaltester)) == {row["id"] for row in today} - kept | {changed}
    (aside,) = (evaltester.results_path / "history").iterdir()
    assert lines(aside / "default.jsonl") == 4
    stored = json.loads((evaltester.results_path / "suite.json").read_text(encoding="utf-8"))
    assert [row["id"] for row in stored["samples"]] == [row["id"] for row in today]


def test_grades_whose_inputs_changed_are_computed_anew_and_no_others(evaltester: EvalTester) -> None:
    two = {
        "fair": {"kind": "tool", "function": "graders.py:fair"},
        "said": {"kind": "tool", "function": "contains"},
    }
    write(evaltester, graders=two, reward={"kind": "metric", "metric_key": "said"})
    done = stopped_run(evaltester)
    evaltester.write("graders.py", GRADERS.replace("0.25", "0.5"))
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert resumed(finished) == f"resuming: {done} of 40 done"
    assert "changed since: metric `fair`" in finished.stdout
    assert "metric `said`" not in finished.stdout
    results = evaltester.results()
    assert {result.grades["fair"].score for result in results.values()} == {0.5}
    assert len(results) == lines(evaltester.directory.journal_path("default")) == 40
    assert conversations(evaltester).total() == 40 - done
    assert evaltester.directory.record.mixed is False
    assert list(results["s0"].grades) == ["fair", "said"]


def test_a_truth_that_changed_is_graded_anew_without_the_agent(evaltester: EvalTester) -> None:
    write(evaltester)
    done = stopped_run(evaltester)
    evaltester.write_rows([{**row, "ground_truth": "likes"} for row in rows(40)])
    finished = evaltester.run()
    assert f"{done} finished samples are graded anew" in finished.stdout
    assert {result.grades["quality"].score for result in evaltester.results().values()} == {1.0}
    assert conversations(evaltester).total() == 40 - done


def test_another_agent_begins_anew_and_says_so(evaltester: EvalTester) -> None:
    write(evaltester)
    done = stopped_run(evaltester)
    evaltester.write("agent.py", AGENT.replace("'pears'", "'plums'"))
    finished = evaltester.run()
    assert resumed(finished) == "resuming: 0 of 40 done"
    assert "changed since: target `default`" in finished.stdout
    assert f"{done} finished samples begin again" in finished.stdout
    assert conversations(evaltester).total() == 40
    (aside,) = (evaltester.results_path / "history").iterdir()
    assert lines(aside / "default.jsonl") == done


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2)])
def test_another_number_of_runs(evaltester: EvalTester, before: int, after: int) -> None:
    write(evaltester, 12)
    stopped_run(evaltester, 12 * (before - 1) + 5, "--num-runs", str(before))
    finished = evaltester.run("suite.yaml", "--num-runs", str(after))
    assert finished.status == 0, finished.output
    for run in range(1, after + 1):
        assert sorted(evaltester.results(run=run)) == sorted(row["id"] for row in rows(12))
    assert evaltester.summary().models[0].metrics["quality"].n_scored == 12 * after
    journals = [path for path in evaltester.results_path.rglob("*.jsonl") if "history" not in path.parts]
    assert len(journals) == after


def test_fault_82_errors_are_retried_and_never_reused(evaltester: EvalTester) -> None:
    write(evaltester)
    evaltester.write("broken", "")
    first = evaltester.run()
    assert first.status == 0
    assert "`--retry-errors` runs the samples with errors again" in first.stderr
    assert evaltester.summary().models[0].errors is not None
    forget(evaltester)
    (evaltester.path / "broken").unlink()
    again = evaltester.run("suite.yaml", "--retry-errors")
    assert again.status == 0, again.output
    assert "4 errored samples run again" in again.stdout
    assert conversations(evaltester) == Counter(["s3", "s13", "s23", "s33"])
    assert evaltester.summary().models[0].errors is None
    assert lines(evaltester.directory.journal_path("default")) == 40
    assert evaltester.results()["s13"].timing.target < 60


def test_a_grader_that_failed_is_asked_again_without_the_agent(evaltester: EvalTester) -> None:
    write(evaltester, graders={"moody": {"kind": "tool", "function": "graders.py:moody"}})
    evaltester.write("moody", "")
    assert evaltester.run().status == 0
    assert evaltester.summary().models[0].errors is not None
    forget(evaltester)
    (evaltester.path / "moody").unlink()
    again = evaltester.run("suite.yaml", "--retry-errors")
    assert "4 finished samples are graded anew" in again.stdout
    assert conversations(evaltester).total() == 0
    assert evaltester.summary().models[0].metrics["moody"].mean_counted == 1.0


def test_a_retry_that_is_killed_still_counts_each_sample_once(evaltester: EvalTester) -> None:
    write(evaltester)
    evaltester.write("broken", "")
    evaltester.run()
    (evaltester.path / "broken").unlink()
    process = evaltester.start(
        *("run", "suite.yaml", "--output", evaltester.results_path, "--display", "json", "--retry-errors"),
        *("--max-concurrent", "1"),
        env={"SECONDS_TO_ANSWER": "0.5"},
    )
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "sample_finished":
        pass
    process.kill()
    process.communicate()
    journal = evaltester.directory.journal_path("default")
    assert lines(journal) == 41
    observations = list(evaltester.directory.observations("default"))
    assert len(observations) == len({seen.sample_id for seen in observations}) == 40
    assert sum(seen.error is not None for seen in observations) == 3
    assert len(list(evaltester.directory.results("default"))) == 40
    finished = evaltester.run("suite.yaml", "--retry-errors")
    assert "3 errored samples run again" in finished.stdout
    assert lines(journal) == 40
    assert evaltester.summary().models[0].errors is None


def test_an_unfinished_run_of_another_suite_is_left_alone(evaltester: EvalTester) -> None:
    write(evaltester)
    done = stopped_run(evaltester)
    refused = evaltester.run("suite.yaml", "--set", "name=another")
    assert refused.status == 2
    assert "unfinished run of another suite or target (its suite is 'test-suite')" in refused.stderr
    assert "--fresh" in refused.stderr
    assert lines(evaltester.directory.journal_path("default")) == done
    assert evaltester.run("suite.yaml", "--set", "name=another", "--fresh").status == 0
    (earlier,) = (evaltester.results_path / "history").iterdir()
    assert lines(earlier / "default.jsonl") == done


def test_the_latest_unfinished_run_below_the_current_directory_goes_on(evaltester: EvalTester) -> None:
    write(evaltester)
    runs = evaltester.path / ".stateval" / "runs"
    assert evaltester.command("run", "suite.yaml", "--resume").status == 2
    for number in (1, 2):
        arguments = ["run", "suite.yaml", "--set", "limits.errors=1", *(["--fresh"] if number == 2 else [])]
        evaltester.write("broken", "")
        assert evaltester.command(*arguments).status == 4
    (evaltester.path / "broken").unlink()
    assert len(list(runs.iterdir())) == 2
    finished = evaltester.command("run", "suite.yaml")
    assert "resuming: " in finished.stdout
    assert len(list(runs.iterdir())) == 2
    unfinished = [path for path in runs.iterdir() if ResultsDirectory.open(path).record.finished is None]
    assert len(unfinished) == 1
    later = evaltester.command("run", "--resume", "suite.yaml")
    assert str(unfinished[0]) in later.stdout
    assert evaltester.command("run", "suite.yaml", "--resume").status == 2
    assert "resuming" not in evaltester.command("run", "suite.yaml").stdout.replace("resuming:", "", 0)
    assert len(list(runs.iterdir())) == 3


def test_another_agent_does_not_take_up_an_unfinished_run_unasked(evaltester: EvalTester) -> None:
    write(evaltester)
    evaltester.write("broken", "")
    assert evaltester.command("run", "suite.yaml", "--set", "limits.errors=1").status == 4
    (evaltester.path / "broken").unlink()
    evaltester.write("agent.py", AGENT.replace("'pears'", "'plums'"))
    finished = evaltester.command("run", "suite.yaml")
    assert "resuming" not in finished.stdout
    assert len(list((evaltester.path / ".stateval" / "runs").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--resume", "nowhere"], "there is no run of stateval here"),
        (["--resume", "results", "--fresh"], "choose one"),
        (["--retry-errors", "--no-save"], "nothing to resume"),
        (["--resume", "a", "--output", "b"], "two directories"),
    ],
)
def test_wishes_that_cannot_be_met(evaltester: EvalTester, arguments: list[str], words: str) -> None:
    write(evaltester, 2)
    finished = evaltester.command("run", "suite.yaml", *arguments)
    assert finished.status == 2
    assert words in finished.stderr
    assert conversations(evaltester).total() == 0


def test_fault_83_a_second_process_is_refused_and_the_first_goes_on(evaltester: EvalTester) -> None:
    write(evaltester)
    evaltester.write("hold", "")
    first = evaltester.start("run", "suite.yaml", "--output", evaltester.results_path, "--display", "json")
    assert first.stdout is not None
    while json.loads(first.stdout.readline())["event"] != "sample_finished":
        pass
    for arguments in ([], ["--fresh"], ["--resume"], ["--retry-errors"]):
        second = evaltester.run("suite.yaml", *arguments)
        assert second.status == 2, second.output
        assert "another process" in second.stderr
    (evaltester.path / "hold").unlink()
    first.communicate()
    assert first.returncode == 0
    assert len(evaltester.results()) == 40


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a small tmpfs")
def test_fault_77_a_run_on_a_full_disk_goes_on_when_there_is_room(evaltester: EvalTester) -> None:
    mount = evaltester.path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    evaltester.results_path = mount / "results"
    try:
        write(evaltester, 200)
        full = evaltester.run()
        assert full.status == 4
        assert "the disk is full" in full.stderr
        done = len(evaltester.results())
        assert 0 < done < 200
        subprocess.run(["mount", "-o", "remount,size=4m", str(mount)], check=True)
        finished = evaltester.run()
        assert finished.status == 0, finished.output
        assert resumed(finished) == f"resuming: {done} of 200 done"
        assert lines(evaltester.directory.journal_path("default")) == 200
        assert len(evaltester.results()) == 200
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def test_a_run_that_was_killed_before_it_wrote_its_record_stands_in_nobodys_way(evaltester: EvalTester) -> None:
    write(evaltester, 2)
    (evaltester.results_path / ".stateval" / "index").mkdir(parents=True)
    assert evaltester.run().status == 0


def test_a_finished_run_that_is_resumed_has_nothing_left_to_do(evaltester: EvalTester) -> None:
    write(evaltester, 10, gate={"metric_key": "quality", "op": "gte", "value": 0.9})
    assert evaltester.run().status == 1
    forget(evaltester)
    again = evaltester.run("suite.yaml", "--resume", evaltester.results_path)
    assert again.status == 1
    assert resumed(again) == "resuming: 10 of 10 done"
    assert conversations(evaltester).total() == 0
    assert not (evaltester.results_path / "history").exists()


def test_a_superseded_line_never_comes_back(evaltester: EvalTester) -> None:
    """Killed, graded anew by another grader, killed again; then the row of a finished sample goes."""
    graders = {"fair": {"kind": "tool", "function": "graders.py:fair"}}
    write(evaltester, 12, graders=graders)
    stopped_run(evaltester, 6)
    evaltester.write("graders.py", GRADERS.replace("0.25", "0.5"))
    process = evaltester.start("run", "suite.yaml", "--output", evaltester.results_path, "--display", "json")
    assert process.stdout is not None
    for _ in range(3):
        while json.loads(process.stdout.readline())["event"] != "sample_finished":
            pass
    process.kill()
    process.communicate()
    evaltester.write_rows(rows(12, first=2))
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert sorted(evaltester.results()) == sorted(row["id"] for row in rows(12, first=2))
    assert {result.grades["fair"].score for result in evaltester.results().values()} == {0.5}


@pytest.mark.parametrize("edit", ["a line gone", "a line twice", "a line overwritten", "carriage returns"])
def test_an_index_beside_an_edited_journal_is_not_believed(evaltester: EvalTester, edit: str) -> None:
    write(evaltester, 12)
    done = stopped_run(evaltester, 6)
    journal = evaltester.directory.journal_path("default")
    text = journal.read_bytes().splitlines(keepends=True)
    match edit:
        case "a line gone":
            text = text[:1] + text[2:]
            done -= 1
        case "a line twice":
            text = [*text, text[1]]
        case "a line overwritten":
            text[1] = b"\0" * (len(text[1]) - 1) + b"\n"
        case _:
            text = [line.replace(b"\n", b"\r\n") for line in text]
    journal.write_bytes(b"".join(text))
    finished = evaltester.run()
    if edit == "a line overwritten":
        assert finished.status == 4
        assert "default.jsonl:2: the line is no sample result" in finished.stderr
        journal.write_bytes(b"".join(text[:1] + text[2:]))
        done -= 1
        finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert resumed(finished) == f"resuming: {done} of 12 done"
    assert sorted(evaltester.results()) == sorted(row["id"] for row in rows(12))
    assert evaltester.command("report", evaltester.results_path).status == 0


def test_a_metric_that_needs_a_state_which_was_not_kept_runs_the_sample_again(evaltester: EvalTester) -> None:
    agent = AGENT.replace("    return answer\n", "") + (
        "    class Agent:\n"
        "        def send(self, message):\n"
        "            return answer(message)\n\n"
        "        def state(self):\n"
        "            return {'facts': 'apples'}\n\n"
        "    return Agent()\n"
    )
    write(evaltester, 12)
    evaltester.write("agent.py", agent)
    stopped_run(evaltester, 6)
    memory = {
        "kind": "tool",
        "function": "contains",
        "extractor": "memory_block",
        "extractor_config": {"block_label": "facts"},
    }
    said = {"kind": "tool", "function": "contains"}
    reward = {"kind": "metric", "metric_key": "memory"}
    evaltester.write_suite(rows(12), agent=agent, graders={"quality": said, "memory": memory}, reward=reward)
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert evaltester.summary().models[0].errors is None
    assert {result.grades["memory"].score for result in evaltester.results().values()} == {1.0}


def test_a_run_that_lost_its_record_is_known_by_its_lines(evaltester: EvalTester) -> None:
    write(evaltester)
    done = stopped_run(evaltester)
    shutil.rmtree(evaltester.results_path / ".stateval")
    other = evaltester.run("suite.yaml", "--set", "name=another")
    assert other.status == 2
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert resumed(finished) == f"resuming: {done} of 40 done"
    assert conversations(evaltester).total() == 40 - done
    assert len(evaltester.results()) == 40


def test_changed_settings_of_the_suite_are_named_and_kept(evaltester: EvalTester) -> None:
    write(evaltester, gate={"metric_key": "quality", "op": "gte", "value": 0.1})
    stopped_run(evaltester)
    finished = evaltester.run("suite.yaml", "--set", "gate.value=0.2", "--set", "target.timeout=77")
    assert "changed since in the suite: `target`, `gate`" in finished.stdout
    stored = json.loads((evaltester.results_path / "suite.json").read_text(encoding="utf-8"))
    assert stored["config"]["gate"]["value"] == 0.2
    assert stored["config"]["target"]["timeout"] == 77
