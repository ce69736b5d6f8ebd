"""How many kept conversations are graded anew in a second, and with how much memory."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from bench.environments import LETTA_EVALS, Environments
from bench.harness import Contender, Measured, compete
from bench.report import Table

PROGRAM = Path(__file__).parent / "contenders" / "stored_conversations.py"
FEW, SMALL, LARGE = 2_000, 10_000, 100_000
GRADED = """\
graders:
  said: {kind: tool, function: contains, extractor: last_assistant}
reward: {kind: metric, metric_key: said}
"""
OURS = 'name: regrade\ndataset: rows.jsonl\ntarget: {kind: python, factory: "agent.py:make"}\n' + GRADED
THEIRS = "name: regrade\ndataset: rows.jsonl\ntarget: {kind: letta_code}\n" + GRADED
AGENT = "def make(sample):\n    raise RuntimeError('no agent is to run')\n"


def measure(environments: Environments, runs: int) -> Table:
    """Conversations of three messages, some 2 KB: letta-evals and stateval on its results, stateval on its own."""
    stateval = str(environments.stateval() / "stateval")
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for samples in (FEW, SMALL, LARGE):
            _prepare(stateval, Path(scratch) / str(samples), samples)
        letta_evals = str(environments.peer(LETTA_EVALS) / "letta-evals")
        measured = compete(_contenders(stateval, letta_evals, Path(scratch)), runs)
        size = (Path(scratch) / str(LARGE) / "own" / "default.jsonl").stat().st_size / LARGE
    peer = measured[0]
    remarks = (
        f"Medians of {runs} runs, alternating, each whole process on one core, start, check of the dataset, summary "
        f"and exit included; a result of stateval has {size:,.0f} bytes. The aim: 5,000 conversations a second.",
        "letta-evals holds all results in memory; stateval reads one line at a time.",
    )
    headings = ["contender", "conversations", "seconds", "conversations/s", "letta-evals = 1", "peak MB"]
    return Table(headings, [_row(m, peer) for m in measured], remarks)


def _prepare(stateval: str, place: Path, samples: int) -> None:
    """The results of letta-evals, and those of stateval that come of grading them by another grader."""
    subprocess.run(["python3", str(PROGRAM), str(samples), str(place)], check=True)
    for name, text in {"ours.yaml": OURS, "theirs.yaml": THEIRS, "agent.py": AGENT}.items():
        (place / name).write_text(text, encoding="utf-8")
    older = ["--set", "graders.said.function=exact_match"]
    command = [stateval, "run", "ours.yaml", "--cached", "letta-evals", "--output", "own", "--display", "none", *older]
    subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)


def _contenders(stateval: str, letta_evals: str, place: Path) -> list[Contender]:
    def ours(name: str, samples: int, cached: str) -> Contender:
        there = place / str(samples)
        command = (stateval, "run", str(there / "ours.yaml"), "--cached", str(there / cached))
        return Contender(name, (*command, "--output", "results", "--display", "none"), samples)

    few = place / str(FEW)
    command = (letta_evals, "run", str(few / "theirs.yaml"), "--cached", str(few / "letta-evals"), "--output", "out")
    return [
        Contender(LETTA_EVALS.replace("==", " "), (*command, "--quiet"), FEW, {"LETTA_API_KEY": "unused"}),
        ours("stateval, the same results", FEW, "letta-evals"),
        ours("stateval, results of its own", SMALL, "own"),
        ours("ten times as many", LARGE, "own"),
    ]


def _row(measured: Measured, peer: Measured) -> list[str]:
    ratio = f"{measured.rate / peer.rate:.3g}"
    numbers = [f"{measured.contender.samples:,}", f"{measured.seconds:.2f}", f"{measured.rate:,.0f}"]
    return [measured.contender.name, *numbers, ratio, f"{measured.peak_mb:.0f}"]
