"""What the documentation shows is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter

from stateval.errors import ExitStatus
from stateval.gates.spec import GateField
from stateval.suite.spec import SuiteSpec

GRADER = {"kind": "tool", "function": "contains"}
DOCS = Path(__file__).parent.parent / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_getting_started_works_as_written(evaltester):
    for name, language in [("agent.py", "python"), ("dataset.jsonl", "json"), ("suite.yaml", "yaml")]:
        (content,) = blocks("getting-started.md", language)
        evaltester.write(name, content)
    assert evaltester.command("validate", "suite.yaml").status == ExitStatus.PASSED
    finished = evaltester.run()
    assert finished.status == ExitStatus.PASSED, finished.output
    scores = {key: result.grades["answer"].score for key, result in evaltester.results().items()}
    assert scores == {"apples": 1.0, "two-facts": 0.0}


@pytest.mark.parametrize("block", blocks("gates.md", "yaml"))
def test_every_gate_of_the_documentation_is_one(block):
    TypeAdapter(GateField).validate_python(yaml.safe_load(block)["gate"])


DATASETS = [
    pytest.param(document["dataset"], id=f"{page.name}-{number}")
    for page in [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
    for number, block in enumerate(blocks(str(page), "yaml"))
    for document in yaml.safe_load_all(block)
    if "dataset" in document
]


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_dataset_of_the_documentation_is_one(dataset):
    target = {"kind": "python", "factory": "agent.py:make_agent"}
    SuiteSpec.model_validate({"name": "a", "dataset": dataset, "target": target, "grader": GRADER})


def test_the_blocks_with_datasets_are_found():
    assert len(DATASETS) >= 10


def test_own_code_of_the_documentation_loads_and_grades(evaltester):
    factory, grader, extractor, reward, setup = blocks("custom-code.md", "python")
    grader_entry, reward_entry = blocks("custom-code.md", "yaml")
    agent = "class MyAgent:\n    def __init__(self, user):\n        self.user = user\n\n"
    agent += "    def send(self, message):\n        return f'Thank you, {self.user}.'\n\n\n"
    suite = evaltester.write_suite(
        [{"id": "a", "input": ["Hi", "Bye"], "ground_truth": "2", "extra_vars": {"user": "Ada"}}],
        agent=agent + factory,
        target={"kind": "python", "factory": "agent.py:make_agent"},
        graders={
            "turns": {"kind": "tool", "function": "exact_match", "extractor": "extractors.py:number_of_turns"},
            "answer": {"kind": "tool", "function": "contains"},
            **yaml.safe_load(grader_entry)["graders"],
        },
        setup_script="setup.py:choose_database",
        **yaml.safe_load(reward_entry),
    )
    for name, content in [("graders.py", grader), ("extractors.py", extractor), ("reward.py", reward)]:
        evaltester.write(name, content)
    evaltester.write("setup.py", setup)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    result = evaltester.results()["a"]
    assert {key: grade.score for key, grade in result.grades.items()} == {"turns": 1.0, "answer": 0.0, "tone": 1.0}
    assert result.reward.metadata == {"length": len("Thank you, Ada.")}


def test_python_api_example_runs_as_written(evaltester):
    (script,) = blocks("api.md", "python")
    path = evaltester.write("fruit.py", script)
    shown = subprocess.run(
        [sys.executable, path], capture_output=True, encoding="utf-8", cwd=evaltester.path, check=True
    )
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("0.66")
    assert {line.split()[0]: line.split()[1] for line in lines[1:]} == {
        "plain": "1.0",
        "corrected": "1.0",
        "polite": "0.0",
    }
    assert (evaltester.path / "results.csv").read_text(encoding="utf-8").count("\n") == 4


def test_readme_shows_the_suite_of_the_quick_start():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    suite = (DOCS.parent / "examples" / "fruit-preferences" / "suite.yaml").read_text(encoding="utf-8")
    assert f"```yaml\n{suite}```" in readme


def test_readme_has_exactly_two_lines_to_set_up():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^    (make \w+)", readme, re.MULTILINE) == ["make quickstart", "make test"]
