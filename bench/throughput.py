"""How fast, and with how much memory, a dataset runs through when the agent answers at once."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from bench.environments import INSPECT, PYDANTIC_EVALS, Environments
from bench.harness import Contender, Measured, compete
from bench.report import Table

PROGRAMS = Path(__file__).parent / "contenders"
SUITE = """\
name: throughput
dataset: rows.jsonl
target: {kind: python, factory: "agent.py:make"}
graders:
  said: {kind: tool, function: contains}
gate: {metric_key: said, aggregation: avg_score, op: gte, value: 1.0}
"""
AGENT = """\
def make(sample):
    def answer(message):
        return "You like apples."

    return answer
"""
ASYNC_AGENT = AGENT.replace("    def answer", "    async def answer")
RUN = ("run", "suite.yaml", "--output", "results", "--display", "none")
SMALL, LARGE, FEW = 10_000, 100_000, 300


def measure(environments: Environments, runs: int) -> Table:
    """10,000 and 100,000 samples, results saved; peers in sizes that they finish in a minute, compared by rate."""
    measured = compete(_contenders(environments), runs)
    ours = next(m for m in measured if m.contender.name == "stateval")
    rows = [_row(m, ours) for m in measured]
    remarks = (
        f"Medians of {runs} runs, alternating, each process on one core. Of stateval and of the bare loop the whole "
        "process is timed, start and exit included; of the peers the evaluation alone, from the call to its return "
        "and to the last byte of the results.",
        "The bare loop reads the rows, makes of each the record that stateval writes (the record itself is made "
        "beforehand), serialises it and writes it as a line: nobody who saves these results can be faster.",
        "pydantic-evals holds all results in memory and writes them once, at the end; Inspect and stateval write each "
        "sample as it ends.",
    )
    return Table(["contender", "samples", "seconds", "samples/s", "stateval = 1", "peak MB"], rows, remarks)


def _contenders(environments: Environments) -> list[Contender]:
    ours = environments.stateval()
    run = (str(ours / "stateval"), *RUN)
    inspect, pydantic_evals = environments.peer(INSPECT), environments.peer(PYDANTIC_EVALS)
    tokenizers = {"TIKTOKEN_CACHE_DIR": str(environments.tokenizers())}
    bare = {"record.json": _one_record(ours), **_rows(SMALL)}
    return [
        Contender("bare loop, the limit", _program(ours, "bare_loop.py", SMALL), SMALL, files=bare),
        Contender("stateval", run, SMALL, files=_suite(SMALL)),
        Contender("stateval, an async agent", run, SMALL, files=_suite(SMALL, ASYNC_AGENT)),
        Contender("stateval, ten times the samples", run, LARGE, files=_suite(LARGE)),
        Contender(_called(PYDANTIC_EVALS), _program(pydantic_evals, "pydantic_evals_run.py", SMALL), SMALL),
        Contender(_called(INSPECT), _program(inspect, "inspect_run.py", FEW), FEW, tokenizers),
    ]


def _row(measured: Measured, ours: Measured) -> list[str]:
    share = f"{measured.rate / ours.rate:.3g}"
    numbers = [f"{measured.contender.samples:,}", f"{measured.seconds:.2f}", f"{measured.rate:,.0f}"]
    return [measured.contender.name, *numbers, share, f"{measured.peak_mb:.0f}"]


def _one_record(ours: Path) -> str:
    """What stateval writes for one of the samples."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in _suite(1).items():
            Path(scratch, name).write_text(text, encoding="utf-8")
        subprocess.run([str(ours / "stateval"), *RUN], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        return Path(scratch, "results", "default.jsonl").read_text(encoding="utf-8")


def _program(programs: Path, file: str, samples: int) -> tuple[str, ...]:
    return str(programs / "python"), str(PROGRAMS / file), str(samples)


def _called(requirement: str) -> str:
    return requirement.replace("==", " ")


def _suite(samples: int, agent: str = AGENT) -> dict[str, str]:
    return {"suite.yaml": SUITE, "agent.py": agent, **_rows(samples)}


def _rows(samples: int) -> dict[str, str]:
    rows = ({"id": str(n), "input": f"Question {n}: what do I like?", "ground_truth": "apples"} for n in range(samples))
    return {"rows.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}
