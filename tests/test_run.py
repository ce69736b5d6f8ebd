"""`stateval run`, as people run it: the real command in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stateval.records.message import AssistantMessage
from stateval.records.result import ErrorCategory
from stateval.records.verdict import Outcome
from tests.support.evaltester import EvalTester

ROWS = [{"id": f"s{n}", "input": f"red {n}", "ground_truth": "red" if n % 4 else "blue"} for n in range(8)]

GATE = {"metric_key": "quality", "op": "gte", "value": 0.7}


def test_the_main_path(evaltester: EvalTester) -> None:
    evaltester.write_suite(ROWS, gate=GATE)
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    assert "PASS" in finished.stdout
    assert "8 planned = 6 passed + 2 failed" in finished.stdout
    assert str(evaltester.results_path) in finished.stdout
    results = evaltester.results()
    assert {key: result.grades["quality"].score for key, result in results.items()} == {
        f"s{n}": 1.0 if n % 4 else 0.0 for n in range(8)
    }
    assert results["s1"].stage_keys is not None
    assert evaltester.summary().gates[0].measured == 0.75
    suite = json.loads((evaltester.results_path / "suite.json").read_text(encoding="utf-8"))
    assert [row["id"] for row in suite["samples"]] == [row["id"] for row in ROWS]
    assert suite["config"]["dataset_provenance"]["files"][0]["path"] == "samples.jsonl"
    assert [path.name for path in evaltester.results_path.glob("*.jsonl")] == ["default.jsonl"]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"gate": {**GATE, "value": 0.8}}, 1, "FAIL"),
        ({"gate": None}, 0, "8 planned"),
        ({"gate": {"metric_key": "cost", "op": "lt", "value": 1}}, 3, "INCONCLUSIVE"),
        ({"gate": {**GATE, "metric_key": "qualty"}}, 2, "did you mean `quality`?"),
        ({"target": {"kind": "python", "factory": "agent.py:broken"}}, 4, "8 errored"),
        ({"max_concurrent": 0}, 2, "suite.yaml:"),
        ({"max_samples": 0}, 2, "max_samples"),
        ({"sample_tags": ["nosuch"]}, 2, "nosuch"),
        ({"colour": "blue"}, 2, "colour"),
    ],
)
def test_exit_statuses(evaltester: EvalTester, changes: dict[str, Any], status: int, words: str) -> None:
    agent = "def make(sample):\n    return str\n\ndef broken(sample):\n    raise RuntimeError('no')\n"
    evaltester.write_suite(ROWS, agent=agent, **changes)
    finished = evaltester.run()
    assert finished.status == status, finished.output
    assert words in finished.output
    assert "Traceback" not in finished.output
    if status == 2:
        assert not evaltester.results_path.exists()


def test_a_usage_error_has_a_traceback_only_with_debug(evaltester: EvalTester) -> None:
    evaltester.write_suite(nonsense=1)
    assert "Traceback" not in evaltester.run().output
    assert "Traceback" in evaltester.run("suite.yaml", "--debug").output


def test_python_m_stateval_and_version(evaltester: EvalTester) -> None:
    assert evaltester.command("--version").stdout.startswith("stateval 0.")
    assert "run" in evaltester.command("--help").stdout


AGENTS = """
    import asyncio, time

    class Slow:
        def send(self, message):
            time.sleep(0.05)
            return message

    def slow(sample):
        return Slow()

    def odd(sample):
        if sample.id == "raises":
            raise ValueError("bad day")
        if sample.id == "nonsense":
            return 42
        if sample.id == "hangs":
            time.sleep(3600)
        if sample.id == "silent":
            return lambda message: []
        if sample.id == "surrogate":
            return lambda message: "ok \\ud83d"
        return lambda message: message
