"""How long a command takes to say its version or its help."""

from __future__ import annotations

from bench.environments import LETTA_EVALS, Environments
from bench.harness import Contender, compete
from bench.report import Table

LIMIT = 0.3


def measure(environments: Environments, runs: int) -> Table:
    """`--version` and `--help` beside `letta-evals --help`, and an interpreter that does nothing as the floor."""
    ours, theirs = environments.stateval(), environments.peer(LETTA_EVALS)
    peer = f"{LETTA_EVALS.replace('==', ' ')}: `letta-evals --help`"
    contenders = [
        Contender("`python -c pass`, the floor", (str(ours / "python"), "-c", "pass")),
        Contender("`stateval --version`", (str(ours / "stateval"), "--version")),
        Contender("`stateval --help`", (str(ours / "stateval"), "--help")),
        Contender(peer, (str(theirs / "letta-evals"), "--help")),
    ]
    compete(contenders, 1)  # byte-compiles and warms the disk cache
    measured = compete(contenders, max(runs, 7))
    seconds = {m.contender.name: m.seconds for m in measured}
    rows = [[m.contender.name, f"{m.seconds:.3f}", f"{m.seconds / seconds[peer]:.2f}"] for m in measured]
    remark = f"Medians of {measured[0].runs} runs, one core each. The aim: at most {LIMIT} of the peer."
    return Table(["command", "seconds", "of the peer"], rows, [remark])
