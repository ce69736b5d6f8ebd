"""Runs beside the first of them, model by model: the whole comparison."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stateval.comparison.changes import ChangedDigests, changed, natural
from stateval.comparison.comparability import (
    Comparability,
    RowComparison,
    RowHashes,
    compare_graders,
    content_hashes,
    first_names,
)
from stateval.comparison.compared import Comparison, MetricComparison, ModelComparison
from stateval.comparison.differences import compare_metric
from stateval.comparison.measured import MeasuredRun
from stateval.errors import UsageError
from stateval.results.reading import Results
from stateval.stats.multiple import holm
from stateval.stats.table import COST, LATENCY, RESOURCES, REWARD, TOKENS

_SOME = 3


@dataclass(frozen=True, slots=True)
class Wish:
    """What to compare: these metrics (all, where there are none), with intervals of this confidence.

    With `force` what is not comparable is compared and marked. Lists of ids are cut after `limit`; None: never.
    """

    metrics: tuple[str, ...] = ()
    confidence: float = 0.95
    force: bool = False
    limit: int | None = None


def compare_runs(runs: Sequence[Results], wish: Wish) -> Comparison:
    """Every run beside the first; of one run with several models, every model beside the first.

    Models of the same name are compared, and the only models of two runs whatever they are called. A run is compared
    as far as it came. Reads the index of each run twice: once for numbers, once for the ids of those samples that are
    listed. Raises UsageError where there is nothing to compare, or where rows or graders differ and `force` is not
    set; ResultsError for damaged files.
    """
    found: list[ModelComparison] = []
    first: dict[str, MeasuredRun] = {}
    for one, label, other, other_label in _pairs(runs):
        if label not in first:
            first = {label: MeasuredRun(one, label)}  # one at a time: a model takes some 120 bytes an observation
        found.append(_Pair(first[label], MeasuredRun(other, other_label), wish).compared())
    found = _adjusted(found)
    return Comparison(marks=list(_marks(found)), confidence=wish.confidence, models=found)


def _pairs(runs: Sequence[Results]) -> Iterator[tuple[Results, str, Results, str]]:
    """(run, its model, other run, its model), those of the same first model together."""
    first, *others = runs
    if not others:
        if len(first.labels) < 2:
            raise UsageError(
                f"{first.path} is one run of one model, so there is nothing to compare it with: give a second run, "
                "`stateval compare A B`"
            )
        for label in first.labels[1:]:
            yield first, first.labels[0], first, label
        return
    for other in others:
        _require_common_model(first, other)
    for label in first.labels:
        for other in others:
            if label in other.labels:
                yield first, label, other, label
            elif len(first.labels) == len(other.labels) == 1:
                yield first, label, other, other.labels[0]


def _require_common_model(one: Results, other: Results) -> None:
    for results in (one, other):
        if not results.labels:
            raise UsageError(f"{results.path} holds no result yet")
    alone = len(one.labels) == len(other.labels) == 1
    if not alone and not set(one.labels) & set(other.labels):
        raise UsageError(
            f"no model is in both runs: {one.path} has {_listed(one.labels)}, {other.path} has "
            f"{_listed(other.labels)}; give the two models that you mean, such as `stateval compare {_place(one)} "
            f"{_place(other)}`"
        )


def _place(results: Results) -> Path:
    """What stands for a single model: its file, or of several runs the directory with its files."""
    for label in results.labels:
        for path, _ in results.entries(label):
            return path.parent if re.fullmatch(r"run_\d+\.jsonl", path.name) else path
    return results.path


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two models and what is wanted of them."""

    one: MeasuredRun
    other: MeasuredRun
    wish: Wish

    def compared(self) -> ModelComparison:
        """All of it. Raises UsageError where they share no sample, or are not comparable."""
        metrics = self._metrics()
        rows = RowComparison(self.one.rows, self.other.rows)
        if not rows.shared:
            raise UsageError(self._nothing_shared())
        comparability = self._comparability(metrics, rows)
        if not comparability.is_comparable and not self.wish.force:
            raise UsageError(self._refusal(comparability))
        compared, found = self._numbers(metrics)
        only = self.one.rows.without(self.other.rows), self.other.rows.without(self.one.rows)
        names = self._names(found, only)
        return ModelComparison(
            one=self.one.facts(m for m in metrics if m in self.one.score_metrics),
            other=self.other.facts(m for m in metrics if m in self.other.score_metrics),
            n_shared=rows.shared,
            n_only_in_one=len(only[0]),
            n_only_in_other=len(only[1]),
            metrics=[metric for metric in compared if metric.n or self.wish.metrics or not metric.less_is_better],
            changes=[digests.named(names, self.one, self.other, self.wish.limit) for digests in found],
            comparability=comparability,
            notes=list(self._notes(metrics)),
            only_in_one=sorted((names[d] for d in only[0] if d in names), key=natural),
            only_in_other=sorted((names[d] for d in only[1] if d in names), key=natural),
        )

    def _numbers(self, metrics: Sequence[str]) -> tuple[list[MetricComparison], list[ChangedDigests]]:
        compared, found = [], []
        listed = self._listed_by(metrics)
        for metric in metrics:
            compared.append(compare_metric(self.one, self.other, metric, self.wish.confidence))
            if metric in listed:
                found.append(changed(self.one, self.other, metric, self.one.results.pass_threshold))
        return compared, found

    def _metrics(self) -> list[str]:
        """The metrics that both have, or those that are asked for, in this order."""
        shared = [key for key in self.one.score_metrics if key in self.other.score_metrics]
        resources = [name for name in (LATENCY, COST, TOKENS) if name not in shared]
        if not self.wish.metrics:
            return [*shared, *resources]
        asked = [metric if metric in shared else RESOURCES.get(metric, metric) for metric in self.wish.metrics]
        for metric in asked:
            if metric not in (*shared, *resources):
                known = _listed([*shared, *resources])
                raise UsageError(
                    f"there is no metric `{metric}` in both {self.one.name} and {self.other.name}; both have {known}"
                )
        return list(dict.fromkeys(asked))

    def _listed_by(self, metrics: Sequence[str]) -> list[str]:
        """What says that a sample fails: the reward, or each of the graders without one."""
        return [REWARD] if REWARD in metrics else [m for m in metrics if not self.one.table.is_resource(m)]

    def _comparability(self, metrics: Sequence[str], rows: RowComparison) -> Comparability:
        graders = compare_graders(self.one.results, self.other.results, metrics)
        if rows.unchecked and self.one.results is not self.other.results:
            rows = self._rows_by_content() or rows
        elif self.one.results is self.other.results:
            rows.unchecked = 0
        return graders.model_copy(
            update={
                "n_rows": rows.shared,
                "n_differing_rows": len(rows.differing),
                "n_unchecked_rows": rows.unchecked,
                "differing_rows": first_names(rows.differing, self.one.keys()) if rows.differing else [],
            }
        )

    def _rows_by_content(self) -> RowComparison | None:
        one, other = content_hashes(self.one.results), content_hashes(self.other.results)
        if one is None or other is None:
            return None
        return RowComparison(_restricted(one, self.one.rows), _restricted(other, self.other.rows))

    def _names(self, found: Sequence[ChangedDigests], only: tuple[list[int], list[int]]) -> dict[int, str]:
        limit = self.wish.limit
        listed = {digest for digests in found for digest in digests.listed(limit)}
        return self.one.names(listed | set(only[0][:limit])) | self.other.names(set(only[1][:limit]))

    def _notes(self, metrics: Sequence[str]) -> Iterator[str]:
        for run, other in ((self.one, self.other), (self.other, self.one)):
            alone = [key for key in run.score_metrics if key not in other.score_metrics]
            if alone and not self.wish.metrics:
                yield f"only {run.name} has {_listed(alone)}"
        one, other_run = self.one.results, self.other.results
        if one.pass_threshold != other_run.pass_threshold:
            yield (
                f"samples fail below {one.pass_threshold:g} here, as in {self.one.name}; "
                f"{self.other.name} says {other_run.pass_threshold:g}"
            )
        if self.one.leaves_errors_out != self.other.leaves_errors_out:
            yield "only one of the suites leaves errors out of its means; here they count as 0 in both"

    def _nothing_shared(self) -> str:
        ids = [_listed(_first(run.keys())) for run in (self.one, self.other)]
        return (
            f"no sample is in both {self.one.name} ({ids[0]}, ...) and {self.other.name} ({ids[1]}, ...): samples are "
            "the same where their `id` is; give the rows of both datasets an `id`"
        )

    def _refusal(self, comparability: Comparability) -> str:
        differences = "; ".join(comparability.differences())
        ways = ["compare all the same with `--force`, which marks the result"]
        graders = [*comparability.differing_graders, *comparability.moved_judges]
        others = [m for m in self._metrics() if m != REWARD and m not in graders]
        if graders and not comparability.n_differing_rows:
            kept = f"`stateval run SUITE --cached {shlex.quote(str(self.one.results.path))}`"
            ways.append(f"grade its conversations anew ({kept})")
        if others and not comparability.n_differing_rows:
            options = " ".join(f"--metric {metric}" for metric in others)
            ways.append(f"leave those metrics out (`{options}`)")
        return (
            f"{self.one.name} and {self.other.name} do not compare: {differences}. Run the earlier one again as it is "
            f"now, {', or '.join(reversed(ways))}"
        )


