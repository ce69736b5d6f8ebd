"""Runs `stateval` and kills it before its N-th change of a directory: `killed_at.py N ARGUMENTS`.

Counted are renames, replacements, deletions, new directories, truncations and flushes to the disk. The process ends by
SIGKILL, or by itself where it makes fewer changes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

NAMES = ("rename", "replace", "unlink", "mkdir", "truncate", "ftruncate", "fsync")


def main(number: int) -> None:
    """Patches the functions of `os` that `pathlib` and the journal call, and starts the command."""
    done = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            if done == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in NAMES:
        setattr(os, name, counted(getattr(os, name)))
    from stateval.cli import main as command

    command()


if __name__ == "__main__":
    number = int(sys.argv.pop(1))
    sys.argv[0] = "stateval"
    main(number)
