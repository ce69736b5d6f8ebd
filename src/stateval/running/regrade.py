"""Grading kept conversations anew: which kept result belongs to which sample of today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from stateval.errors import UsageError
from stateval.records.digest import digest_of
from stateval.records.encoding import dump_json
from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.records.usage import Timing
from stateval.results.directory import ResultsDirectory
from stateval.results.journal import Entry, LineReader
from stateval.results.lines import DigestSet, LineTable
from stateval.results.reading import Results
from stateval.running.kept import Reader, Slot, reader_of
from stateval.running.plan import RunPlan


def kept_conversations(plan: RunPlan, results: Results, files: ExitStack) -> Mapping[Slot, Reader]:
    """For each model and run of a plan, how to find the kept result of a sample; one line is read at a time.

    A model is that of the same label, or the only one where there is only one on both sides. A run is that of the same
    number: a repeat is never answered from another. Raises UsageError where a model or a run has no results, or no
    sample of the dataset has any. `files` closes what stays open: lines are found also when their file is moved.
    """
    others = _other_inputs(plan, results)
    readers = {
        (model.label, run): _without(others, _reader(results, label, run, files))
        for model in plan.models
        for label in [_label_of(model.label, plan, results)]
        for run in range(1, plan.num_runs + 1)
    }
    if not any(reader(digest_of(sample.key)) for sample in plan.dataset for reader in readers.values()):
        raise UsageError(f"{results.path}: no sample of the dataset has a result there; the ids must be the same")
    return readers


def _other_inputs(plan: RunPlan, results: Results) -> DigestSet:
    """The samples to which another tool's results say that something else was said; our own lines tell themselves."""
    if isinstance(results, ResultsDirectory):
        return DigestSet()
    theirs = {digest_of(sample.key): _hash_of_input(sample) for sample in results.samples()}
    return DigestSet(
        digest
        for sample in plan.dataset
        if theirs.get(digest := digest_of(sample.key), own := _hash_of_input(sample)) != own
    )


def _hash_of_input(sample: Sample) -> int:
    return hash(dump_json(sample.to_dict()["input"]))


def _without(others: DigestSet, reader: Reader) -> Reader:
    return (lambda digest: None if digest in others else reader(digest)) if others else reader


def _label_of(label: str, plan: RunPlan, results: Results) -> str:
    if label in results.labels:
        return label
    if len(plan.models) == len(results.labels) == 1:
        return results.labels[0]
    there = ", ".join(f"`{name}`" for name in results.labels) or "none"
    raise UsageError(f"{results.path}: there are no results of `{label}` to grade; there are those of {there}")


def _reader(results: Results, label: str, run: int, files: ExitStack) -> Reader:
    if isinstance(results, ResultsDirectory):
        return _of_journal(results, label, run, files)
    table = LineTable()
    file: Path | None = None
    for path, entry in results.entries(label):
        if entry.observation.run == run:
            table.add(digest_of(entry.observation.sample_id), entry.offset, entry.length)
            file = path
    if file is None:
        raise UsageError(_no_run(results, label, run))
    return reader_of(table, _of_lines(results, file, run))


def _of_journal(directory: ResultsDirectory, label: str, run: int, files: ExitStack) -> Reader:
    if run not in directory.runs() or not directory.journal_path(label, run).exists():
        raise UsageError(_no_run(directory, label, run))
    table = LineTable()
    for line in directory.lines(label, run):
        table.add(digest_of(line.observation.sample_id), line.offset, line.length)
    return reader_of(table, files.enter_context(LineReader(directory.journal_path(label, run))).read)


def _of_lines(results: Results, file: Path, run: int) -> Callable[[int, int], SampleResult]:
    nothing = Observation(sample_id="", run=run, scores={}, timing=Timing())
    return lambda offset, length: results.read(file, Entry(offset, length, nothing, None))


def _no_run(results: Results, label: str, run: int) -> str:
    if run == 1:
        return (
            f"{results.path}: there are no results of `{label}` to grade; the run was stopped before its first sample"
        )
    return f"{results.path}: there is no run {run} of `{label}` to grade; set `--num-runs`"
