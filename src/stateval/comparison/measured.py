"""One model of one run, read from its index into columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stateval.comparison.comparability import RowHashes
from stateval.comparison.compared import ComparedRun
from stateval.records.digest import digest_of
from stateval.records.summary import MetricSummary
from stateval.results.reading import Results
from stateval.stats.describe import mean
from stateval.stats.ledger import ledger
from stateval.stats.table import REWARD, ObservationTable, Selection


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A model's observations in all runs, and which rows they are of."""

    results: Results
    label: str
    selection: Selection
    rows: RowHashes

    @property
    def table(self) -> ObservationTable:
        """The observations."""
        return self.selection.table

    @property
    def name(self) -> str:
        """The run as messages call it."""
        several = len(self.results.labels) > 1
        return f"{self.results.path}{f' ({self.label})' if several else ''}"

    @property
    def leaves_errors_out(self) -> bool:
        """Whether its suite said so: `on_error: exclude`."""
        return self.results.on_error == "exclude"

    @property
    def score_metrics(self) -> list[str]:
        """What was graded: the reward, where there is one, and the graders' metrics."""
        reward = [REWARD] if self.results.has_reward and REWARD not in self.results.metric_keys else []
        return [*reward, *self.results.metric_keys]

    def facts(self, metrics: Iterable[str]) -> ComparedRun:
        """What there is of it, with a ledger of each of these metrics."""
        observed = len(self.selection)
        planned = max(self.results.planned * self.results.num_runs, observed)
        threshold = self.results.pass_threshold
        return ComparedRun(
            path=str(self.results.path),
            suite=self.results.suite_name,
            model=self.label,
            planned=planned,
            observations=observed,
            samples=self.selection.n_samples,
            finished=observed == planned,
            ledgers={m: ledger(self.selection, m, planned=planned, pass_threshold=threshold) for m in metrics},
        )

    def summary(self, metric: str) -> MetricSummary:
        """The metric's means over its own observations, scored and counted."""
        values = self.selection.values(metric)
        left_out = self.leaves_errors_out or self.table.is_resource(metric)
        n_counted = len(values) if left_out else len(self.selection)
        return MetricSummary(
            n_scored=len(values),
            n_counted=n_counted,
            mean_scored=mean(values),
            mean_counted=math.fsum(values) / n_counted if n_counted else None,
            n_errors=len(self.selection) - len(values),
            n_samples=self.selection.n_samples,
        )

    def names(self, digests: set[int]) -> dict[int, str]:
        """The ids of these samples, from a second look at the index."""
        found: dict[int, str] = {}
        for key in self.keys() if digests else ():
            digest = digest_of(key)
            if digest in digests:
                found[digest] = key
                if len(found) == len(digests):
                    break
        return found

    def keys(self) -> Iterator[str]:
        """The samples' ids in the order of the run, once for each observation."""
        return (seen.sample_id for seen in self.results.observations(self.label))


def measure(results: Results, label: str) -> MeasuredRun:
    """Reads one model's numbers; no body of a result is read. Raises ResultsError for damaged files."""
    table, rows = ObservationTable(results.metric_keys), RowHashes()
    for _, entry in results.entries(label):
        table.add(entry.observation)
        rows.add(entry.observation.sample_id, entry.keys.row if entry.keys is not None else None)
    rows.close()
    return MeasuredRun(results, label, table.select(), rows)
