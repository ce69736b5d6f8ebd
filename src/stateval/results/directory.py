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

import itertools
import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock
from pydantic import Field

from stateval.errors import ResultsError, ResultsLocked, UsageError
from stateval.records.encoding import dump_json, load_json
from stateval.records.record import Record
from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.records.summary import ModelSummary, Summary
from stateval.redaction import Redaction
from stateval.results.journal import Entry, Journal, read_entries, read_results
from stateval.results.naming import file_names
from stateval.results.samples import read_samples
from stateval.results.storage import before_anything_ran, write_whole

logger = logging.getLogger(__name__)

_RUN_FILE = Path(".stateval") / "run.json"
_KEEP = {".lock", "history"}


class RunInputs(Record):
    """Hashes of what a run stands on: equal hashes mean the same thing, in any two runs.

    `dataset` is that of the rows as they are selected; `targets` are by the model's label, `graders` by metric key,
    each with its extractor. `reward` is None where no reward is composed.
    """

    dataset: str | None = None
    targets: dict[str, str] = Field(default_factory=dict)
    graders: dict[str, str] = Field(default_factory=dict)
    reward: str | None = None


_NO_INPUTS = RunInputs()


class RunRecord(Record):
    """`.stateval/run.json`: whose run this is. `identity` is a hash of the suite's name and targets.

    `on_error` and `pass_threshold` say how its observations count.
    """

    suite: str
    identity: str
    models: dict[str, str]
    num_runs: int = 1
    planned: int = 0
    inputs: RunInputs = _NO_INPUTS
    on_error: str = "fail"
    pass_threshold: float = 1.0
    stateval: str = ""
    started: datetime
    finished: datetime | None = None
    stopped_because: str | None = None


def default_directory(suite: str, *, below: Path | None = None) -> Path:
    """`.stateval/runs/<suite>-<time>-<random>` in the current directory: distinct also within one second."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", suite).strip("-.")[:60] or "suite"
    time = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return (below or Path.cwd()) / ".stateval" / "runs" / f"{name}-{time}-{secrets.token_hex(3)}"


class ResultsDirectory:
    """A directory of results: read it as it is, or `begin` a run in it and write."""

    def __init__(self, path: Path, record: RunRecord, *, redaction: Redaction | None = None) -> None:
        self.path = path
        self.record = record
        self._redaction = (redaction or Redaction()).sparing([*record.models, *record.models.values()])
        self._lock: filelock.BaseFileLock | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """The results in this directory. Raises ResultsError where there are none."""
        record = _run_record(path)
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
        inputs: RunInputs = _NO_INPUTS,
        on_error: str = "fail",
        pass_threshold: float = 1.0,
        fresh: bool = False,
        redaction: Redaction | None = None,
    ) -> Self:
        """Takes the directory for a new run. A finished run in it is moved to `history` first, whole.

        Raises UsageError where the directory cannot be written, holds other things, or holds an unfinished run and
        `fresh` is not set; ResultsLocked where another process works in it.
        """
        path = path.absolute()  # an agent may change the current directory
        lock = _locked(path)
        try:
            _make_room(path, suite=suite, identity=identity, fresh=fresh)
            record = RunRecord(
                suite=suite,
                identity=identity,
                models=file_names(labels),
                num_runs=num_runs,
                planned=planned,
                inputs=inputs,
                on_error=on_error,
                pass_threshold=pass_threshold,
                stateval=version,
                started=datetime.now(UTC),
            )
            directory = cls(path, record, redaction=redaction)
            directory._lock = lock
            directory._prepare()
        except BaseException:
            lock.release()
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

    def entries(self, label: str) -> Iterator[tuple[Path, Entry]]:
        """(file, line without its body) of one model's results in all runs; `read_result` fetches a body."""
        for run in self.runs():
            path = self.journal_path(label, run)
            if path.exists():
                for entry in read_entries(path, self.index_path(label, run)):
                    yield path, entry

    def results(self, label: str, run: int | None = None) -> Iterator[SampleResult]:
        """One model's results, a line at a time, of one run or of all."""
        for number in self.runs() if run is None else (run,):
            path = self.journal_path(label, number)
            if path.exists():
                yield from read_results(path)

    def samples(self) -> Iterator[Sample]:
        """The samples of the run, in the order of the dataset."""
        return read_samples(self.path / "suite.json")

    def summary(self) -> Summary | None:
        """The summary, or None where the run has not ended."""
        path = self.path / "summary.json"
        return Summary.from_json(path.read_bytes()) if path.exists() else None

    def write_suite(self, config: Mapping[str, Any], samples: Iterable[Sample]) -> None:
        """`suite.json`, a sample at a time."""

        def chunks() -> Iterator[bytes]:
            head = dump_json({"suite": self.record.suite, "config": config}, indent=True)
            yield head.rstrip().removesuffix(b"}").rstrip() + b',\n  "samples": ['
            for number, sample in enumerate(samples):
                yield (b",\n    " if number else b"\n    ") + sample.to_json()
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

    def finish(self, *, stopped_because: str | None = None) -> None:
        """Says that the run has ended, or why it stopped before its end."""
        ended = {"finished": None if stopped_because else datetime.now(UTC), "stopped_because": stopped_because}
        self.record = self.record.model_copy(update=ended)
        self._write_record()

    def scrub(self, text: str) -> str:
        """The text without the secrets of this run, as it would stand in its files."""
        return self._redaction.scrub(text)

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

    def _prepare(self) -> None:
        with before_anything_ran(self.path):
            (self.path / ".stateval" / "index").mkdir(parents=True, exist_ok=True)
            if self.record.num_runs > 1:
                for name in self.record.models.values():
                    (self.path / name).mkdir(exist_ok=True)
            self._write_record()

    def _write_record(self) -> None:
        self._write(self.path / _RUN_FILE, [dump_json(self.record.to_dict(), indent=True)])

    def _write(self, path: Path, chunks: Iterable[bytes]) -> None:
        write_whole(path, map(self._redaction.scrub_json, chunks))


