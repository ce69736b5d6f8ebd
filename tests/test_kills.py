"""A run that is killed before any change that it makes to its directory is taken up by the same command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stateval.results.directory import ResultsDirectory
from tests.support.evaltester import EvalTester
from tests.test_resume import GRADERS, essences, rows, stopped_run, write

KILLED_AT = Path(__file__).parent / "support" / "killed_at.py"
FAIR = {"fair": {"kind": "tool", "function": "graders.py:fair"}}
RUN = ("run", "suite.yaml", "--output", "results", "--display", "none")


def killed(tester: EvalTester, number: int, *arguments: str) -> bool:
    """Whether the command was killed before so many changes; it ends well where it makes fewer."""
    command = [sys.executable, str(KILLED_AT), str(number), *RUN, *arguments]
    ended = subprocess.run(
        command, cwd=tester.path, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True
    )
    assert ended.returncode in (-signal.SIGKILL, 0), ended.stderr
    return ended.returncode != 0


def first_start(tester: EvalTester) -> tuple[str, ...]:
    return ("--num-runs", "2")


def again_in_the_same_directory(tester: EvalTester) -> tuple[str, ...]:
    assert tester.command(*RUN).status == 0
    return ()


def more_runs(tester: EvalTester) -> tuple[str, ...]:
    stopped_run(tester, 4)
    return ("--num-runs", "3")


def fewer_runs(tester: EvalTester) -> tuple[str, ...]:
    stopped_run(tester, 14, "--num-runs", "3")
    return ()


def another_grader_and_other_rows(tester: EvalTester) -> tuple[str, ...]:
    stopped_run(tester, 6)
    tester.write("graders.py", GRADERS.replace("0.25", "0.5"))
    tester.write_rows(rows(12, first=2))
    return ()


def retried(tester: EvalTester) -> tuple[str, ...]:
    tester.write("broken", "")
    assert tester.command(*RUN).status == 0
    (tester.path / "broken").unlink()
    return ("--retry-errors",)


@pytest.mark.parametrize("number", [1, 3, 6, 10])
@pytest.mark.parametrize(
    "before",
    [first_start, again_in_the_same_directory, more_runs, fewer_runs, another_grader_and_other_rows, retried],
)
def test_fault_74_killed_before_any_change(evaltester: EvalTester, before: Any, number: int) -> None:
    write(evaltester, 12, graders=FAIR)
    arguments = before(evaltester)
    was_killed = killed(evaltester, number, *arguments)
    if was_killed:
        finished = evaltester.command(*RUN, *arguments)
        assert finished.status == 0, finished.output
    undisturbed = evaltester.path / "undisturbed"
    assert evaltester.command(*RUN[:2], "--output", undisturbed, *arguments[:2], "--display", "none").status in (0, 2)
    if arguments[:1] == ("--retry-errors",):
        assert evaltester.command(*RUN[:2], "--output", undisturbed, "--display", "none").status == 0
    assert essences(evaltester.directory) == essences(ResultsDirectory.open(undisturbed))
    assert (evaltester.results_path / "suite.json").exists()
    assert evaltester.directory.record.finished is not None
    for label in evaltester.directory.labels:
        for run in evaltester.directory.runs():
            journal = evaltester.directory.journal_path(label, run)
            assert journal.read_bytes().count(b"\n") == evaltester.directory.planned


def test_history_keeps_all_that_a_kill_interrupted(evaltester: EvalTester) -> None:
    write(evaltester, 12, graders=FAIR)
    assert evaltester.command(*RUN).status == 0
    for number in range(1, 8):
        killed(evaltester, number)
    assert evaltester.command(*RUN).status == 0
    for place in (evaltester.results_path / "history").iterdir():
        earlier = ResultsDirectory.open(place)
        assert earlier.record.finished is not None
        assert len(list(earlier.results("default"))) == 12
        assert (place / "suite.json").exists()