"""


def test_what_goes_wrong_in_a_sample_stays_in_it(evaltester: EvalTester) -> None:
    names = ["raises", "nonsense", "hangs", "silent", "surrogate", "fine"]
    rows = [{"id": name, "input": "ok", "ground_truth": "ok"} for name in names]
    target = {"kind": "python", "factory": "agent.py:odd", "timeout": 1}
    evaltester.write_suite(rows, agent=AGENTS, target=target)
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    results = evaltester.results()
    errors = {key: result.error and (result.error.category, result.error.message) for key, result in results.items()}
    assert errors["raises"] is not None
    assert errors["raises"][0] == ErrorCategory.TARGET
    assert errors["raises"][1].startswith("the factory raised ValueError: bad day (")
    assert "agent.py:" in errors["raises"][1]
    assert "returned int 42" in str(errors["nonsense"])
    assert "longer than 1 s" in str(errors["hangs"])
    assert errors["silent"] is not None
    assert errors["silent"][0] == ErrorCategory.EXTRACTION
    assert errors["surrogate"] is None
    assert errors["fine"] is None
    (ledger,) = (ledger for key, ledger in evaltester.summary().models[0].ledgers.items() if key == "reward")
    assert ledger.errored == {ErrorCategory.TARGET: 2, ErrorCategory.EXTRACTION: 1}
    assert (ledger.timed_out, ledger.passed, ledger.planned) == (1, 2, 6)
    assert results["hangs"].error is not None
    assert results["hangs"].error.timed_out


GRADERS = """
    from stateval import grader, GradeResult

    @grader
    def fickle(sample, submission):
        if sample.id == "s3":
            raise RuntimeError("no opinion")
        if sample.id == "s4":
            return float("nan")
        if sample.id == "s5":
            return "0.5"
        if sample.id == "s6":
            return 1.5
        return GradeResult(score=0.5, rationale="so so")
