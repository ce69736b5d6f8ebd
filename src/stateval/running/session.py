"""A whole run of a plan: where its results go, what is written before the first sample, and what is left at the end."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stateval import __version__
from stateval.redaction import Redaction, secrets_of_environment
from stateval.results.directory import ResultsDirectory, default_directory
from stateval.running.baseline import load_baselines
from stateval.running.events import EventChannel
from stateval.running.keys import run_inputs, suite_identity
from stateval.running.plan import RunPlan
from stateval.running.runner import RunOutcome, run_plan


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Session:
    """A finished run. The directory of a run that was not to be saved goes when this object goes."""

    outcome: RunOutcome
    directory: ResultsDirectory
    saved: bool = True


@dataclass(frozen=True, slots=True)
class Destination:
    """Where results go: `path`, or a new directory below `.stateval/runs`; `save=False`: nowhere that lasts.

    With `fresh` an unfinished run in the directory is moved to its history instead of being an error.
    """

    path: Path | None = None
    save: bool = True
    fresh: bool = False


async def run_session(
    plan: RunPlan,
    *,
    samples: int,
    destination: Destination,
    channel: EventChannel | None = None,
    handle_signals: bool = False,
) -> Session:
    """Runs a plan on its dataset of so many samples, which has been checked.

    Raises UsageError where results cannot be written or a baseline cannot be had, ResultsLocked, or SetupError: nothing
    has run then.
    """
    baselines = load_baselines(plan)
    if destination.save:
        path = destination.path or default_directory(plan.name)
    else:
        path = Path(tempfile.mkdtemp(prefix="stateval-"))
    try:
        with _begun(plan, path, samples=samples, fresh=destination.fresh) as directory:
            outcome = await run_plan(
                plan,
                directory,
                samples=samples,
                channel=channel,
                handle_signals=handle_signals,
                lasting=destination.save,
                baselines=baselines,
            )
        session = Session(outcome, directory, destination.save)
    except BaseException:
        if not destination.save:
            shutil.rmtree(path, ignore_errors=True)
        raise
    if not destination.save:
        weakref.finalize(session, shutil.rmtree, path, ignore_errors=True)
    return session


@contextmanager
def _begun(plan: RunPlan, path: Path, *, samples: int, fresh: bool) -> Iterator[ResultsDirectory]:
    redaction = Redaction(plan.secrets | secrets_of_environment())
    with ResultsDirectory.begin(
        path,
        suite=plan.name,
        identity=suite_identity(plan),
        labels=[model.label for model in plan.models],
        num_runs=plan.num_runs,
        planned=samples,
        version=__version__,
        inputs=run_inputs(plan),
        on_error=plan.on_error,
        pass_threshold=plan.pass_threshold,
        fresh=fresh,
        redaction=redaction,
    ) as directory:
        provenance = {"dataset_provenance": dict(plan.dataset.provenance), "stateval_version": __version__}
        directory.write_suite({**plan.config, **provenance}, plan.dataset)
        yield directory
