"""A whole run of a plan: where its results go, what is written before the first sample, and what is left at the end."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from stateval import __version__
from stateval.errors import UsageError
from stateval.records.sample import Sample
from stateval.redaction import Redaction, secrets_of_environment
from stateval.results.directory import ResultsDirectory, default_directory
from stateval.results.opening import open_results
from stateval.results.reading import Results
from stateval.results.run_record import RunRecord, read_run_record
from stateval.results.samples import raw_samples
from stateval.results.taking import find_run
from stateval.running.baseline import load_baselines
from stateval.running.events import EventChannel
from stateval.running.judge_checks import load_judge_checks
from stateval.running.kept import Kept, Reader, Slot
from stateval.running.keys import run_inputs, settings_of, suite_identity
from stateval.running.plan import RunPlan
from stateval.running.regrade import kept_conversations
from stateval.running.resume import take_up
from stateval.running.runner import RunOutcome, run_plan


def _say_nothing(note: str) -> None:
    return None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Session:
    """A finished run. The directory of a run that was not to be saved goes when this object goes."""

    outcome: RunOutcome
    directory: ResultsDirectory
    saved: bool = True


@dataclass(frozen=True, slots=True)
class Destination:
    """Where results go, and what becomes of a run that lies there.

    Args:
        path: the directory. Without it: the latest unfinished run of the suite below `.stateval/runs`, else a new one.
        save: False: nowhere that lasts.
        fresh: an unfinished run in `path` is moved to its history; without `path` a new directory is made.
        resume: a run must be there to go on, be it finished.
        retry_errors: samples that errored run again, also those of a finished run.
        cached: results whose conversations are graded anew; no target is run.
        below: the directory in which `.stateval/runs` is looked for and made; the current one by default.
    """

    path: Path | None = None
    save: bool = True
    fresh: bool = False
    resume: bool = False
    retry_errors: bool = False
    cached: Path | None = None
    below: Path | None = None

    @property
    def reopens(self) -> bool:
        """Whether a finished run is to go on, too."""
        return self.resume or self.retry_errors


def find_destination(plan: RunPlan, destination: Destination) -> Destination:
    """The same with its path found: that of the run that is to go on, where there is one.

    A run is only taken up unasked where its targets are what they were. Raises UsageError for wishes that contradict
    one another, and where a run was to go on and there is none.
    """
    if destination.fresh and destination.reopens:
        raise UsageError("`--fresh` begins anew and `--resume` or `--retry-errors` goes on; choose one")
    if not destination.save:
        if destination.reopens:
            raise UsageError("`--no-save` keeps nothing, so there is nothing to resume; leave it out")
        return replace(destination, path=None)
    runs = default_directory(plan.name, below=destination.below).parent
    if destination.path is not None:
        if destination.reopens and read_run_record(destination.path) is None:
            raise UsageError(f"{destination.path}: there is no run of stateval here to go on with")
        return destination
    found = None if destination.fresh else find_run(runs, partial(_is_wanted, plan, destination))
    if found is None and destination.reopens:
        kind = "run" if destination.retry_errors else "unfinished run"
        raise UsageError(f"there is no {kind} of this suite below {runs}; name its directory: `--resume DIR`")
    return replace(destination, path=found or default_directory(plan.name, below=destination.below))


def already_checked(plan: RunPlan, destination: Destination) -> int | None:
    """How many samples there are, where a run goes on and nothing that it stands on has changed since it began.

    None: the dataset is to be checked (again).
    """
    record = read_run_record(destination.path) if destination.path and not destination.fresh else None
    if record is None or record.mixed or record.identity != _identity(plan, destination):
        return None
    if record.finished is not None and not destination.reopens:
        return None
    if record.inputs.dataset is None or record.inputs != run_inputs(plan, plan.dataset.digest):
        return None
    plan.dataset.checked = record.planned
    return record.planned


async def run_session(
    plan: RunPlan,
    *,
    samples: int,
    destination: Destination,
    channel: EventChannel | None = None,
    handle_signals: bool = False,
    tell: Callable[[str], None] = _say_nothing,
) -> Session:
    """Runs a plan on its dataset of so many samples, which has been checked.

    `tell` is called with what becomes of an earlier start of the run, a sentence each, before anything runs.

    Raises UsageError where results cannot be written, a baseline or kept results cannot be had; ResultsLocked; or
    SetupError: nothing has run then.
    """
    path = destination.path if destination.save else Path(tempfile.mkdtemp(prefix="stateval-"))
    if path is None:
        raise ValueError("the destination has no path; `find_destination` finds one")
    try:
        judge_checks = load_judge_checks(plan)
        baselines = load_baselines(plan, own=path if destination.reopens else None)
        with ExitStack() as files:
            source = _source(plan, destination, path)
            cached = open_results(source) if source is not None else None
            conversations = kept_conversations(plan, cached, files) if cached is not None else None
            directory = files.enter_context(_begun(plan, path, samples=samples, destination=destination))
            if _is_suite_to_write(directory):
                directory.write_suite(_config(plan, destination), _samples_of(plan, cached, directory))
            kept = take_up(
                plan,
                directory,
                files,
                samples=samples,
                retry_errors=destination.retry_errors,
                graded_anew=conversations is not None,
            )
            if conversations is not None:
                kept = _graded_anew(kept, conversations, source)
            for note in kept.notes:
                tell(note)
            outcome = await run_plan(
                plan,
                directory,
                samples=samples,
                kept=kept,
                channel=channel,
                handle_signals=handle_signals,
                lasting=destination.save,
                baselines=baselines,
                judge_checks=judge_checks,
            )
        session = Session(outcome, directory, destination.save)
    except BaseException:
        if not destination.save:
            shutil.rmtree(path, ignore_errors=True)
        raise
    if not destination.save:
        weakref.finalize(session, shutil.rmtree, path, ignore_errors=True)
    return session


def _graded_anew(kept: Kept, conversations: Mapping[Slot, Reader], source: Path | None) -> Kept:
    notes = (f"the conversations of {source} are graded anew; no target is run", *kept.notes)
    return replace(kept, again=conversations, only_kept=True, notes=notes)


def _source(plan: RunPlan, destination: Destination, path: Path) -> Path | None:
    """Whose conversations are graded anew. A run in its own directory has moved them away when it began."""
    cached = destination.cached
    if cached is None or cached.absolute() != path.absolute():
        return cached
    record = read_run_record(path)
    goes_on = record is not None and record.finished is None and record.identity == _identity(plan, destination)
    return path / record.cached if record is not None and goes_on and record.cached else cached


def _is_suite_to_write(directory: ResultsDirectory) -> bool:
    """Whether `suite.json` is not there or says something else than today's suite."""
    earlier = directory.earlier
    if earlier is None or directory.record.mixed or not (directory.path / "suite.json").exists():
        return True
    return earlier.settings != directory.record.settings