def _restricted(rows: RowHashes, to: RowHashes) -> RowHashes:
    """The rows of the samples that have a result; without a known row where the samples do not say."""
    found = RowHashes()
    for sample, _ in to:
        found.put(sample, rows.of(sample))
    return found


def _adjusted(found: Sequence[ModelComparison]) -> list[ModelComparison]:
    """Holm's p-values, over all comparisons of a metric, where there are several."""
    if len(found) < 2:
        return list(found)
    by_metric: dict[str, list[float]] = {}
    for metric in _with_p(found):
        by_metric.setdefault(metric.metric, []).append(metric.p_value or 0.0)
    adjusted = {metric: iter(holm(p_values)) for metric, p_values in by_metric.items()}

    def changed_metric(metric: MetricComparison) -> MetricComparison:
        p_adjusted = None if metric.p_value is None else next(adjusted[metric.metric])
        return metric.model_copy(update={"p_adjusted": p_adjusted})

    return [model.model_copy(update={"metrics": [changed_metric(m) for m in model.metrics]}) for model in found]


def _with_p(found: Sequence[ModelComparison]) -> Iterator[MetricComparison]:
    return (metric for model in found for metric in model.metrics if metric.p_value is not None)


def _marks(found: Sequence[ModelComparison]) -> Iterator[str]:
    """What must be known first, each thing once."""
    said: dict[str, None] = {}
    for model in found:
        differences = "; ".join(model.comparability.differences())
        if differences:
            said[f"NOT COMPARABLE, compared all the same (--force): {differences}"] = None
        for run in (model.one, model.other):
            if not run.finished:
                missing = f"{run.observations:,} of {run.planned:,} planned observations"
                said[f"UNFINISHED: {run.path} ({run.model}) has {missing}"] = None
        said.update({f"CANNOT BE CHECKED: {doubt}": None for doubt in model.comparability.doubts()})
    return iter(sorted(said, key=lambda mark: mark.split(" ")[0] != "NOT"))


def _first(keys: Iterator[str]) -> list[str]:
    return [key for key, _ in zip(keys, range(_SOME), strict=False)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
