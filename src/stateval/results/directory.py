"""What lies where in a results directory, and how one comes to be.

DIR/suite.json                 configuration, samples, provenance
DIR/summary.json               the summary, written when the run ends
DIR/<model>.jsonl              one SampleResult a line (one run)
DIR/<model>/run_<n>.jsonl      the same for several runs, with <model>/summary.json
DIR/history/<time>/            earlier runs in the same directory, whole
DIR/.stateval/run.json         which suite runs here, since when, and whether it has finished
DIR/.stateval/index/           what statistics need of each line, and where the line is
DIR/.lock                      held while a process writes here
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock

from stateval.errors import ResultsError
from stateval.records.digest import digest_of
from stateval.records.encoding import dump_json
from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.records.summary import ModelSummary, Summary
from stateval.redaction import Redaction
from stateval.results.journal import Entry, Journal, Line, read_entries, read_lines, read_result, read_results, take_out
from stateval.results.lines import LineTable
from stateval.results.naming import file_names
from stateval.results.run_record import NO_INPUTS, RUN_FILE, RunInputs, RunRecord, read_run_record
from stateval.results.samples import read_samples
from stateval.results.storage import before_anything_ran, before_change, write_whole
from stateval.results.taking import lay_out, lock, make_room, place_in_history


def default_directory(suite: str, *, below: Path | None = None) -> Path:
    """`.stateval/runs/<suite>-<time>-<random>` in the current directory: distinct also within one second."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", suite).strip("-.")[:60] or "suite"
    time = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return (below or Path.cwd()) / ".stateval" / "runs" / f"{name}-{time}-{secrets.token_hex(3)}"


_NO_SETTINGS: Mapping[str, str] = {}


