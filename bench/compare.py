"""How long it takes to compare two finished runs, and with how much memory."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from bench.environments import Environments
from bench.harness import Contender, Measured, compete
from bench.report import Table

PROGRAM = Path(__file__).parent / "contenders" / "stored_runs.py"
SMALL, LARGE = 10_000, 100_000


def measure(environments: Environments, runs: int) -> Table:
    """Two runs of 10,000 and of 100,000 samples, some 2 KB a result, by their indexes and without."""
    programs = environments.stateval()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for samples in (SMALL, LARGE):
            command = [str(programs / "python"), str(PROGRAM), str(samples), f"{scratch}/{samples}"]
            subprocess.run(command, check=True)
        measured = compete(_contenders(str(programs / "stateval"), Path(scratch)), runs)
        size = (Path(scratch) / str(LARGE) / "a" / "model.jsonl").stat().st_size / LARGE
    remarks = (
        f"Medians of {runs} runs, alternating, each process on one core, start and exit included; a result has "
        f"{size:,.0f} bytes. The aim: 100,000 samples within 5 seconds and 300 MB.",
        "Without indexes the lines themselves are read, as they are of other tools' results: twice, for the models and "
        "metrics must be known first.",
    )
    return Table(["two runs", "samples each", "seconds", "peak MB"], [_row(m) for m in measured], remarks)


def _contenders(stateval: str, place: Path) -> list[Contender]:
    small, large = place / str(SMALL), place / str(LARGE)
    json = ("--format", "json", "--output", "comparison.json")
    return [
        Contender("`stateval compare`", (stateval, "compare", f"{small}/a", f"{small}/b"), SMALL),
        Contender("ten times the samples", (stateval, "compare", f"{large}/a", f"{large}/b"), LARGE),
        Contender("as JSON, all ids in it", (stateval, "compare", f"{large}/a", f"{large}/b", *json), LARGE),
        Contender("without indexes", (stateval, "compare", f"{large}/a/model.jsonl", f"{large}/b/model.jsonl"), LARGE),
    ]


def _row(measured: Measured) -> list[str]:
    contender = measured.contender
    return [contender.name, f"{contender.samples:,}", f"{measured.seconds:.2f}", f"{measured.peak_mb:.0f}"]
