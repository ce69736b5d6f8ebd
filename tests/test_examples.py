"""The examples, run as a reader runs them: each passes its gate, its scores differ, and a worse agent fails."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from stateval.errors import ExitStatus
from tests.support.judge_prompts import Prompt
from tests.support.scripted_judge import judge_environment, judge_server

EXAMPLES = Path(__file__).parent.parent / "examples"
NEEDS_A_MODEL = {"fruit-preferences", "letta-factory", "letta-judge", "letta-memory-block"}
SUITES = sorted(path for path in EXAMPLES.glob("*/*.yaml") if path.parent.name not in NEEDS_A_MODEL)

WORSE = {
    "python-agent": ("self.notes[thing.lower()] = value", "self.notes.setdefault(thing.lower(), value)"),
    "multi-grader-gate": ("for s in self.statements]", "for s in self.statements[:1]]"),
    "custom-grader-and-extractor": ("json.dumps(self.profile, indent=2)", "str(self.profile)"),
    "github-actions": ("self.orders[number] = state", "self.orders.setdefault(number, state)"),
    "reward-composition": ("if thing in self.facts else", "if False else"),
    "several-blocks": ("if not words & set(task.lower().split())", "if True"),
    "rubric-judge": ("if known else", "if False else"),
    "per-sample-rubric": ('if "broken" in text or "late" in text', "if False"),
    "multi-model-rubric": ("sentences = 2", "sentences = 0"),
}
"""For each example one change of its agent that a user of that agent would complain of."""


GOOD_LETTERS = {
    "The cup that you sent is broken.": "sorry",
    "My parcel is late again!": "sorry",
    "When can I come by?": "open from 9",
    "Your tea is the best in town.": "Thank you",
}


def opinion(shown: Prompt, name: str) -> float:
    """What a strict judge would say of the answers in the examples, in the same words every time."""
    submission, asked = shown.data["submission"], shown.data["input"]
    if name:
        return 0.9 if submission.count("\n") > 1 else 0.1
    if asked in GOOD_LETTERS:
        return 1.0 if GOOD_LETTERS[asked] in submission else 0.0
    if "Sum up: " in asked:
        return 5.0 if len(set(submission.split()) & set(shown.data["ground_truth"].split())) > 4 else 1.0
    return 1.0 if shown.data.get("ground_truth", "?") in submission else 0.0


@pytest.fixture
def environment():
    """A judge at an endpoint on this machine, in the place of OpenAI's."""
    with judge_server(opinion) as server:
        yield judge_environment(server)


def name_of(suite: Path) -> str:
    return f"{suite.parent.name}/{suite.stem}"


@pytest.fixture
def example(request, tmp_path) -> Path:
    """A copy of the suite's folder, so that nothing is written beside the examples; the path of the suite in it."""
    folder = tmp_path / request.param.parent.name
    shutil.copytree(request.param.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / request.param.name


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_every_sample_is_graded_and_the_gate_passes(evaltester, example, environment):
    finished = evaltester.run(example, env=environment)
    assert finished.status == ExitStatus.PASSED, finished.output
    rows = [json.loads(line) for line in (example.parent / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]
    results = evaltester.results()
    assert set(results) == {row["id"] for row in rows}
    assert [result.error for result in results.values() if result.error] == []


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_every_metric_tells_samples_apart(evaltester, example, environment):
    evaltester.run(example, env=environment)
    results = evaltester.results().values()
    for metric in next(iter(results)).grades:
        assert len({result.grades[metric].score for result in results}) > 1, f"{metric} is the same for all samples"


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_a_worse_agent_fails_the_gate(evaltester, example, environment):
    agent = example.parent / "agent.py"
    good, worse = WORSE[example.parent.name]
    source = agent.read_text(encoding="utf-8")
    assert source.count(good) == 1
    agent.write_text(source.replace(good, worse), encoding="utf-8")
    finished = evaltester.run(example, env=environment)
    assert finished.status == ExitStatus.GATE_FAILED, finished.output


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_validate_finds_no_fault(evaltester, example, environment):
    finished = evaltester.command("validate", example, env=environment)
    assert finished.status == ExitStatus.PASSED, finished.output


@pytest.mark.parametrize("folder", sorted(path for path in EXAMPLES.iterdir() if path.is_dir()), ids=lambda p: p.name)
def test_each_example_says_what_it_shows_and_how_to_run_it(folder):
    page = (folder / "README.md").read_text(encoding="utf-8")
    suites = sorted(folder.glob("*.yaml"))
    assert suites
    for suite in suites:
        assert f"stateval run examples/{folder.name}/{suite.name}" in page


WITH_JUDGES = {"multi-grader-gate", "multi-model-rubric", "per-sample-rubric", "rubric-judge"}


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_only_the_examples_with_judges_need_a_key(evaltester, example):
    finished = evaltester.run(example, env={"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None})
    needs_one = example.parent.name in WITH_JUDGES
    assert finished.status == (ExitStatus.INPUT_WRONG if needs_one else ExitStatus.PASSED), finished.output
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if f"[{example.parent.name}]" in line]
    assert ("(needs a key)" in line) == needs_one


def test_the_labels_are_of_the_drawings_that_are_asked_for():
    folder = EXAMPLES / "rubric-judge"
    asked = [json.loads(line)["id"] for line in (folder / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        labels = list(csv.DictReader(file))
    assert [row["id"] for row in labels] == asked
    assert min(sum(row["label"] == label for row in labels) for label in "01") >= 12
    assert all(row["submission"].strip() for row in labels)
