"""One model of one run, read from its index into columns of numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator

from stateval.comparison.comparability import RowHashes
from stateval.comparison.compared import ComparedRun
from stateval.records.digest import digest_of
from stateval.records.summary import MetricSummary
from stateval.results.observed import ObservedRow, observed_rows
from stateval.results.reading import Results
from stateval.stats.describe import mean
from stateval.stats.ledger import ledger
from stateval.stats.points import Points, sample_points
from stateval.stats.table import REWARD, ObservationTable, Selection

_LONGEST_KEPT = 32


class MeasuredRun:
    """A model's observations in all runs, which rows they are of, and the ids that are not long.

    No body of a result is read. Some 120 bytes an observation are kept. Raises ResultsError for damaged files.
    """

    def __init__(self, results: Results, label: str) -> None:
        self.results = results
        self.label = label
        self._points: tuple[str, float | None, Points] | None = None
        try:
            self._take_in(observed_rows(results, label))
        except (KeyError, TypeError, ValueError, AttributeError):  # the index is damaged
            self._take_in(observed_rows(results, label, checked=True))

    def _take_in(self, observed: Iterator[ObservedRow]) -> None:
        self.table, self.rows, self._ids = ObservationTable(self.results.metric_keys), RowHashes(), _Ids()
        samples, table, rows, ids = self._samples, self.table, self.rows, self._ids
        for row in observed:
            observation, keys = row["observation"], row["keys"] or {}
            table.add_row(observation)
            ids.add(observation["sample_id"])
            rows.put(samples[-1], int(keys["row"][:16], 16) if keys.get("row") else None)
        rows.close()

    @property
    def selection(self) -> Selection:
        """All observations."""
        return self.table.select()

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

    def points(self, metric: str, errored: float | None) -> Points:
        """See `sample_points`. The last ones are kept: they are asked for more than once."""
        if self._points is None or self._points[:2] != (metric, errored):
            self._points = (metric, errored, sample_points(self.selection, metric, errored=errored))
        return self._points[2]

    def facts(self, metrics: Iterable[str]) -> ComparedRun:
        """What there is of it, with a ledger of each of these metrics."""
        observed = len(self.table)
        planned = max(self.results.planned * self.results.num_runs, observed)
        threshold = self.results.pass_threshold
        return ComparedRun(
            path=str(self.results.path),
            suite=self.results.suite_name,
            model=self.label,
            planned=planned,
            observations=observed,
            samples=len(self.rows),
            finished=observed == planned,
            ledgers={m: ledger(self.selection, m, planned=planned, pass_threshold=threshold) for m in metrics},
        )

    def summary(self, metric: str) -> MetricSummary:
        """The metric's means over its own observations, scored and counted."""
        values = self.selection.values(metric)
        left_out = self.leaves_errors_out or self.table.is_resource(metric)
        n_counted = len(values) if left_out else len(self.table)
        return MetricSummary(
            n_scored=len(values),
            n_counted=n_counted,
            mean_scored=mean(values),
            mean_counted=math.fsum(values) / n_counted if n_counted else None,
            n_errors=len(self.table) - len(values),
            n_samples=len(self.rows),
        )

    def names(self, digests: set[int]) -> dict[int, str]:
        """The ids of these samples; where some of them are long, from a second look at the index."""
        found: dict[int, str] = {}
        for row, digest in enumerate(self._samples if digests else ()):
            key = self._ids[row] if digest in digests else None
            if key is not None:
                found[digest] = key
        for key in self.keys() if len(found) < len(digests) else ():
            if (digest := digest_of(key)) in digests:
                found[digest] = key
        return found

    def without_value(self, metric: str, digests: set[int]) -> set[int]:
        """Which of these samples have an observation without a value of the metric."""
        samples, _, values = self.table.columns(metric)
        if not digests or not any(map(math.isnan, values)):
            return set()
        return {sample for sample, value in zip(samples, values, strict=True) if math.isnan(value)} & digests

    def keys(self) -> Iterator[str]:
        """The samples' ids in the order of the run, once for each observation."""
        return (seen.sample_id for seen in self.results.observations(self.label))

    @property
    def _samples(self) -> array[int]:
        return self.table.columns("latency")[0]


class _Ids:
    """Texts one after the other, those of more than `_LONGEST_KEPT` bytes left out."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("Q")
        self._lengths = array("b")

    def add(self, key: str) -> None:
        encoded = key.encode("utf-8", "surrogatepass")
        is_short = len(encoded) <= _LONGEST_KEPT
        self._text += encoded if is_short else b""
        self._ends.append(len(self._text))
        self._lengths.append(len(encoded) if is_short else -1)

    def __getitem__(self, row: int) -> str | None:
        end, length = self._ends[row], self._lengths[row]
        return None if length < 0 else self._text[end - length : end].decode("utf-8", "surrogatepass")
