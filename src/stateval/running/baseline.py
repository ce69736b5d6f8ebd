"""The earlier runs that gates compare with: found, checked and read into tables before anything of today runs.

Reading comes first also because a finished run in today's own directory is moved away when today's begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from stateval.comparison.comparability import RowHashes, moved_judges
from stateval.errors import ResultsError, UsageError
from stateval.gates import BaselineKey, BaselineRun, Baselines, BaselineUse, baseline_uses
from stateval.records.digest import digest_of
from stateval.results.directory import ResultsDirectory
from stateval.results.opening import open_results
from stateval.results.reading import Results
from stateval.running.keys import row_hash, run_inputs
from stateval.running.plan import RunPlan
from stateval.running.summary import is_finished
from stateval.stats.table import RESOURCES, REWARD, ObservationTable

_SHOWN = 3
_ADVICE = "make a new baseline with today's suite, or compare all the same with `force: true`, which marks the verdict"


def load_baselines(plan: RunPlan, *, own: Path | None = None) -> Baselines:
    """What `evaluate_gates` compares today's run with, read before that run begins; empty where no gate asks.

    A directory stands for the last finished run in it: its own, or the latest below its `history`. Reads the dataset
    once, for the hashes of its rows. Raises UsageError where a baseline cannot be had, or must not be compared with
    today's run because rows or graders differ or cannot be checked; `force` marks those instead. `own` is the directory
    of a run that goes on, which is no earlier one.
    """
    uses = list(dict.fromkeys(baseline_uses(plan.gates, plan.metric_keys)))
    if not uses:
        return {}
    comparing = _Comparing(plan, own)
    return {
        BaselineKey(use.baseline.results, use.metric, model.label): comparing.run(use, model.label)
        for use in uses
        for model in plan.models
    }


def with_judges(baselines: Baselines, plan: RunPlan, judges: Mapping[str, Sequence[str]]) -> Baselines:
    """The baselines, which say now where others answered as judges than in today's finished run."""
    return {
        key: replace(run, moved=tuple(moved_judges(run.judges, judges, _judged_by(key.metric, plan)).values()))
        for key, run in baselines.items()
    }


def _judged_by(metric: str, plan: RunPlan) -> Iterable[str]:
    """The metrics on whose judges a metric stands: itself, or those that the reward is composed of."""
    if metric != REWARD or metric in plan.metric_keys or plan.reward is None:
        return (metric,)
    return plan.metric_keys if plan.reward.metrics is None else plan.reward.metrics


@dataclass(slots=True)
class _Earlier:
    """One model of an earlier run, whole."""

    results: Results
    label: str
    table: ObservationTable
    rows: RowHashes


class _Comparing:
    """Opens each directory, and reads each model of it, once."""

    def __init__(self, plan: RunPlan, own: Path | None) -> None:
        self._plan = plan
        self._own = own
        self._inputs = run_inputs(plan)
        self._opened: dict[str, Results] = {}
        self._read: dict[tuple[str, str], _Earlier] = {}

    def run(self, use: BaselineUse, label: str) -> BaselineRun:
        name = use.baseline.results
        if name not in self._opened:
            self._opened[name] = _last_finished(Path(name), self._own)
        results = self._opened[name]
        _require_metric(results, use.metric)
        theirs = _label(results, label)
        if (name, theirs) not in self._read:
            self._read[name, theirs] = _read(results, theirs)
        earlier = self._read[name, theirs]
        marks = [*self._of_graders(earlier, use.metric), *self._of_rows(earlier)]
        if marks and not use.baseline.force:
            raise UsageError(
                f"the baseline {results.path} does not compare with this run: {'; '.join(marks)}; {_ADVICE}"
            )
        return BaselineRun(earlier.table, tuple(marks), earlier.results.judges)

    @cached_property
    def _rows(self) -> RowHashes:
        rows = RowHashes()
        for sample in self._plan.dataset:
            rows.add(sample.key, row_hash(sample))
        rows.close()
        return rows

    def _of_graders(self, earlier: _Earlier, metric: str) -> Iterator[str]:
        today, then = self._inputs, earlier.results.inputs
        if metric in RESOURCES and metric not in self._plan.metric_keys:
            return
        keys: Iterable[str] = (metric,)
        if metric == REWARD and metric not in self._plan.metric_keys:
            composer = self._plan.reward
            keys = self._plan.metric_keys if composer is None or composer.metrics is None else composer.metrics
            yield from _differing("the reward", today.reward, then.reward)
        for key in keys:
            what = f"the grader `{key}` (its code, rubric, judge, settings or extractor)"
            yield from _differing(what, today.graders.get(key), then.graders.get(key))

    def _of_rows(self, earlier: _Earlier) -> Iterator[str]:
        shared, unknown, differing = 0, 0, list[int]()
        for sample, row in earlier.rows:
            now = self._rows.of(sample)
            if now is not None:
                shared += 1
                unknown += row is None
                if row not in (None, now):
                    differing.append(sample)
        if not shared:
            raise UsageError(
                f"the baseline {earlier.results.path} has no sample of today's dataset; compare by equal ids"
            )
        if differing:
            first = ", ".join(f"`{key}`" for key in self._names(set(differing[:_SHOWN])))
            yield f"{len(differing)} of {shared} samples in both have other rows (such as {first})"
        if unknown:
            yield f"whether {unknown} of {shared} samples in both had the same rows is not known"

    def _names(self, digests: set[int]) -> Iterator[str]:
        return (sample.key for sample in self._plan.dataset if digest_of(sample.key) in digests)


