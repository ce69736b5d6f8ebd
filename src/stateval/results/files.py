"""Results that are read from their lines alone, without an index: those of other tools, and single files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from stateval.errors import ResultsError
from stateval.records.digest import digest_of
from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.records.summary import Summary
from stateval.results.journal import Entry
from stateval.results.letta_evals_lines import DEFAULT_METRIC, line_of, result_of
from stateval.results.lines import LineTable
from stateval.results.run_record import NO_INPUTS, RunInputs

DEFAULT_LABEL = "default"
"""What a model is called of which nothing says its name."""


@dataclass(frozen=True, slots=True)
class LinesFile:
    """A file of results. `label` is the model of all its lines; without it every line says its own."""

    path: Path
    run: int = 1
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run beside its lines. `planned` is 0 where the lines have to tell; `num_runs` are at least."""

    suite_name: str
    metric_keys: tuple[str, ...] = ()
    has_reward: bool = False
    planned: int = 0
    on_error: str = "fail"
    pass_threshold: float = 1.0
    inputs: RunInputs = NO_INPUTS
    judges: Mapping[str, Sequence[str]] = field(default_factory=dict)
    samples: Callable[[], Iterator[Sample]] | None = None
    num_runs: int = 1


class ResultsFiles:
    """The results in these files; a `Results`. Each look at them reads the lines anew, one at a time.

    Where a sample has several lines of one model and run, the last one counts. Lines that are no results raise
    ResultsError with file and line; a torn last line is left out.
    """

    def __init__(self, path: Path, files: Sequence[LinesFile], facts: Facts) -> None:
        self.path = path
        self._files = files
        self._facts = facts
        self._metric = facts.metric_keys[0] if facts.metric_keys else DEFAULT_METRIC

    @property
    def suite_name(self) -> str:
        """The suite's name, or the file's."""
        return self._facts.suite_name

    @property
    def labels(self) -> tuple[str, ...]:
        """The models in the files."""
        return tuple(self._seen.labels)

    @property
    def num_runs(self) -> int:
        """How many runs there are."""
        return max([*(file.run for file in self._files), self._seen.last_run, self._facts.num_runs])

    @property
    def planned(self) -> int:
        """How many samples each run was to have: as far as is known, else as many as there are."""
        return self._facts.planned or self._seen.samples

    @property
    def metric_keys(self) -> tuple[str, ...]:
        """The graders' keys: the configured ones, then those that only lines have."""
        return tuple(dict.fromkeys([*self._facts.metric_keys, *self._seen.metric_keys]))

    @property
    def has_reward(self) -> bool:
        """Whether a reward was composed."""
        return self._facts.has_reward or self._seen.has_reward

    @property
    def on_error(self) -> str:
        """How errored observations count."""
        return self._facts.on_error

    @property
    def pass_threshold(self) -> float:
        """The reward from which on a sample has passed."""
        return self._facts.pass_threshold

    @property
    def inputs(self) -> RunInputs:
        """What the run stands on, as far as it is known."""
        return self._facts.inputs

    @property
    def judges(self) -> Mapping[str, Sequence[str]]:
        """Who judged each metric, as far as it is known."""
        return self._facts.judges

    def entries(self, label: str) -> Iterator[tuple[Path, Entry]]:
        """(file, line without its body) of one model in all runs; `read` fetches a body."""
        for file, place, result, length in self._lines(label, body=False):
            yield file.path, Entry(place, length, Observation.of(result), result.stage_keys)

    def observations(self, label: str) -> Iterator[Observation]:
        """The numbers of one model's results in all runs."""
        for _, _, result, _ in self._lines(label, body=False):
            yield Observation.of(result)

    def results(self, label: str, run: int | None = None) -> Iterator[SampleResult]:
        """One model's results, a line at a time, of one run or of all."""
        for _, _, result, _ in self._lines(label, body=True):
            if run is None or result.run == run:
                yield result

    def read(self, path: Path, entry: Entry) -> SampleResult:
        """The result that an entry points to."""
        with path.open("rb") as opened:
            opened.seek(entry.offset)
            text = opened.read(entry.length)
        try:
            return result_of(line_of(text) or {}, run=entry.observation.run, metric=self._metric)
        except ValueError as error:
            raise ResultsError(f"{path}: the results have changed while they were read: {error}") from error

    def samples(self) -> Iterator[Sample]:
        """The samples, as far as they are known."""
        return iter(()) if self._facts.samples is None else self._facts.samples()

    def summary(self) -> Summary | None:
        """None: summaries of other tools count otherwise, so ours is made of the lines."""
        return None

    def _lines(self, label: str, *, body: bool) -> Iterator[tuple[LinesFile, int, SampleResult, int]]:
        for number, file in enumerate(self._files):
            if file.label is not None and file.label != label:
                continue
            for place, result, length in self._results_in(file, body=body):
                if label_of(file, result) == label and (number, place) not in self._seen.superseded:
                    yield file, place, result, length

    def _results_in(self, file: LinesFile, *, body: bool) -> Iterator[tuple[int, SampleResult, int]]:
        for line_number, place, text in whole_lines(file.path):
            try:
                line = line_of(text)
                if line is not None:
                    result = result_of(line, run=file.run, metric=self._metric, body=body)
                    yield place, result, len(text)
            except ValueError as error:
                if not text.endswith(b"\n"):
                    return
                raise ResultsError(f"{file.path}, line {line_number}: {_why(error)}") from error

    @cached_property
    def _seen(self) -> _Seen:
        seen = _Seen()
        for number, file in enumerate(self._files):
            for place, result, _ in self._results_in(file, body=False):
                seen.add(number, place, label_of(file, result), result)
        seen.close()
        return seen


def label_of(file: LinesFile, result: SampleResult) -> str:
    """The model of one line."""
    return file.label or result.model_handle or DEFAULT_LABEL


def whole_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """(number from 1, offset, line) of the lines that are not blank. Raises ResultsError for what cannot be read."""
    place = 0
    try:
        with path.open("rb") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    yield number, place, line
                place += len(line)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error


class _Seen:
    """What one look at all lines tells."""

    def __init__(self) -> None:
        self.labels: dict[str, None] = {}
        self.metric_keys: dict[str, None] = {}
        self.has_reward = False
        self.last_run = 1
        self.samples = 0
        self.superseded: frozenset[tuple[int, int]] = frozenset()
        self._tables: dict[tuple[int, str, int], LineTable] = {}

    def add(self, file: int, place: int, label: str, result: SampleResult) -> None:
        """Takes down one line."""
        self.labels[label] = None
        self.metric_keys.update(dict.fromkeys([*result.grades, *(result.grade_errors or {})]))
        self.has_reward = self.has_reward or result.reward is not None
        self.last_run = max(self.last_run, result.run)
        table = self._tables.setdefault((file, label, result.run), LineTable())
        table.add(digest_of(str(result.sample_id)), place, 0)

    def close(self) -> None:
        """Finds the superseded lines, and how many samples the fullest run has."""
        superseded: set[tuple[int, int]] = set()
        for (file, _, _), table in self._tables.items():
            dropped = list(table.superseded())
            superseded.update((file, place) for place in dropped)
            self.samples = max(self.samples, len(table) - len(dropped))
        self.superseded = frozenset(superseded)
        self._tables.clear()


def _why(error: ValueError) -> str:
    details: Any = getattr(error, "errors", None)
    if not callable(details):
        return f"no line of results: {error}"
    first = details()[0]
    where = ".".join(map(str, first["loc"]))
    return f"no result of a sample: `{where}`: {first['msg']}"
