"""Python files as suites: `stateval run suite.py`."""

from __future__ import annotations

import pytest

from stateval.errors import ExitStatus
from tests.support.evaltester import EvalTester

GUIDE = """
from letta_evals import AgentEvalTarget, EvalGate, EvalSuite, extractors, graders
from helper import make

suite = EvalSuite(
    dataset=[{"input": "red", "ground_truth": "red"}, {"input": "blue", "ground_truth": "green"}],
    target=AgentEvalTarget(agent_factory=make),
    extractor=extractors.last_assistant(),
    grader=graders.contains(),
    gate=EvalGate(min_score=LEAST),
    output="results",
)

if __name__ == "__main__":
    results = suite.run()
    print("mean", results.average_score)
"""
HELPER = """
from letta_evals.models import Sample


def make(sample: Sample):
    return lambda message: message
"""


@pytest.mark.parametrize(
    ("least", "status"), [(0.5, ExitStatus.PASSED), (0.9, ExitStatus.GATE_FAILED)], ids=["passes", "fails"]
)
def test_a_suite_of_the_guides_runs_as_it_stands(evaltester: EvalTester, least: float, status: ExitStatus) -> None:
    evaltester.write("helper.py", HELPER)
    evaltester.write("run_evals.py", GUIDE.replace("LEAST", str(least)))
    finished = evaltester.command("run", "run_evals.py")
    assert finished.status == status, finished.output
    assert "Traceback" not in finished.output
    assert ("mean 0.5" in finished.stdout) == (status is ExitStatus.PASSED)
    assert len(evaltester.results()) == 2


def test_a_file_that_makes_a_suite_and_does_not_run_it_has_it_run(evaltester: EvalTester) -> None:
    evaltester.write("helper.py", HELPER)
    evaltester.write("run_evals.py", GUIDE.replace("LEAST", "0.9").partition("if __name__")[0])
    finished = evaltester.command("run", "run_evals.py")
    assert finished.status == ExitStatus.GATE_FAILED, finished.output
    assert len(evaltester.results()) == 2


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\n", "runs no suite"),
        ("import nothing_of_this_name\n", "nothing_of_this_name"),
        ("def f(:\n", "SyntaxError"),
        ("raise RuntimeError('no luck')\n", "no luck"),
        ("from letta_evals import Nothing\n", "no `Nothing`"),
        ("from stateval import EvalSuite\nEvalSuite(dataset='none.csv', target=len, grader='contains')\n", "none.csv"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_in_a_line(evaltester: EvalTester, source: str, words: str) -> None:
    evaltester.write("run_evals.py", source)
    finished = evaltester.command("run", "run_evals.py")
    assert finished.status == ExitStatus.INPUT_WRONG, finished.output
    assert words in finished.stderr
    assert "Traceback" not in finished.output


def test_options_of_suite_files_are_refused(evaltester: EvalTester) -> None:
    evaltester.write("run_evals.py", "x = 1\n")
    for options in (["--num-runs", "2"], ["--output", "there"], ["--set", "name=x"], ["--resume"], ["--fresh"]):
        finished = evaltester.command("run", "run_evals.py", *options)
        assert finished.status == ExitStatus.INPUT_WRONG
        assert f"`{options[0]}" in finished.stderr


def test_an_exit_status_of_the_file_is_that_of_the_command(evaltester: EvalTester) -> None:
    evaltester.write("run_evals.py", "import sys\nsys.exit(7)\n")
    assert evaltester.command("run", "run_evals.py").status == 7
