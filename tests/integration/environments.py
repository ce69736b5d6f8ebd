"""Virtual environments for programs that cannot share ours: made once, kept between runs of the tests.

They lie in `STATEVAL_TEST_ENVIRONMENTS`, else in the user's cache. `python -m tests.integration.environments` makes
them all, for instance before a machine goes offline.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from filelock import FileLock

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
RELEASES = ("0.11.7", "0.16.8")
_UNREACHABLE = (
    "No matching distribution",
    "Could not find a version",
    "Temporary failure in name resolution",
    "Failed to establish a new connection",
    "Max retries exceeded",
    "Read timed out",
)


class Unreachable(Exception):
    """The package index cannot be reached, or does not have what is asked for. The message is for the reader."""


def letta_server_environment(release: str) -> Path:
    """The environment of a release of the Letta server. Raises Unreachable; CalledProcessError for other failures."""
    return environment(REQUIREMENTS / f"letta-server-{release}.txt")


def environment(requirements: Path) -> Path:
    """An environment with exactly these hashed requirements.

    It is made under a temporary name, so that one whose making was killed is never taken for whole.
    """
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    path = _directory() / f"{requirements.stem}-{digest}"
    with _alone(path):
        if not path.is_dir():
            unfinished = path.with_name(f"{path.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(unfinished)], check=True)
            _install(requirements, unfinished)
            unfinished.rename(path)
    return path


def python_of(path: Path) -> str:
    """The interpreter of an environment."""
    return str(path / "bin" / "python")


def _install(requirements: Path, into: Path) -> None:
    """By uv, which takes seconds; by pip, which takes minutes, where uv does not know this machine's indexes."""
    wanted = ["--quiet", "--no-deps", "--require-hashes", "--requirement", str(requirements)]
    uv = [sys.executable, "-m", "uv", "pip", "install", f"--python={python_of(into)}"]
    pip = [sys.executable, "-m", "pip", f"--python={python_of(into)}", "install", "--no-compile"]
    for command in (uv, pip):
        done = subprocess.run([*command, *wanted], capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode == 0:
            return
    if any(words in done.stderr for words in _UNREACHABLE):
        last = done.stderr.strip().splitlines()[-1]
        raise Unreachable(f"what {requirements.name} names cannot be had from the package index: {last}")
    raise RuntimeError(f"pip could not install {requirements.name}:\n{done.stderr}")


def _directory() -> Path:
    named = os.environ.get("STATEVAL_TEST_ENVIRONMENTS")
    path = Path(named) if named else platformdirs.user_cache_path("stateval-tests")
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with FileLock(path.with_name(f"{path.name}.lock")):
        yield


if __name__ == "__main__":
    for one in RELEASES:
        print(letta_server_environment(one))