def _locked(path: Path) -> filelock.BaseFileLock:
    with before_anything_ran(path):
        path.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path / ".lock")
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            busy = True
        else:
            busy = False
    if busy:
        raise ResultsLocked(f"another process is running in {path}; wait for it, or choose another `--output`")
    return lock


def _make_room(path: Path, *, suite: str, identity: str, fresh: bool) -> None:
    present = [entry for entry in path.iterdir() if entry.name not in _KEEP]
    if not present:
        return
    with before_anything_ran(path):
        record = _run_record(path)
    if record is None:
        raise UsageError(
            f"{path} is not empty and holds no results of stateval; choose an empty or new directory for `--output`"
        )
    if not _has_results(path, record):
        return
    if record.finished is None and not fresh:
        whose = "this suite" if record.identity == identity else f"another suite ({record.suite!r})"
        raise UsageError(
            f"{path} holds an unfinished run of {whose}; choose another `--output`, or move it to "
            f"{path / 'history'} and begin anew with `--fresh`"
        )
    with before_anything_ran(path):
        _move_to_history(path, record)


def _has_results(path: Path, record: RunRecord) -> bool:
    names = record.models.values()
    journals = [
        *(path / f"{name}.jsonl" for name in names),
        *(f for name in names for f in path.glob(f"{name}/run_*.jsonl")),
    ]
    return any(journal.exists() and journal.stat().st_size > 0 for journal in journals)


def _move_to_history(path: Path, record: RunRecord) -> None:
    """Moves what the run wrote, and nothing else that lies there."""
    name = record.started.strftime("%Y%m%dT%H%M%SZ")
    candidates = (path / "history" / (f"{name}-{n}" if n > 1 else name) for n in itertools.count(1))
    place = next(place for place in candidates if not (place / ".stateval").exists())
    place.mkdir(parents=True, exist_ok=True)
    models = record.models.values()
    written = ["suite.json", "summary.json", *models, *(f"{name}.jsonl" for name in models)]
    # The record goes last: whoever is interrupted here finds an ended run again and goes on with the same place.
    for entry in (*written, ".stateval"):
        if (path / entry).exists():
            (path / entry).rename(place / entry)
    logger.info("the earlier run was moved to %s", place)


def _run_record(path: Path) -> RunRecord | None:
    file = path / _RUN_FILE
    if not file.exists():
        return None
    try:
        return RunRecord.model_validate(load_json(file.read_bytes()))
    except ValueError as error:
        raise ResultsError(f"{file} is damaged; move the directory away") from error


def _without_runs(model: ModelSummary) -> ModelSummary:
    return model.model_copy(update={"runs": None})
