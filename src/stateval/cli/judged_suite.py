"""A suite as far as its judges are concerned, for the commands that measure them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stateval.cli.screen import screen
from stateval.errors import StatevalError, SuiteError, UsageError

if TYPE_CHECKING:
    from stateval.datasets import PlacedDataset
    from stateval.judges import MetricJudge, OnAnswer
    from stateval.suite.build import Built

_X = TypeVar("_X")
_THRESHOLD = 0.5
_MOST_CONCURRENT = 32


@dataclass(frozen=True, slots=True)
class JudgedSuite:
    """What measuring judges needs of a suite: its rows and the judges of the metrics that are looked at."""

    name: str
    dataset: PlacedDataset
    judges: tuple[MetricJudge, ...]
    pass_threshold: float | None
    max_concurrent: int

    def threshold(self, asked: float | None) -> float:
        """The score from which on an answer passes."""
        if asked is not None and not 0 < asked <= 1:
            raise UsageError(f"`--threshold {asked:g}`: a threshold lies above 0 and is at most 1, such as 0.5")
        return next(value for value in (asked, self.pass_threshold, _THRESHOLD) if value is not None)

    def asking(self, ask: Callable[[], Awaitable[_X]]) -> _X:
        """What comes of asking the judges, whose connections are given back then."""
        import anyio

        async def asked() -> _X:
            try:
                return await ask()
            finally:
                with anyio.CancelScope(shield=True):
                    for judge in self.judges:
                        await judge.grader.close()

        return anyio.run(asked)


def read_judged_suite(
    suite: Path, metrics: Sequence[str] | None, set_: Sequence[str] | None, *, cache: bool
) -> JudgedSuite:
    """The suite; its secrets are known to the screen then.

    Raises SuiteError, DatasetError, and UsageError where no model judges these metrics.
    """
    from stateval.datasets import check_dataset
    from stateval.suite.build import build, secrets_in
    from stateval.suite.load import load_suite
    from stateval.suite.overrides import parse_set

    overrides = [parse_set(pair) for pair in set_ or ()]
    screen.know_configuration([{override.path[-1]: override.value} for override in overrides])
    try:
        loaded = load_suite(suite, overrides)
    except StatevalError:
        screen.know_suite(suite)
        raise
    screen.know(secrets_in(loaded))
    built = build(loaded, cache=cache)
    judges = _judges(built, metrics or ())
    if built.dataset is None:
        raise SuiteError(built.problems)
    check_dataset(built.dataset)
    spec = loaded.spec
    return JudgedSuite(
        name=spec.name,
        dataset=built.dataset,
        judges=judges,
        pass_threshold=spec.pass_threshold if "pass_threshold" in spec.model_fields_set else None,
        max_concurrent=spec.max_concurrent or _MOST_CONCURRENT,
    )


def _judges(built: Built, metrics: Sequence[str]) -> tuple[MetricJudge, ...]:
    """The judges of these metrics, or all. What only the target lacks does not matter here."""
    from stateval.graders.judging import ModelJudge
    from stateval.judges import MetricJudge
    from stateval.running.grading import graded_turns

    missing = [problem for problem in built.missing if not (problem.source.field or "").startswith("target")]
    if built.problems or missing:
        raise SuiteError([*built.problems, *missing])
    found = {
        binding.key: MetricJudge(binding.key, binding.grader, binding.view, partial(graded_turns, metric=binding.key))
        for binding in built.bindings
        if isinstance(binding.grader, ModelJudge)
    }
    if not found:
        raise UsageError("no metric of this suite is judged by a model; write a grader of `kind: model_judge`")
    unknown = [metric for metric in metrics if metric not in found]
    if unknown:
        known = ", ".join(f"`{key}`" for key in found)
        raise UsageError(f"`--metric {unknown[0]}`: no model judges that; the metrics that models judge: {known}")
    return tuple(judge for key, judge in found.items() if not metrics or key in metrics)


@contextmanager
def shown_asking(calls: int, *, quiet: bool) -> Iterator[OnAnswer]:
    """Says how many grades are asked for, and on a terminal how many have come."""
    if quiet:
        yield lambda: None
        return
    screen.complain(f"asking for {calls:,} grade{'' if calls == 1 else 's'}; those that are kept cost nothing")
    if not screen.err.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=screen.err), transient=True) as bar:
        task = bar.add_task("", total=calls)
        yield lambda: bar.advance(task)