class ResultsDirectory:
    """A directory of results: read it as it is, or `begin` a run in it and write.

    After `begin`, `earlier` is the record of the run that goes on, as it was found, and `moved_to` where one is that
    lay in the directory.
    """

    def __init__(self, path: Path, record: RunRecord, *, redaction: Redaction | None = None) -> None:
        self.path = path
        self.record = record
        self._redaction = (redaction or Redaction()).sparing([*record.models, *record.models.values()])
        self._lock: filelock.BaseFileLock | None = None
        self._aside: Path | None = None
        self.earlier: RunRecord | None = None
        self.moved_to: Path | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """The results in this directory. Raises ResultsError where there are none."""
        record = read_run_record(path)
        if record is None:
            raise ResultsError(f"{path}: no results of stateval here")
        return cls(path, record)

    @classmethod
    def begin(
        cls,
        path: Path,
        *,
        suite: str,
        identity: str,
        labels: Sequence[str],
        num_runs: int,
        planned: int,
        version: str,
        inputs: RunInputs = NO_INPUTS,
        suite_file: str | None = None,
        settings: Mapping[str, str] = _NO_SETTINGS,
        cached: Path | None = None,
        on_error: str = "fail",
        pass_threshold: float = 1.0,
        fresh: bool = False,
        reopen: bool = False,
        redaction: Redaction | None = None,
    ) -> Self:
        """Takes the directory for a run.

        An unfinished run of the same identity is continued (with `fresh` it is moved to `history`); a finished one is
        moved to `history` first, whole (with `reopen` it is continued). `cached`: whose conversations are graded anew.

        Raises UsageError where the directory cannot be written, holds other things, or an unfinished run of another
        identity; ResultsLocked where another process works in it.
        """
        path = path.absolute()  # an agent may change the current directory
        held = lock(path)
        try:
            record = RunRecord(
                suite=suite,
                identity=identity,
                models=file_names(labels),
                num_runs=num_runs,
                planned=planned,
                inputs=inputs,
                suite_file=suite_file,
                settings=dict(settings),
                cached=str(cached) if cached is not None else None,
                on_error=on_error,
                pass_threshold=pass_threshold,
                stateval=version,
                started=datetime.now(UTC),
            )
            found = make_room(path, record, fresh=fresh, reopen=reopen)
            if found.moved_to is not None and cached == path:
                record = record.model_copy(update={"cached": found.moved_to.relative_to(path).as_posix()})
            if found.unfinished is not None:
                record = _continued(found.unfinished, record, path)
            directory = cls(path, record, redaction=redaction)
            directory._lock, directory.earlier, directory.moved_to = held, found.unfinished, found.moved_to
            directory._prepare()
        except BaseException:
            held.release()
            raise
        return directory

    @property
    def suite_name(self) -> str:
        """The suite's name."""
        return self.record.suite

    @property
    def labels(self) -> tuple[str, ...]:
        """What the run's models are called."""
        return tuple(self.record.models)

    @property
    def num_runs(self) -> int:
        """How often every sample was to run."""
        return self.record.num_runs

    @property
    def planned(self) -> int:
        """How many samples each run was to have."""
        return self.record.planned

    @property
    def metric_keys(self) -> tuple[str, ...]:
        """The graders' keys."""
        return tuple(self.record.inputs.graders)

    @property
    def has_reward(self) -> bool:
        """Whether a reward is composed."""
        return self.record.inputs.reward is not None

    @property
    def judges(self) -> Mapping[str, Sequence[str]]:
        """Who judged each metric, by the names that the judges' endpoints gave."""
        return self.record.judges

    @property
    def on_error(self) -> str:
        """How errored observations count: `fail`, `exclude` or `stop`."""
        return self.record.on_error

    @property
    def pass_threshold(self) -> float:
        """The reward from which on the ledger says passed."""
        return self.record.pass_threshold

    @property
    def inputs(self) -> RunInputs:
        """What the run stands on."""
        return self.record.inputs

    def journal_path(self, label: str, run: int = 1) -> Path:
        """The file of one model's results in one run (counted from 1)."""
        name = self.record.models[label]
        return self.path / (f"{name}.jsonl" if self.record.num_runs == 1 else f"{name}/run_{run}.jsonl")

    def index_path(self, label: str, run: int = 1) -> Path:
        """The index of that file."""
        return self.path / ".stateval" / "index" / f"{self.record.models[label]}.run_{run}.idx"

    def journal(self, label: str, run: int = 1) -> Journal:
        """That file, to append to."""
        return Journal(self.journal_path(label, run), self.index_path(label, run), self._redaction)

    def runs(self) -> range:
        """The numbers of the runs, in order: `run_2` before `run_10`."""
        return range(1, self.record.num_runs + 1)

    def observations(self, label: str) -> Iterator[Observation]:
        """The numbers of one model's results in all runs; no body of a line is read."""
        for _, entry in self.entries(label):
            yield entry.observation

    def entries(self, label: str, run: int | None = None) -> Iterator[tuple[Path, Entry]]:
        """(file, line without its body) of one model's results, of one run or of all; `read` fetches a body."""
        for number in self.runs() if run is None else (run,):
            path = self.journal_path(label, number)
            if path.exists():
                superseded = self._superseded(label, number)
                for entry in read_entries(path, self.index_path(label, number)):
                    if entry.offset not in superseded:
                        yield path, entry

    def lines(self, label: str, run: int) -> Iterator[Line]:
        """The lines of one model in one run, with the least of each."""
        path = self.journal_path(label, run)
        return read_lines(path, self.index_path(label, run)) if path.exists() else iter(())

    def results(self, label: str, run: int | None = None) -> Iterator[SampleResult]:
        """One model's results, a line at a time, of one run or of all."""
        for number in self.runs() if run is None else (run,):
            path = self.journal_path(label, number)
            if path.exists() and not self.record.mixed:
                yield from read_results(path)
            elif path.exists():
                superseded = self._superseded(label, number)
                entries = read_entries(path, self.index_path(label, number))
                yield from (read_result(path, entry) for entry in entries if entry.offset not in superseded)

    def read(self, path: Path, entry: Entry) -> SampleResult:
        """The whole result that an entry points to."""
        return read_result(path, entry)

    def add_judges(self, metric: str, names: Iterable[str]) -> None:
        """Takes down who judged a metric, before the first grade of a new one is written."""
        known = self.record.judges.get(metric, [])
        if new := set(names).difference(known):
            judges = {**self.record.judges, metric: sorted(new.union(known))}
            self.record = self.record.model_copy(update={"judges": judges})
            self._write_record()

    def set_aside(self, label: str, run: int, offsets: Container[int]) -> int:
        """Moves the lines that begin at these offsets to a file below `history`; returns how many there were."""
        if self._aside is None:
            self._aside = place_in_history(self.path)
        journal = self.journal_path(label, run)
        place = self._aside / journal.relative_to(self.path)
        with before_change(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        return take_out(journal, self.index_path(label, run), offsets, place)

    def mark_mixed(self) -> None:
        """Says that from now on lines may stand on different inputs, or be superseded by later ones of their sample."""
        self.record = self.record.model_copy(update={"mixed": True})
        self._write_record()

    def drop_superseded(self) -> None:
        """Moves superseded lines of a mixed run to `history`."""
        for label in self.labels:
            for run in self.runs():
                if superseded := self._superseded(label, run):
                    self.set_aside(label, run, superseded)

    def compact(self) -> None:
        """The same; nothing in the directory is mixed after it."""
        self.drop_superseded()
        self.record = self.record.model_copy(update={"mixed": False})
        self._write_record()

    def samples(self) -> Iterator[Sample]:
        """The samples of the run, in the order of the dataset."""
        return read_samples(self.path / "suite.json")

    def summary(self) -> Summary | None:
        """The summary, or None where the run has not ended."""
        path = self.path / "summary.json"
        return Summary.from_json(path.read_bytes()) if path.exists() else None

    def write_suite(self, config: Mapping[str, Any], samples: Iterable[Sample | bytes]) -> None:
        """`suite.json`, a sample at a time; samples may be JSON already."""

        def chunks() -> Iterator[bytes]:
            head = dump_json({"suite": self.record.suite, "config": config}, indent=True)
            yield head.rstrip().removesuffix(b"}").rstrip() + b',\n  "samples": ['
            for number, sample in enumerate(samples):
                text = sample if isinstance(sample, bytes) else sample.to_json()
                yield (b",\n    " if number else b"\n    ") + text
            yield b"\n  ]\n}\n"

        self._write(self.path / "suite.json", chunks())

    def write_summary(self, summary: Summary) -> None:
        """`summary.json`, and for several runs one per model, which also holds the rows per run."""
        if self.record.num_runs > 1:
            for model in summary.models:
                path = self.path / self.record.models[model.model] / "summary.json"
                self._write(path, [dump_json(model.to_dict(), indent=True)])
        models = [_without_runs(model) for model in summary.models]
        short = summary.model_copy(update={"models": models})
        self._write(self.path / "summary.json", [dump_json(short.to_dict(), indent=True)])

    def finish(self, *, finished: bool = True, stopped_because: str | None = None) -> None:
        """Says that the run has ended, or that and why it did before its end."""
        ended = {"finished": datetime.now(UTC) if finished else None, "stopped_because": stopped_because}
        self.record = self.record.model_copy(update=ended)
        self._write_record()

    def scrub(self, text: str) -> str:
        """The text without the secrets of this run, as it would stand in its files."""
        return self._redaction.scrub(text)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Values to keep out of all that is written from now on."""
        self._redaction.add(secrets)

    def close(self) -> None:
        """Gives the directory free for other processes."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _superseded(self, label: str, run: int) -> frozenset[int]:
        """The offsets of lines after which a later one of the same sample stands; only a mixed journal has any."""
        path = self.journal_path(label, run)
        if not self.record.mixed or not path.exists():
            return frozenset()
        table = LineTable()
        for line in self.lines(label, run):
            table.add(digest_of(line.observation.sample_id), line.offset, line.length)
        return frozenset(table.superseded())

    def _prepare(self) -> None:
        with before_anything_ran(self.path):
            if self.earlier is not None:
                lay_out(self.path, self.earlier, self.record.num_runs)
                (self.path / "summary.json").unlink(missing_ok=True)  # that of the run before it is continued
            (self.path / ".stateval" / "index").mkdir(parents=True, exist_ok=True)
            self._write_record()  # before anything that would look like somebody else's, were we killed here
            if self.record.num_runs > 1:
                for name in self.record.models.values():
                    (self.path / name).mkdir(exist_ok=True)

    def _write_record(self) -> None:
        self._write(self.path / RUN_FILE, [dump_json(self.record.to_dict(), indent=True)])

    def _write(self, path: Path, chunks: Iterable[bytes]) -> None:
        write_whole(path, map(self._redaction.scrub_json, chunks))


def _continued(earlier: RunRecord, today: RunRecord, path: Path) -> RunRecord:
    """The record of a run that goes on: begun when it was begun, and mixed where anything it stands on has changed."""
    other_source = today.cached not in (earlier.cached, str(path))
    changed = other_source or earlier.inputs != today.inputs or earlier.inputs.dataset is None
    return today.model_copy(
        update={
            "models": earlier.models,
            "cached": today.cached if other_source else earlier.cached,
            "started": earlier.started,
            "resumed": [*earlier.resumed, today.started],
            "mixed": earlier.mixed or changed,
            "judges": {key: names for key, names in earlier.judges.items() if _same_grader(key, earlier, today)},
        }
    )


def _same_grader(metric: str, earlier: RunRecord, today: RunRecord) -> bool:
    return earlier.inputs.graders.get(metric) == today.inputs.graders.get(metric)


def _without_runs(model: ModelSummary) -> ModelSummary:
    return model.model_copy(update={"runs": None})
