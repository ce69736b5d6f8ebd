"""How much an installation brings along."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

from bench.environments import LETTA_EVALS, Environments, site_packages
from bench.report import Table

NOT_COUNTED = ("pip", "setuptools", "wheel")


def measure(environments: Environments, runs: int) -> Table:
    """Packages and bytes of stateval's core beside letta-evals; pip is not counted. One look is enough: no runs."""
    contenders = {
        "stateval, core": environments.stateval(),
        LETTA_EVALS.replace("==", " "): environments.peer(LETTA_EVALS),
    }
    rows = [[name, *_size(site_packages(programs))] for name, programs in contenders.items()]
    return Table(["installed", "packages", "MB"], rows, ["The aim: at most 36 packages and 90 MB."])


def _size(directory: Path) -> tuple[str, str]:
    names = {d.name.lower() for d in distributions(path=[str(directory)])} - set(NOT_COUNTED)
    skipped = {entry for entry in directory.iterdir() if entry.name.split("-")[0] in (*NOT_COUNTED, "_distutils_hack")}
    files = (f for entry in directory.iterdir() if entry not in skipped for f in _files_of(entry))
    return str(len(names)), f"{sum(f.stat().st_size for f in files) / 1e6:.0f}"


def _files_of(entry: Path) -> list[Path]:
    return [entry] if entry.is_file() else [f for f in entry.rglob("*") if f.is_file()]
