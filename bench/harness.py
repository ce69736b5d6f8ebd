"""Runs contenders as processes of their own, in turn, and takes wall time and peak memory of each."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Contender:
    """A command to measure. `samples` is how many it works through; `directory` is linked into its scratch directory.

    A program that prints a JSON object with `seconds` as its last line is taken at its word: this is how a peer's
    start-up is left out of its rate.
    """

    name: str
    command: tuple[str, ...]
    samples: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """Medians over the runs: seconds of wall time, peak memory of the process in MB (10^6 bytes)."""

    contender: Contender
    seconds: float
    peak_mb: float
    runs: int

    @property
    def rate(self) -> float:
        """Samples per second."""
        return self.contender.samples / self.seconds


def compete(contenders: Sequence[Contender], runs: int) -> list[Measured]:
    """Every contender `runs` times, alternating, so that a slow minute of the machine falls on all of them."""
    taken: dict[str, list[tuple[float, float]]] = {contender.name: [] for contender in contenders}
    for number in range(1, runs + 1):
        for contender in contenders:
            print(f"{contender.name}: run {number} of {runs}", file=sys.stderr, flush=True)
            taken[contender.name].append(_run_once(contender))
    return [_medians(contender, taken[contender.name]) for contender in contenders]


def _medians(contender: Contender, taken: Sequence[tuple[float, float]]) -> Measured:
    seconds, peaks = zip(*taken, strict=True)
    return Measured(contender, statistics.median(seconds), statistics.median(peaks), len(taken))


def _run_once(contender: Contender) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, tempfile.TemporaryFile() as output:
        for name, text in contender.files.items():
            Path(scratch, name).write_text(text, encoding="utf-8")
        started = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **contender.environment},
            preexec_fn=_stay_on_one_core,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        shown = output.read().decode("utf-8", "replace")
    if process.returncode:
        raise SystemExit(f"{contender.name} failed with status {process.returncode}:\n{shown[-2000:]}")
    return _own_seconds(shown) or seconds, usage.ru_maxrss / (1000 if sys.platform != "darwin" else 1_000_000)


def _stay_on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _own_seconds(shown: str) -> float | None:
    last = shown.rstrip().rpartition("\n")[2]
    return float(json.loads(last)["seconds"]) if last.startswith('{"seconds":') else None
