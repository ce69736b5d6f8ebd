"""The workflows of the examples: valid, least privileged, and their steps do what they say."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from stateval.cli.main import app
from stateval.errors import ExitStatus
from stateval.suite.yaml_text import read_yaml

EXAMPLE = Path(__file__).parent.parent / "examples" / "github-actions"
WORKFLOWS = sorted(EXAMPLE.glob("*.yml"))
SUITE_IN = {"stateval-yaml.yml": "suite.yaml", "stateval-python.yml": "evals.py"}

GH = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in *--jq*) cat "$FOUND" ;; esac
"""


@dataclass
class Workflow:
    """A workflow, and a checkout in which its steps run as the runner would run them."""

    document: dict[str, Any]
    path: Path

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        """The steps that have a name."""
        (job,) = self.document["jobs"].values()
        return {step["name"]: step for step in job["steps"] if "name" in step}

    @property
    def environment(self) -> dict[str, str]:
        """What the runner sets, and the workflow; files stand for `gh` and for what it answers."""
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.path),
            "GITHUB_REPOSITORY": "someone/project",
            "GITHUB_STEP_SUMMARY": str(self.path / "summary.md"),
            "GITHUB_OUTPUT": str(self.path / "output"),
            "CALLS": str(self.path / "calls"),
            "FOUND": str(self.path / "found"),
        }
        path = os.pathsep.join([str(self.path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**os.environ, **runner, **self.document["env"], "PATH": path}

    def do(self, name: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs one step, as `bash -e` like the runner."""
        script = self.steps[name]["run"]
        assert "${{" not in script, "a value of the event in a script is code of whoever wrote it"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-c", script],
            cwd=self.path,
            env={**self.environment, **env},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request, tmp_path) -> Workflow:
    """A workflow in a project that has the example's suite in `evals/`."""
    shutil.copytree(EXAMPLE, tmp_path / "evals", ignore=shutil.ignore_patterns("__pycache__", "*.yml"))
    (tmp_path / "found").write_text("", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gh"
    program.write_text(GH, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Workflow(read_yaml(request.param.read_bytes(), request.param.name).value, tmp_path)


def worsen(workflow: Workflow) -> None:
    agent = workflow.path / "evals" / "agent.py"
    source = agent.read_text(encoding="utf-8")
    agent.write_text(source.replace("self.orders[number] = state", "pass"), encoding="utf-8")


def test_there_is_one_for_each_way_to_write_a_suite():
    assert {path.name for path in WORKFLOWS} == set(SUITE_IN)
    for path in WORKFLOWS:
        assert read_yaml(path.read_bytes()).value["env"]["SUITE"] == f"evals/{SUITE_IN[path.name]}"


def test_it_may_do_only_what_it_must_and_pins_what_it_uses(workflow):
    document = workflow.document
    assert set(document["on"]) == {"pull_request", "push", "workflow_dispatch"}
    assert document["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert document["concurrency"]["cancel-in-progress"] is True
    (job,) = document["jobs"].values()
    assert job["timeout-minutes"] <= 60
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+(/[a-z]+)?@v\d+", action) for action in used)
    assert len(used) == 5


def test_every_command_and_option_in_it_exists(workflow):
    commands = get_command(app).commands
    found = re.findall(
        r"^ *stateval ([a-z-]+)(.*)$", "\n".join(s.get("run", "") for s in workflow.steps.values()), re.M
    )
    assert "export" in [name for name, _ in found]
    for name, rest in found:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert set(re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", rest)) <= known, rest


def test_steps_after_a_failed_run_still_run_and_secrets_stay_in_one_step(workflow):
    for name in ("Export the results", "Upload the results", "Comment on the pull request"):
        assert "!cancelled()" in workflow.steps[name]["if"]
    assert "always()" in workflow.steps["Keep what is finished"]["if"]
    assert "continue-on-error" not in str(workflow.document)
    with_secrets = [name for name, step in workflow.steps.items() if "secrets." in str(step)]
    assert with_secrets == ["Run the suite"]
    assert workflow.steps["Install"]["run"] == "python -m pip install stateval"


@pytest.mark.parametrize("worse", [False, True], ids=["passes", "fails"])
def test_a_run_is_exported_whatever_came_of_it(workflow, worse):
    if worse:
        worsen(workflow)
    ran = workflow.do("Run the suite", OPENAI_API_KEY="")
    assert ran.returncode == (ExitStatus.GATE_FAILED if worse else ExitStatus.PASSED), ran.stdout + ran.stderr
    first, *_, last = [line for line in ran.stdout.splitlines() if line.startswith("::")]
    assert first == f"::stop-commands::{last.strip(':')}"
    assert len(last) >= 32

    exported = workflow.do("Export the results")
    assert exported.returncode == 0, exported.stdout + exported.stderr
    wanted = f"::error file={workflow.document['env']['SUITE']},line=" if worse else "::notice file="
    assert any(line.startswith(wanted) for line in exported.stdout.splitlines()), exported.stdout
    root = ElementTree.parse(workflow.path / "stateval.xml").getroot()
    assert [suite.get("name") for suite in root] == ["help-desk", "gate"]
    assert (root[1].get("failures") == "1") is worse
    heading = f"## `help-desk`: gate {'FAILED' if worse else 'passed'}"
    for name in ("summary.md", "stateval.md"):
        assert heading in (workflow.path / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("found", "call"),
    [
        ("", "--method POST repos/someone/project/issues/12/comments"),
        ("77\n78\n", "--method PATCH repos/someone/project/issues/comments/77"),
    ],
    ids=["the-first", "the-next"],
)
def test_the_comment_is_written_once_and_then_edited(workflow, found, call):
    (workflow.path / "stateval.md").write_text("<!-- stateval: help-desk -->\n## x\n", encoding="utf-8")
    (workflow.path / "found").write_text(found, encoding="utf-8")
    done = workflow.do("Comment on the pull request", PULL_REQUEST="12", GH_TOKEN="t")
    assert done.returncode == 0, done.stderr
    listed, written = (workflow.path / "calls").read_text(encoding="utf-8").splitlines()
    assert "startswith(env.MARKER)" in listed
    assert "github-actions[bot]" in listed
    assert written == f"api --silent {call} --field body=@stateval.md"
