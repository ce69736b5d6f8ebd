"""`stateval run suite.py`: a Python file that makes suites and runs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stateval.cli.screen import screen
from stateval.errors import UsageError

if TYPE_CHECKING:
    from stateval.api.suite import EvalSuite


def is_python_suite(path: Path) -> bool:
    """Whether a suite is a Python file rather than YAML."""
    return path.suffix == ".py" and path.is_file()


def run_python_suite(path: Path, options: Sequence[str], *, quiet: bool = False) -> None:
    """Runs the file as `python FILE` would, where it may also import `letta_evals`.

    A file that makes suites on its top level and runs none has them run here, in order; `quiet` prints nothing of
    theirs. Raises what running them raises (GateFailed and the like), UserCodeError where the file itself raises, and
    UsageError for options, which a Python file says itself, and for a file that runs nothing.
    """
    if options:
        raise UsageError(f"`{options[0]}` is for suite files; {path} says such things itself, in `EvalSuite(...)`")
    from stateval.api.suite import EvalSuite
    from stateval.loading.user_code import UserCode
    from stateval.suite.build import SERVED_NAMES

    sys.argv = [str(path)]
    before = EvalSuite.runs_begun
    with UserCode(path.absolute().parent, SERVED_NAMES).running_script(path) as names:
        if EvalSuite.runs_begun == before:
            _run_all(path, [value for value in names.values() if isinstance(value, EvalSuite)], quiet=quiet)


def _run_all(path: Path, suites: Sequence[EvalSuite], *, quiet: bool) -> None:
    if not suites:
        raise UsageError(f"{path} runs no suite: call `EvalSuite(...).run()` in it")
    for suite in dict.fromkeys(suites):
        results = suite.run()
        if not quiet:
            screen.say(repr(results))