def _is_wanted(plan: RunPlan, destination: Destination, record: RunRecord) -> bool:
    if record.identity != _identity(plan, destination):
        return False
    if record.finished is not None and not destination.retry_errors:
        return False
    return destination.resume or record.inputs.targets == run_inputs(plan).targets


def _identity(plan: RunPlan, destination: Destination) -> str:
    return suite_identity(plan, regraded=destination.cached is not None)


@contextmanager
def _begun(plan: RunPlan, path: Path, *, samples: int, destination: Destination) -> Iterator[ResultsDirectory]:
    redaction = Redaction(plan.secrets | secrets_of_environment())
    with ResultsDirectory.begin(
        path,
        suite=plan.name,
        identity=_identity(plan, destination),
        labels=[model.label for model in plan.models],
        num_runs=plan.num_runs,
        planned=samples,
        version=__version__,
        inputs=run_inputs(plan, plan.dataset.digest),
        suite_file=plan.suite_file,
        settings=settings_of(plan),
        cached=destination.cached.absolute() if destination.cached is not None else None,
        on_error=plan.on_error,
        pass_threshold=plan.pass_threshold,
        fresh=destination.fresh,
        reopen=destination.reopens,
        redaction=redaction,
    ) as directory:
        yield directory


def _config(plan: RunPlan, destination: Destination) -> dict[str, Any]:
    config = {**plan.config, "dataset_provenance": dict(plan.dataset.provenance), "stateval_version": __version__}
    return config | ({} if destination.cached is None else {"regraded_from": str(destination.cached)})


def _samples_of(plan: RunPlan, cached: Results | None, directory: ResultsDirectory) -> Iterable[Sample | bytes]:
    """The samples, or what results of the very same rows have kept of them."""
    if isinstance(cached, ResultsDirectory) and not cached.record.mixed:
        digest = cached.inputs.dataset
        is_own = cached.path.absolute() == directory.path and directory.moved_to is not None
        file = (directory.moved_to if is_own and directory.moved_to else cached.path) / "suite.json"
        if digest is not None and digest == plan.dataset.digest and file.exists():
            return raw_samples(file)
    return plan.dataset