"""


def test_fault_23_and_47_a_grader_that_fails_is_an_error_and_the_other_grades_stand(evaltester: EvalTester) -> None:
    evaltester.write("grading.py", GRADERS)
    evaltester.write_suite(
        ROWS,
        graders={
            "quality": {"kind": "tool", "function": "contains"},
            "taste": {"kind": "tool", "function": "grading.py:fickle"},
        },
        gate={"metric_key": "taste", "op": "gte", "value": 0.25},
    )
    finished = evaltester.run()
    assert finished.status == 0, finished.output
    results = evaltester.results()
    failed = {key for key, result in results.items() if "taste" not in result.grades}
    assert failed == {"s3", "s4", "s5", "s6"}
    assert all("quality" in result.grades for result in results.values())
    assert "no opinion" in results["s3"].grade_errors["taste"].message  # type: ignore[index]
    gate = evaltester.summary().gates[0]
    assert (gate.n, gate.measured) == (8, 0.25)


def test_on_error_stop_ends_the_run_and_keeps_what_was_finished(evaltester: EvalTester) -> None:
    agent = "def make(sample):\n    if sample.id == 's5':\n        raise RuntimeError('no')\n    return str\n"
    evaltester.write_suite(ROWS, agent=agent, on_error="stop", max_concurrent=1, gate=GATE)
    finished = evaltester.run()
    assert finished.status == 4, finished.output
    assert "s5" in finished.stdout
    assert list(evaltester.results()) == ["s0", "s1", "s2", "s3", "s4", "s5"]
    assert evaltester.summary().gates[0].outcome is Outcome.INCONCLUSIVE
    assert evaltester.summary().models[0].ledgers["reward"].not_reached == 2


def test_retries_try_again_with_a_new_agent(evaltester: EvalTester) -> None:
    agent = """
        tries = {}

        def make(sample):
            tries[sample.id] = tries.get(sample.id, 0) + 1
            if tries[sample.id] < 3:
                raise ConnectionError("not yet")
            return lambda message: f"{message} at try {tries[sample.id]}"
    """
    target = {"kind": "python", "factory": "agent.py:make", "max_retries": 2}
    evaltester.write_suite(ROWS[:2], agent=agent, target=target)
    assert evaltester.run().status == 0
    (message,) = evaltester.results()["s1"].trajectory[0]
    assert isinstance(message, AssistantMessage)
    assert message.content == "red 1 at try 3"


def test_several_models_and_runs(evaltester: EvalTester) -> None:
    agent = "def make(sample, model_handle):\n    return lambda message: message if model_handle == 'x/good' else ''\n"
    target = {"kind": "python", "factory": "agent.py:make", "model_handles": ["x/good", "x/bad", "x:bad"]}
    evaltester.write_suite(ROWS, agent=agent, target=target, num_runs=2, gate=GATE)
    finished = evaltester.run()
    assert finished.status == 1, finished.output
    assert [model.model for model in evaltester.summary().models] == ["x/good", "x/bad", "x:bad"]
    assert len(list(evaltester.directory.results("x/good"))) == 16
    assert len(list(evaltester.directory.results("x:bad", 2))) == 8
    assert (evaltester.results_path / "x-good" / "run_2.jsonl").exists()
    assert (evaltester.results_path / "x-good" / "summary.json").exists()
    (gate,) = evaltester.summary().gates
    assert [child.outcome for child in gate.children] == [Outcome.PASS, Outcome.FAIL, Outcome.FAIL]
    keys = {result.stage_keys.target for result in evaltester.directory.results("x/good") if result.stage_keys}
    assert len(keys) == 16


def test_turns_are_graded_alone_on_the_state_of_that_turn(evaltester: EvalTester) -> None:
    rows = [
        {
            "id": "each",
            "input": ["one", {"new_conversation": True}, "two"],
            "ground_truth": ["one", "three"],
        },
        {
            "id": "last",
            "input": ["one", {"user": "two", "ground_truth": "two", "graders": ["memory"]}],
            "ground_truth": "two",
        },
    ]
    graders = {
        "memory": {
            "kind": "tool",
            "function": "exact_match",
            "extractor": "memory_block",
            "extractor_config": {"block_label": "heard"},
        },
        "answer": {"kind": "tool", "function": "contains"},
    }
    evaltester.write_suite(rows, graders=graders)
    assert evaltester.run().status == 0
    each = evaltester.results()["each"]
    assert each.grades["memory"].score == 0.5
    assert [turn.score for turn in each.grades["memory"].per_turn_grades or ()] == [1.0, 0.0]
    assert [turn.submission for turn in each.grades["memory"].per_turn_grades or ()] == ["one", "two"]
    assert each.conversations == [1]
    last = evaltester.results()["last"]
    assert [turn.turn for turn in last.grades["memory"].per_turn_grades or ()] == [1]
    assert last.grades["answer"].per_turn_grades is None
    assert last.grades["answer"].score == 1.0


def test_setup_runs_first_and_its_failure_is_one_line(evaltester: EvalTester) -> None:
    evaltester.write(
        "scripts.py",
        """
        from pathlib import Path
        from stateval import suite_setup

        here = Path(__file__).parent

        @suite_setup
        def prepare(client, model_handle):
            (here / "prepared").write_text(f"{client} {model_handle}", encoding="utf-8")

        @suite_setup
        async def fail():
            raise RuntimeError("the well is dry")

        def clean():
            (here / "cleaned").touch()
        """,
    )
    evaltester.write_suite(setup_script="scripts.py:prepare", teardown_script="scripts.py:clean")
    assert evaltester.run().status == 0
    assert (evaltester.path / "prepared").read_text(encoding="utf-8") == "None None"
    assert (evaltester.path / "cleaned").exists()
    evaltester.write_suite(setup_script="scripts.py:fail")
    finished = evaltester.run()
    assert finished.status == 2
    assert "the well is dry" in finished.stderr
    evaltester.write_suite()
    assert evaltester.run().status == 0


def test_displays(evaltester: EvalTester) -> None:
    evaltester.write_suite(ROWS, gate=GATE)
    events = [json.loads(line) for line in evaltester.run("suite.yaml", "--display", "json").stdout.splitlines()]
    assert [event["event"] for event in events[:2]] == ["run_started", "sample_started"]
    assert sum(event["event"] == "sample_finished" for event in events) == 8
    quiet = evaltester.run("suite.yaml", "-q")
    assert quiet.stdout.splitlines() == ["pass: avg_score(quality) >= 0.7"]
    assert "Ledger" in evaltester.run("suite.yaml", "--display", "none").stdout


def test_results_are_not_kept_when_nobody_wants_them(evaltester: EvalTester) -> None:
    evaltester.write_suite(ROWS)
    before = set(evaltester.path.iterdir())
    assert evaltester.command("run", "suite.yaml", "--no-save").status == 0
    assert set(evaltester.path.iterdir()) == before
    assert evaltester.command("run", "suite.yaml").status == 0
    assert len(list((evaltester.path / ".stateval" / "runs").iterdir())) == 1


def test_what_an_agent_wrote_does_not_reach_the_screen_as_it_is(evaltester: EvalTester) -> None:
    agent = "def make(sample):\n    return lambda message: '\\x1b[2J[red]boo[/red]\\u202e'\n"
    evaltester.write_suite(ROWS[:1], agent=agent)
    finished = evaltester.run()
    assert "\x1b" not in finished.output
    assert "\u202e" not in finished.output
    assert "[red]boo[/red]" in finished.output


def test_secrets_are_scrubbed_everywhere(evaltester: EvalTester) -> None:
    secret = "sk-a-very-secret-value"
    agent = """
        import os

        def make(sample):
            if sample.id == "s1":
                raise RuntimeError(os.environ["SOME_API_KEY"])
            return lambda message: os.environ["SOME_API_KEY"]
    """
    evaltester.write_suite(ROWS[:2], agent=agent)
    finished = evaltester.run(env={"SOME_API_KEY": secret})
    assert secret not in finished.output
    for path in evaltester.results_path.rglob("*"):
        assert not path.is_file() or secret not in path.read_text(encoding="utf-8"), path
    debugged = evaltester.run("suite.yaml", "--debug", "--set", f"nonsense={secret}", env={"SOME_API_KEY": secret})
    assert secret not in debugged.output


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_fault_74_a_signal_ends_the_run_cleanly(evaltester: EvalTester, number: int, times: int) -> None:
    rows = [{"id": n, "input": "x", "ground_truth": "x"} for n in range(400)]
    target = {"kind": "python", "factory": "agent.py:slow"}
    evaltester.write_suite(rows, agent=AGENTS, target=target, max_concurrent=4, gate=GATE)
    process = evaltester.start("run", "suite.yaml", "--output", evaltester.results_path, "--display", "json")
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "sample_finished":
            break
    for _ in range(times):
        process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    results = evaltester.results()
    assert 0 < len(results) < 400
    if times == 1:
        assert evaltester.summary().finished is False
        assert evaltester.summary().gates[0].outcome is Outcome.INCONCLUSIVE
        assert evaltester.directory.record.stopped_because == f"interrupted by {signal.Signals(number).name}"
    again = evaltester.run()
    assert again.status == 0
    assert f"resuming: {len(results)} of 400 done" in again.stdout
    assert sorted(map(int, evaltester.results())) == list(range(400))


def test_fault_74_a_killed_run_leaves_whole_lines(evaltester: EvalTester) -> None:
    rows = [{"id": n, "input": "x" * 500, "ground_truth": "x"} for n in range(20000)]
    evaltester.write_suite(rows)
    process = evaltester.start("run", "suite.yaml", "--output", evaltester.results_path, "--display", "none")
    journal = evaltester.results_path / "default.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size > 100_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=30)
    results = list(evaltester.directory.results("default"))
    assert len(results) > 50
    assert len({result.sample_id for result in results}) == len(results)
    assert [o.sample_id for o in evaltester.directory.observations("default")] == [str(r.sample_id) for r in results]


def test_fault_76_a_second_run_keeps_the_first(evaltester: EvalTester) -> None:
    evaltester.write_suite(ROWS)
    assert evaltester.run().status == 0
    first = (evaltester.results_path / "default.jsonl").read_bytes()
    assert evaltester.run().status == 0
    (kept,) = (evaltester.results_path / "history").iterdir()
    assert (kept / "default.jsonl").read_bytes() == first
    assert len(evaltester.results()) == 8


def test_a_full_disk_stops_the_run_and_loses_nothing(evaltester: EvalTester, tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(mount)]
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root on Linux")
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        rows = [{"id": n, "input": "x" * 2000, "ground_truth": "x"} for n in range(60)]
        evaltester.write_suite(rows)
        evaltester.results_path = mount / "results"
        finished = evaltester.run()
        assert finished.status == 4, finished.output
        assert "disk is full" in finished.output
        assert "Traceback" not in finished.output
        assert len(evaltester.results()) > 5
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.mark.parametrize("slots", [1, 7, 10**6])
def test_fault_67_any_number_of_slots(evaltester: EvalTester, slots: int) -> None:
    evaltester.write_suite(ROWS, max_concurrent=slots)
    assert evaltester.run().status == 0
    assert len(evaltester.results()) == 8


def test_fault_71_graders_do_not_multiply_concurrency(evaltester: EvalTester) -> None:
    agent = """
        import threading, time

        lock = threading.Lock()
        running = 0
        most = 0

        def count(message):
            global running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.02)
            with lock:
                running -= 1
            return str(most)

        def make(sample):
            return count
    """
    rows = [{"id": n, "input": "x", "ground_truth": "x"} for n in range(60)]
    graders = {f"g{n}": {"kind": "tool", "function": "contains"} for n in range(8)}
    evaltester.write_suite(rows, agent=agent, graders=graders, max_concurrent=10)
    assert evaltester.run().status == 0
    most = max(int(result.submissions["g0"]) for result in evaltester.results().values())
    assert most == 10


def test_fault_20_paths_are_relative_to_the_suite(evaltester: EvalTester, tmp_path: Path) -> None:
    evaltester.write_suite(ROWS)
    elsewhere = tmp_path / "else" / "where"
    elsewhere.mkdir(parents=True)
    assert evaltester.command("run", "../../suite.yaml", "--no-save", cwd=elsewhere).status == 0


def test_fault_8_and_10_text_survives_any_locale(evaltester: EvalTester) -> None:
    text = "naïve — 東京 a\x00b \u2028"
    evaltester.write_suite([{"id": text, "input": text, "ground_truth": text}])
    finished = evaltester.run(env={"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": None})
    assert finished.status == 0, finished.output
    assert evaltester.results()[text].submissions["quality"] == text
    assert evaltester.results()[text].grades["quality"].score == 1.0


def test_fault_85_one_message_of_20_megabytes(evaltester: EvalTester) -> None:
    agent = "def make(sample):\n    return lambda message: 'red ' * 5_000_000\n"
    evaltester.write_suite(ROWS[1:3], agent=agent)
    finished = evaltester.run()
    assert finished.status == 0, finished.output[:2000]
    assert len(finished.output) < 10_000
    assert len(evaltester.results()["s1"].submissions["quality"]) == 20_000_000


HOSTILE = """
    import asyncio, sys, threading, time, os, tempfile

    async def plain(message):
        return message

    async def exits(message):
        sys.exit(0)

    async def cancels(message):
        task = asyncio.create_task(asyncio.sleep(100))
        task.cancel()
        await task

    async def blocks(message):
        time.sleep(1.5)
        return message

    async def swallows(message):
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return message

    class Odd(BaseException):
        pass

    def odd(message):
        raise Odd("very")

    class Lingers:
        def send(self, message):
            return message

        def close(self):
            time.sleep(3600)

    class Spends:
        def __init__(self, usage):
            self._usage = usage

        def send(self, message):
            return message

        def usage(self):
            return self._usage

    def moves(message):
        os.chdir(tempfile.mkdtemp())
        return message

    AGENTS = {"exits": exits, "cancels": cancels, "blocks": blocks, "swallows": swallows, "odd": odd, "moves": moves}

    def make(sample):
        name = str(sample.id)
        if name == "lingers":
            return Lingers()
        if name == "huge":
            return Spends({"prompt_tokens": 10**400})
        if name == "dear":
            return Spends({"prompt_tokens": 1, "cost": 1e308})
        if name == "unspeakable":
            return lambda message: {"role": "assistant", "content": [{"type": "image", "n": 10**5000}]}
        return AGENTS.get(name, plain)

    async def make_async(sample):
        return make(sample)