def _last_finished(path: Path, own: Path | None) -> Results:
    """The last finished run in a directory. Raises UsageError, with what to do, where there is none."""
    found: Results | None = None
    problem = f"the baseline {path} does not exist"
    for place in (path, *_earlier_runs(path)):
        if not place.exists() or place == own:
            continue
        try:
            found = open_results(place)
        except (UsageError, ResultsError) as error:
            problem = f"the baseline cannot be read: {error}"
            continue
        if _is_finished(found):
            return found
        problem = f"the baseline {path} is of a run that did not finish"
    raise UsageError(f"{problem}; a baseline is the directory of a finished run: make it by a run without `baseline`")


def _earlier_runs(path: Path) -> list[Path]:
    history = path / "history"
    return sorted((p for p in history.iterdir() if p.is_dir()), reverse=True) if history.is_dir() else []


def _is_finished(results: Results) -> bool:
    if isinstance(results, ResultsDirectory):
        return results.record.finished is not None
    summary = results.summary()
    return summary is None or summary.finished


def _require_metric(results: Results, metric: str) -> None:
    known = [*results.metric_keys, *([REWARD] if results.has_reward else [])]
    if metric not in known and not (metric in RESOURCES and metric not in results.metric_keys):
        listed = ", ".join(f"`{key}`" for key in known) or "none"
        raise UsageError(f"the baseline {results.path} has no metric `{metric}`; its metrics are: {listed}")


def _label(results: Results, label: str) -> str:
    if label in results.labels:
        return label
    if len(results.labels) == 1:
        return results.labels[0]
    listed = ", ".join(f"`{name}`" for name in results.labels)
    raise UsageError(f"the baseline {results.path} has no model `{label}`; its models are: {listed}")


def _read(results: Results, label: str) -> _Earlier:
    """Reads the index of one model. Raises UsageError where the run did not reach all its samples."""
    table, rows = ObservationTable(results.metric_keys), RowHashes()
    try:
        for _, entry in results.entries(label):
            table.add(entry.observation)
            rows.add(entry.observation.sample_id, entry.keys.row if entry.keys is not None else None)
    except ResultsError as error:
        raise UsageError(f"the baseline cannot be read: {error}") from error
    if not is_finished({label: table}, planned_per_run=results.planned, num_runs=results.num_runs):
        planned = results.planned * results.num_runs
        raise UsageError(
            f"the baseline {results.path} did not finish: {len(table):,} of {planned:,} samples of `{label}`; "
            "finish it, or name another directory"
        )
    rows.close()
    return _Earlier(results, label, table, rows)


def _differing(what: str, today: str | None, then: str | None) -> Iterator[str]:
    """Hashes of other tools have a name before a colon; they compare with none of ours."""
    if then is None or ":" in then or today is None:
        yield f"whether {what} is the same is not known"
    elif today != then:
        yield f"{what} is not the same"
