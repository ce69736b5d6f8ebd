"""What can be read of a finished or unfinished run, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.records.summary import Summary
from stateval.results.journal import Entry
from stateval.results.run_record import RunInputs


class Results(Protocol):
    """The results of one run. `ResultsDirectory` is one; readers of other tools' results are others.

    Everything that holds bodies of results is an iterator; nothing loads a whole run.
    """

    @property
    def path(self) -> Path: ...

    @property
    def suite_name(self) -> str: ...

    @property
    def labels(self) -> tuple[str, ...]:
        """What the run's models are called."""

    @property
    def num_runs(self) -> int: ...

    @property
    def planned(self) -> int:
        """How many samples each run was to have."""

    @property
    def metric_keys(self) -> tuple[str, ...]:
        """The graders' keys."""

    @property
    def has_reward(self) -> bool: ...

    @property
    def on_error(self) -> str: ...

    @property
    def pass_threshold(self) -> float: ...

    @property
    def inputs(self) -> RunInputs:
        """Hashes of what the run stands on; empty where they are not known."""

    @property
    def judges(self) -> Mapping[str, Sequence[str]]:
        """Who judged each metric, by the names that the judges' endpoints gave; empty where that is not known."""

    def entries(self, label: str) -> Iterator[tuple[Path, Entry]]:
        """(file, line without its body) of one model in all runs; `read` fetches a body."""

    def read(self, path: Path, entry: Entry) -> SampleResult:
        """The whole result that an entry points to."""

    def observations(self, label: str) -> Iterator[Observation]:
        """The numbers of one model's results in all runs."""

    def results(self, label: str, run: int | None = None) -> Iterator[SampleResult]:
        """One model's results, a line at a time, of one run or of all."""

    def samples(self) -> Iterator[Sample]:
        """The samples of the run, as far as they are known."""

    def summary(self) -> Summary | None:
        """The stored summary; None where the run has not ended."""