"""


@pytest.mark.parametrize("factory", ["make", "make_async"])
def test_nothing_that_an_agent_does_ends_the_run_or_passes_for_an_answer(evaltester: EvalTester, factory: str) -> None:
    wrong = ["exits", "cancels", "blocks", "swallows", "odd", "huge", "dear"]
    rows = [
        {"id": name, "input": "hi", "ground_truth": "hi"}
        for name in [*wrong, "moves", "unspeakable", "lingers", "last"]
    ]
    target = {"kind": "python", "factory": f"agent.py:{factory}", "timeout": 1}
    evaltester.write_suite(rows, agent=HOSTILE, target=target, max_concurrent=1)
    finished = evaltester.command("run", "suite.yaml", "--output", "results", timeout=100)
    assert finished.status == 0, finished.output
    assert "Traceback" not in finished.output
    results = evaltester.results()
    assert len(results) == len(rows)
    for name in wrong:
        error = results[name].error
        assert error is not None, name
        assert error.category is ErrorCategory.TARGET, name
    assert "longer than 1 s" in results["blocks"].error.message  # type: ignore[union-attr]
    assert "longer than 1 s" in results["swallows"].error.message  # type: ignore[union-attr]
    assert results["last"].grades["quality"].score == 1.0


def test_a_run_can_always_be_ended(evaltester: EvalTester) -> None:
    agent = """
        def make(sample):
            async def send(message):
                while True:
                    pass
            return send
    """
    evaltester.write_suite(ROWS, agent=agent)
    process = evaltester.start("run", "suite.yaml", "--output", evaltester.results_path, "--display", "json")
    assert process.stdout is not None
    assert process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 130


def test_results_that_vanish_are_missed(evaltester: EvalTester) -> None:
    agent = """
        import shutil

        def make(sample):
            if sample.id == "s5":
                shutil.rmtree("results")
            return str
    """
    evaltester.write_suite(ROWS, agent=agent, max_concurrent=1)
    finished = evaltester.run()
    assert finished.status == 4, finished.output
    assert "8 results were written" in finished.output


def test_user_files_in_a_results_directory_stay(evaltester: EvalTester) -> None:
    evaltester.write_suite(ROWS)
    assert evaltester.run().status == 0
    notes = evaltester.write("results/notes.txt", "mine")
    assert evaltester.run().status == 0
    assert notes.exists()
    foreign = evaltester.write("foreign/summary.json", "{}")
    assert evaltester.command("run", "suite.yaml", "-o", "foreign").status == 2
    assert foreign.exists()
    assert evaltester.command("run", "suite.yaml", "-o", ".").status == 2
    assert (evaltester.path / "suite.yaml").exists()


def test_usage_under_other_names_is_read_and_unknown_usage_is_not_nothing(evaltester: EvalTester) -> None:
    agent = """
        class Agent:
            def __init__(self, usage):
                self._usage = usage

            def send(self, message):
                return message

            def usage(self):
                return self._usage

        def make(sample):
            return Agent({"input_tokens": 5, "output_tokens": 2} if sample.id == "s1" else {"words": 3})
    """
    gate = {"metric_key": "tokens", "op": "lte", "value": 100}
    evaltester.write_suite(ROWS[1:3], agent=agent, gate=gate)
    assert evaltester.run().status == 3
    results = evaltester.results()
    assert results["s1"].usage is not None
    assert results["s1"].usage.total_tokens == 7
    assert results["s2"].usage is None
    assert results["s2"].agent_usage == [{"words": 3}]


def test_a_truth_that_is_another_metrics_is_missed_before_anything_runs(evaltester: EvalTester) -> None:
    turns = ["My city is Rome.", {"user": "What is my city?", "ground_truth": "Rome", "graders": ["answer"]}]
    graders = {key: {"kind": "tool", "function": "contains"} for key in ("answer", "other")}
    evaltester.write_suite([{"id": "a", "input": turns}], graders=graders)
    for command in ("validate", "run"):
        finished = evaltester.command(command, "suite.yaml")
        assert finished.status == 2, finished.output
        assert "samples.jsonl:1" in finished.output
        assert "metric `other`" in finished.output


def test_threads_of_user_code_do_not_keep_the_command_alive(evaltester: EvalTester) -> None:
    agent = """
        import threading, time

        threading.Thread(target=lambda: time.sleep(3600)).start()

        def make(sample):
            return str
    """
    evaltester.write_suite(ROWS, agent=agent, gate=GATE)
    finished = evaltester.command("run", "suite.yaml", "--no-save", timeout=60)
    assert finished.status == 0, finished.output
    assert "PASS" in finished.stdout
