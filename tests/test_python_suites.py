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


OWN_FUNCTIONS = """
from __future__ import annotations

import typing
from dataclasses import dataclass

from letta_client.types import AgentState
from letta_client.types.agents import AssistantMessage
from letta_evals import AgentEvalTarget, EvalSuite, extractor, grader, graders, reward_composer


@dataclass
class Fruit:
    name: str


@dataclass
class Basket:
    fruits: list[Fruit]


class Agent:
    def send(self, message):
        return message

    def state(self):
        return {"heard": "red"}


@extractor
def heard(trajectory, config, agent_state):
    assert isinstance(trajectory[0][0], AssistantMessage) and isinstance(agent_state, AgentState)
    assert typing.get_type_hints(Basket) == {"fruits": list[Fruit]}
    return agent_state.blocks[0].value


class Mean:
    def __call__(self, ctx):
        assert isinstance(ctx.trajectory[0][0], AssistantMessage) and isinstance(ctx.agent_state, AgentState)
        return sum(grade.score for grade in ctx.grades.values()) / len(ctx.grades)


suite = EvalSuite(
    dataset=[{"input": "red", "ground_truth": "red"}],
    target=AgentEvalTarget(agent_factory=lambda sample: Agent()),
    extractor=heard,
    graders={"a": graders.contains, "b": graders.exact_match()},
    reward=Mean(),
    output="results",
)
"""


def test_functions_of_the_file_are_handed_the_classes_they_were_written_for(evaltester: EvalTester) -> None:
    evaltester.write("run_evals.py", OWN_FUNCTIONS)
    finished = evaltester.command("run", "run_evals.py")
    assert finished.status == ExitStatus.PASSED, finished.output
    (result,) = evaltester.results().values()
    assert result.error is None
    assert result.submissions == {"a": "red", "b": "red"}
    assert result.reward.score == 1.0


def test_functions_of_other_files_are_handed_the_records_of_stateval(evaltester: EvalTester) -> None:
    evaltester.write(
        "run_evals.py",
        """
        from stateval import EvalSuite, extractor

        @extractor
        def kind(trajectory, config):
            return type(trajectory[0][0]).__module__

        rows = [{"input": "red", "ground_truth": "stateval.records"}]
        target = lambda sample: lambda message: message
        EvalSuite(dataset=rows, target=target, grader="contains", extractor=kind, output="results").run()
        """,
    )
    finished = evaltester.command("run", "run_evals.py")
    assert finished.status == ExitStatus.PASSED, finished.output
    assert evaltester.results()["0"].reward.score == 1.0


def test_nothing_is_printed_of_a_suite_that_is_run_quietly(evaltester: EvalTester) -> None:
    evaltester.write("helper.py", HELPER)
    evaltester.write("run_evals.py", GUIDE.replace("LEAST", "0.5").partition("if __name__")[0])
    assert "0.5" in evaltester.command("run", "run_evals.py").stdout
    finished = evaltester.command("run", "run_evals.py", "--quiet")
    assert (finished.status, finished.stdout) == (ExitStatus.PASSED, "")


def test_validate_says_that_a_python_file_is_checked_where_it_runs(evaltester: EvalTester) -> None:
    evaltester.write("run_evals.py", "raise RuntimeError\n")
    finished = evaltester.command("validate", "run_evals.py")
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "`stateval run run_evals.py`" in finished.stderr


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
