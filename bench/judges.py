"""How near a run with a judge comes to the judge's own speed, and how fast answers come from the cache."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.environments import Environments
from bench.harness import Contender, Measured, compete
from bench.report import Table

PROGRAMS = Path(__file__).parent / "contenders"
CALLS, IN_FLIGHT, SECONDS = 4_000, 100, 0.4
IDEAL = CALLS / IN_FLIGHT * SECONDS
SUITE = f"""\
name: judges
dataset: rows.jsonl
target: {{kind: python, factory: "agent.py:make"}}
graders:
  named: {{kind: model_judge, model: openai/slow-judge, prompt: "Does the answer name the fruit? 1 or 0."}}
max_concurrent: {IN_FLIGHT}
"""
AGENT = """\
def make(sample):
    async def answer(message):
        return "You like apples."

    return answer
"""
RUN = ("run", "suite.yaml", "--output", "results", "--display", "none")


def measure(environments: Environments, runs: int) -> Table:
    """4,000 calls of a judge that takes 400 ms, 100 in flight: whole runs, the plain SDK beside them; then cached."""
    with _judge(SECONDS) as slow, _judge(0.0) as quick:
        measured = compete(_contenders(environments, slow, quick), runs)
    remarks = (
        f"Medians of {runs} runs, alternating, each process on one core, the judge on the other. Of the plain SDK and "
        "of grades the calls alone are timed; of a run the whole process: start, check of the dataset, agent, judge, "
        "results, summary and exit.",
        f"The judge answers after {1000 * SECONDS:.0f} ms, {IN_FLIGHT} calls are in flight, so {CALLS:,} take "
        f"{IDEAL:.0f} s at least. The aims: at most 1.15 of that, and 3,000 cached grades a second.",
    )
    headings = ["contender", "calls", "seconds", "calls/s", f"ideal ({IDEAL:.0f} s) = 1", "peak MB"]
    return Table(headings, [_row(m) for m in measured], remarks)


def _contenders(environments: Environments, slow: str, quick: str) -> list[Contender]:
    ours = environments.stateval()
    run = (str(ours / "stateval"), *RUN)
    asked = {"OPENAI_BASE_URL": slow, "OPENAI_API_KEY": "unused", "STATEVAL_JUDGE_CACHE": "off"}
    files = {"suite.yaml": SUITE, "agent.py": AGENT, "rows.jsonl": _rows()}
    plain = (str(ours / "python"), str(PROGRAMS / "plain_sdk.py"), str(CALLS), str(IN_FLIGHT), slow)
    grades = (str(ours / "python"), str(PROGRAMS / "judge_grades.py"), str(CALLS), str(IN_FLIGHT), slow)
    cached = (str(ours / "python"), str(PROGRAMS / "cached_grades.py"), str(CALLS), quick)
    return [
        Contender("the SDK in a bare loop", plain, CALLS),
        Contender("stateval, grades", grades, CALLS),
        Contender("stateval, a whole run", run, CALLS, asked, files),
        Contender("stateval, cached grades", cached, CALLS, {"STATEVAL_JUDGE_CACHE": "answers.sqlite3"}),
    ]


def _row(measured: Measured) -> list[str]:
    is_cached = measured.contender.name.endswith("cached grades")
    share = "" if is_cached else f"{measured.seconds / IDEAL:.3f}"
    numbers = [f"{measured.contender.samples:,}", f"{measured.seconds:.2f}", f"{measured.rate:,.0f}"]
    return [measured.contender.name, *numbers, share, f"{measured.peak_mb:.0f}"]


def _rows() -> str:
    rows = ({"id": str(n), "input": f"Question {n}: what do I like?", "ground_truth": "apples"} for n in range(CALLS))
    return "".join(json.dumps(row) + "\n" for row in rows)


@contextmanager
def _judge(seconds: float) -> Iterator[str]:
    """A judge in a process of its own, by the URL of its endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(PROGRAMS / "slow_judge.py"), str(port), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()
