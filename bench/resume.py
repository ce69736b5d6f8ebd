"""How soon a run goes on after a kill, when most of it is done."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.environments import Environments
from bench.report import Table

SMALL, LARGE, LEFT = 10_000, 100_000, 10
SUITE = """\
name: resume
dataset: rows.jsonl
target: {kind: python, factory: "agent.py:make"}
graders:
  said: {kind: tool, function: contains}
"""
AGENT = """\
import os
import time

FIRST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "first")


def make(sample):
    def answer(message):
        if not os.path.exists(FIRST):
            with open(FIRST, "w", encoding="utf-8") as file:
                file.write(repr(time.time()))
        return "You like apples. " + "And so on. " * 70

    return answer
"""


def measure(environments: Environments, runs: int) -> Table:
    """10,000 and 100,000 finished samples of some 2 KB, ten to go: from the command to the first new conversation."""
    stateval = str(environments.stateval() / "stateval")
    rows = []
    for samples in (SMALL, LARGE):
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            place = Path(scratch)
            size = _killed_run(stateval, place, samples)
            first, whole = zip(*(_resumed(stateval, place) for _ in range(runs)), strict=True)
            rows.append([f"{samples:,}", f"{size:,.0f}", f"{median(first):.2f}", f"{median(whole):.2f}"])
    remarks = (
        f"Medians of {runs} runs; the time runs from the start of the process. `{LEFT}` samples were left to run. The "
        "aim: the first new sample within 2 seconds of 100,000 finished ones.",
        "The whole includes the summary, the gate and the report over all samples.",
    )
    return Table(["finished samples", "bytes a result", "s to the first new sample", "s in all"], rows, remarks)


def _killed_run(stateval: str, place: Path, samples: int) -> float:
    """A run of which all but the last samples are done, as a kill leaves it; the mean size of a result in bytes."""
    for name, text in {"suite.yaml": SUITE, "agent.py": AGENT, "rows.jsonl": _rows(samples + LEFT)}.items():
        (place / name).write_text(text, encoding="utf-8")
    subprocess.run(_command(stateval), cwd=place, check=True, stdout=subprocess.DEVNULL)
    results = place / "results"
    for file in (results / "default.jsonl", results / ".stateval" / "index" / "default.run_1.idx"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:samples]))
    record = results / ".stateval" / "run.json"
    said = json.loads(record.read_text(encoding="utf-8"))
    del said["finished"]
    record.write_text(json.dumps(said), encoding="utf-8")
    (results / "summary.json").unlink()
    results.rename(place / "killed")
    return (place / "killed" / "default.jsonl").stat().st_size / samples


def _resumed(stateval: str, place: Path) -> tuple[float, float]:
    shutil.rmtree(place / "results", ignore_errors=True)
    shutil.copytree(place / "killed", place / "results")
    (place / "first").unlink(missing_ok=True)
    began = time.time()
    subprocess.run(_command(stateval), cwd=place, check=True, stdout=subprocess.DEVNULL)
    ended = time.time()
    return float((place / "first").read_text(encoding="utf-8")) - began, ended - began


def _command(stateval: str) -> list[str]:
    return [stateval, "run", "suite.yaml", "--output", "results", "--display", "none"]


def _rows(count: int) -> str:
    rows = ({"id": str(n), "input": f"Question {n}: what do I like?", "ground_truth": "apples"} for n in range(count))
    return "".join(json.dumps(row) + "\n" for row in rows)
