"""Writes a suite, runs the real command `stateval` in a process of its own, and reads what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from stateval.records.result import SampleResult
from stateval.records.summary import Summary
from stateval.results.directory import ResultsDirectory

ECHO_AGENT = '''
class Echo:
    """Repeats what it is told, and remembers the last thing it heard in the block `heard`."""

    def __init__(self):
        self.heard = ""

    def send(self, message):
        self.heard = message
        return message

    def state(self):
        return {"heard": self.heard}

    def new_conversation(self):
        return None


def make(sample):
    return Echo()
'''


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both streams."""
        return self.stdout + self.stderr


class EvalTester:
    """A project directory. Suites are dicts that are written as YAML; files may be bytes or text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results_path = path / "results"

    def write(self, name: str, content: str | bytes) -> Path:
        """A file of the project; text is dedented."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode("utf-8"))
        return path

    def write_rows(self, rows: Iterable[Mapping[str, Any]], name: str = "samples.jsonl") -> Path:
        """A dataset of these rows."""
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def write_suite(
        self,
        rows: Sequence[Mapping[str, Any]] | None = None,
        *,
        agent: str = ECHO_AGENT,
        name: str = "suite.yaml",
        **fields: Any,
    ) -> Path:
        """A suite that echoes `rows` (two by default) and compares with `contains`; `fields` change or add to it."""
        self.write("agent.py", agent)
        if rows is None:
            rows = [{"input": "red", "ground_truth": "red"}, {"input": "blue", "ground_truth": "green"}]
        self.write_rows(rows)
        suite: dict[str, Any] = {
            "name": "test-suite",
            "dataset": "samples.jsonl",
            "target": {"kind": "python", "factory": "agent.py:make"},
            "graders": {"quality": {"kind": "tool", "function": "contains"}},
        }
        suite |= fields
        present = {key: value for key, value in suite.items() if value is not None}
        return self.write(name, yaml.safe_dump(present, sort_keys=False, allow_unicode=True))

    def command(
        self,
        *arguments: str | Path,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = 120.0,
    ) -> Finished:
        """Runs `stateval` with these arguments and waits for its end."""
        with self.start(*arguments, env=env, cwd=cwd) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            finally:
                process.kill()
        return Finished(process.returncode, out, err)

    def start(
        self, *arguments: str | Path, env: Mapping[str, str | None] | None = None, cwd: Path | None = None
    ) -> subprocess.Popen[str]:
        """Starts `stateval` and does not wait."""
        environment = {
            **os.environ,
            "COLUMNS": "120",
            "NO_COLOR": "1",
            **{k: v for k, v in (env or {}).items() if v is not None},
        }
        for name in [k for k, v in (env or {}).items() if v is None]:
            environment.pop(name, None)
        return subprocess.Popen(
            [sys.executable, "-m", "stateval", *map(str, arguments)],
            cwd=cwd or self.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def run(self, suite: Path | str = "suite.yaml", *arguments: str | Path, **options: Any) -> Finished:
        """`stateval run` into `results_path`."""
        return self.command("run", suite, "--output", self.results_path, *arguments, **options)

    @property
    def directory(self) -> ResultsDirectory:
        """The results."""
        return ResultsDirectory.open(self.results_path)

    def results(self, label: str = "default", run: int | None = None) -> dict[str, SampleResult]:
        """The results of one model by sample id."""
        return {str(result.sample_id): result for result in self.directory.results(label, run)}

    def summary(self) -> Summary:
        """The summary; fails where there is none."""
        summary = self.directory.summary()
        assert summary is not None, "no summary was written"
        return summary
