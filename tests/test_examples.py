"""The examples, run as a reader runs them: each passes its gate, its scores differ, and a worse agent fails."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from stateval.errors import ExitStatus

EXAMPLES = Path(__file__).parent.parent / "examples"
NEEDS_A_MODEL = {"fruit-preferences"}
SUITES = sorted(path for path in EXAMPLES.glob("*/*.yaml") if path.parent.name not in NEEDS_A_MODEL)

WORSE = {
    "python-agent": ("self.notes[thing.lower()] = value", "self.notes.setdefault(thing.lower(), value)"),
    "multi-grader-gate": ("for s in self.statements]", "for s in self.statements[:1]]"),
    "custom-grader-and-extractor": ("json.dumps(self.profile, indent=2)", "str(self.profile)"),
    "github-actions": ("self.orders[number] = state", "self.orders.setdefault(number, state)"),
    "reward-composition": ("if thing in self.facts else", "if False else"),
    "several-blocks": ("if not words & set(task.lower().split())", "if True"),
}
"""For each example one change of its agent that a user of that agent would complain of."""


def name_of(suite: Path) -> str:
    return f"{suite.parent.name}/{suite.stem}"


@pytest.fixture
def example(request, tmp_path) -> Path:
    """A copy of the suite's folder, so that nothing is written beside the examples; the path of the suite in it."""
    folder = tmp_path / request.param.parent.name
    shutil.copytree(request.param.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / request.param.name


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_every_sample_is_graded_and_the_gate_passes(evaltester, example):
    finished = evaltester.run(example)
    assert finished.status == ExitStatus.PASSED, finished.output
    rows = [json.loads(line) for line in (example.parent / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]
    results = evaltester.results()
    assert set(results) == {row["id"] for row in rows}
    assert [result.error for result in results.values() if result.error] == []


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_every_metric_tells_samples_apart(evaltester, example):
    evaltester.run(example)
    results = evaltester.results().values()
    for metric in next(iter(results)).grades:
        assert len({result.grades[metric].score for result in results}) > 1, f"{metric} is the same for all samples"


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_a_worse_agent_fails_the_gate(evaltester, example):
    agent = example.parent / "agent.py"
    good, worse = WORSE[example.parent.name]
    source = agent.read_text(encoding="utf-8")
    assert source.count(good) == 1
    agent.write_text(source.replace(good, worse), encoding="utf-8")
    finished = evaltester.run(example)
    assert finished.status == ExitStatus.GATE_FAILED, finished.output


@pytest.mark.parametrize("example", SUITES, ids=name_of, indirect=True)
def test_validate_finds_no_fault(evaltester, example):
    finished = evaltester.command("validate", example)
    assert finished.status == ExitStatus.PASSED, finished.output


@pytest.mark.parametrize("folder", sorted(path for path in EXAMPLES.iterdir() if path.is_dir()), ids=lambda p: p.name)
def test_each_example_says_what_it_shows_and_how_to_run_it(folder):
    page = (folder / "README.md").read_text(encoding="utf-8")
    suites = sorted(folder.glob("*.yaml"))
    assert suites
    for suite in suites:
        assert f"stateval run examples/{folder.name}/{suite.name}" in page
