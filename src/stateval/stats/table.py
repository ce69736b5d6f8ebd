"""Observations as columns of numbers, so that a million of them fit into memory.

One observation takes 66 bytes, and 9 more per metric; 16 more once they have been put in order. Ids and clusters are
kept as 64-bit hashes, tags as the index of their combination, of which there are few.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import lt
from typing import Any, NamedTuple, Self

from stateval.records.digest import digest_of
from stateval.records.result import ErrorCategory, Observation
from stateval.stats.sums import RunSums

REWARD = "reward"
LATENCY = "latency"
COST = "cost"
TOKENS = "tokens"
RESOURCES = {LATENCY: LATENCY, "response_time": LATENCY, COST: COST, TOKENS: TOKENS}
"""Metrics that every run has, under all their names; a grader of the same name wins."""

_BUCKETS = 256
_BUCKET_SHIFT = 56
_UNKNOWN = math.nan
_NO_ERROR = -1
_CATEGORIES = tuple(ErrorCategory)
_CODES: dict[str, int] = {category: code for code, category in enumerate(_CATEGORIES)}
_TARGET = _CODES[ErrorCategory.TARGET]


class Cell(NamedTuple):
    """One metric of one observation: its value, or why there is none. `sample` stands for the sample's id."""

    sample: int
    value: float | None
    error: ErrorCategory | None
    timed_out: bool


@dataclass(frozen=True, slots=True)
class SampleOrder:
    """Rows in ascending order of their samples' digests; `is_once` where no two are of the same sample."""

    rows: array[int]
    samples: array[int]
    is_once: bool

    @classmethod
    def of(cls, samples: array[int], rows: Iterable[int]) -> Self:
        """The order of these rows, sorted a bucket at a time: few objects live at once."""
        buckets = [array("L") for _ in range(_BUCKETS)]
        for row in rows:
            buckets[samples[row] >> _BUCKET_SHIFT].append(row)
        ordered = array("L")
        for bucket in buckets:
            ordered.extend(sorted(bucket, key=samples.__getitem__))
        digests = array("Q", map(samples.__getitem__, ordered))
        return cls(ordered, digests, all(map(lt, digests, islice(digests, 1, None))))


class ObservationTable:
    """The observations of one model over all runs.

    Args:
        metric_keys: the graders' keys.
    """

    def __init__(self, metric_keys: Sequence[str]) -> None:
        self.metric_keys = tuple(metric_keys)
        self.exception_types: Counter[str] = Counter()
        self._sums: dict[int, RunSums] = {}
        self._tag_sets: dict[tuple[str, ...], int] = {}
        self._samples = array("Q")
        self._order: SampleOrder | None = None
        self._clusters = array("Q")
        self._runs = array("I")
        self._tags = array("I")
        self._errors = array("b")
        self._timed_out = array("b")
        self._seconds = array("d")
        self._rewards = array("d")
        self._latency, self._cost, self._tokens = array("d"), array("d"), array("d")
        self._resources = {LATENCY: self._latency, COST: self._cost, TOKENS: self._tokens}
        self._scores = {key: array("d") for key in self.metric_keys}
        self._grade_errors = {key: array("b") for key in self.metric_keys}
        self._columns = [(key, self._scores[key], self._grade_errors[key]) for key in self._scores]

    @classmethod
    def of(cls, observations: Iterable[Observation], metric_keys: Sequence[str]) -> Self:
        """The table of these observations."""
        table = cls(metric_keys)
        for observation in observations:
            table.add(observation)
        return table

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, observation: Observation) -> None:
        """Takes one observation in. Raises ValueError for a score that is not finite, leaving the table as it was."""
        scores, error, timing = observation.scores, _code(observation.error), observation.timing
        for value in (*scores.values(), observation.reward or 0.0):
            if not math.isfinite(value):
                raise ValueError(f"sample {observation.sample_id} has a score of {value}, which is not finite")
        self._samples.append(digest_of(observation.sample_id))
        self._clusters.append(0 if observation.cluster is None else digest_of(observation.cluster))
        self._runs.append(observation.run)
        self._tags.append(self._tag_sets.setdefault(tuple(observation.tags), len(self._tag_sets)))
        self._errors.append(error)
        self._timed_out.append(observation.timed_out)
        self._seconds.append(timing.total)
        self._rewards.append(_known(observation.reward))
        for key, column, errors in self._columns:
            column.append(scores.get(key, _UNKNOWN))
            errors.append(_code(observation.errors[key]) if key in observation.errors else error)
        self._add_resources(observation)
        if observation.run not in self._sums:
            self._sums[observation.run] = RunSums()
        self._sums[observation.run].add(observation)
        if observation.exception_type is not None:
            self.exception_types[observation.exception_type] += 1

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Takes in an observation as plain values, by the names of `Observation`: quicker, and `sums` stay empty.

        Raises KeyError, TypeError, ValueError or AttributeError for what is no such row; the table is of no use then.
        """
        scores, timing, error = row["scores"], row["timing"], _code(row.get("error"))
        reward, usage, errors, cluster = row.get("reward"), row.get("usage"), row.get("errors"), row.get("cluster")
        self._samples.append(digest_of(row["sample_id"]))
        self._clusters.append(0 if cluster is None else digest_of(cluster))
        self._runs.append(row["run"])
        self._tags.append(self._tag_sets.setdefault(tuple(row.get("tags") or ()), len(self._tag_sets)))
        self._errors.append(error)
        self._timed_out.append(row.get("timed_out") or False)
        self._seconds.append(timing["total"])
        self._rewards.append(_UNKNOWN if reward is None else reward)
        for key, column, codes in self._columns:
            column.append(scores.get(key, _UNKNOWN))
            codes.append(_code(errors[key]) if errors and key in errors else error)
        self._latency.append(timing["target"] if error != _TARGET else _UNKNOWN)
        cost = usage.get("cost") if usage is not None else None
        self._cost.append(_UNKNOWN if cost is None else cost)
        self._tokens.append(usage["prompt_tokens"] + usage["completion_tokens"] if usage is not None else _UNKNOWN)
        if row["run"] not in self._sums:
            self._sums[row["run"]] = RunSums()

    def has(self, metric: str) -> bool:
        """Whether there can be a value of this metric: a grader's key, `reward`, or one of `RESOURCES`."""
        return metric in self._scores or metric == REWARD or metric in RESOURCES

    def is_resource(self, metric: str) -> bool:
        """Whether the metric is a use of time, money or tokens rather than a score in [0, 1]."""
        return metric in RESOURCES and metric not in self._scores

    @property
    def runs(self) -> list[int]:
        """The runs that have observations, in order."""
        return sorted(self._sums)

    def sums(self, run: int) -> RunSums:
        """What one run used; zeros where it has no observations."""
        return self._sums.get(run, RunSums())

    def select(self, *, run: int | None = None, tags: Iterable[str] = ()) -> Selection:
        """The observations of one run (of all without it) that have any of these tags (all without them)."""
        rows: Sequence[int] = range(len(self))
        if run is not None and self.runs != [run]:
            rows = array("L", (row for row in rows if self._runs[row] == run))
        wanted = set(tags)
        if wanted:
            sets = {index for combination, index in self._tag_sets.items() if wanted.intersection(combination)}
            rows = array("L", (row for row in rows if self._tags[row] in sets))
        return Selection(self, rows)

    def sample_order(self, rows: Sequence[int]) -> SampleOrder:
        """These rows in ascending order of their samples. That of all rows is kept, 16 bytes a row."""
        if not isinstance(rows, range):
            return SampleOrder.of(self._samples, rows)
        if self._order is None or len(self._order.rows) != len(self):
            self._order = SampleOrder.of(self._samples, range(len(self)))
        return self._order

    def cells(self, metric: str, rows: Iterable[int]) -> Iterator[Cell]:
        """The cells of one metric, row by row. Raises KeyError for a metric that `has` does not know."""
        column, errors = self._column(metric), self._grade_errors.get(metric, self._errors)
        for row in rows:
            value, error = column[row], errors[row]
            yield Cell(
                sample=self._samples[row],
                value=None if math.isnan(value) else value,
                error=None if error == _NO_ERROR else _CATEGORIES[error],
                timed_out=bool(self._timed_out[row]),
            )

    def columns(self, metric: str) -> tuple[array[int], array[int], array[float]]:
        """By row: digest of the sample's id, of its cluster (0 where it has none), and the metric (NaN where unknown).

        Not to be changed. Raises KeyError for a metric that `has` does not know.
        """
        return self._samples, self._clusters, self._column(metric)

    def values(self, metric: str, rows: Iterable[int]) -> array[float]:
        """The known values of one metric. Raises KeyError for a metric that `has` does not know."""
        column = self._column(metric)
        is_whole = isinstance(rows, range) and len(rows) == len(column)
        return column[:] if is_whole and not any(map(math.isnan, column)) else _known_of(column, rows)

    def rewards(self, rows: Iterable[int]) -> array[float]:
        """The composed rewards, also where a grader is named `reward` and hides them as a metric."""
        return _known_of(self._rewards, rows)

    def seconds(self, rows: Iterable[int]) -> array[float]:
        """Seconds of wall time of each observation, errored ones included."""
        return _known_of(self._seconds, rows)

    def error_categories(self, rows: Iterable[int]) -> Counter[ErrorCategory]:
        """How many observations have an error of each category."""
        codes = Counter(self._errors[row] for row in rows)
        return Counter({_CATEGORIES[code]: count for code, count in codes.items() if code != _NO_ERROR})

    def distinct_samples(self, rows: Iterable[int]) -> int:
        """How many samples these observations are of; in one run each sample is observed once."""
        if len(self._sums) == 1:
            return sum(1 for _ in rows)
        return len({self._samples[row] for row in rows})

    def _add_resources(self, observation: Observation) -> None:
        usage = observation.usage
        # A conversation that failed has no length: its seconds say when it broke, not how long an answer takes.
        finished = observation.error is not ErrorCategory.TARGET
        self._latency.append(observation.timing.target if finished else _UNKNOWN)
        self._cost.append(_UNKNOWN if usage is None else _known(usage.cost))
        self._tokens.append(_UNKNOWN if usage is None else usage.total_tokens)

    def _column(self, metric: str) -> array[float]:
        if metric in self._scores:
            return self._scores[metric]
        return self._rewards if metric == REWARD else self._resources[RESOURCES[metric]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Some rows of a table."""

    table: ObservationTable
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_samples(self) -> int:
        """How many samples the rows are of; repeats of one sample count once."""
        return self.table.distinct_samples(self.rows)

    def sample_order(self) -> SampleOrder:
        """See `ObservationTable.sample_order`."""
        return self.table.sample_order(self.rows)

    def cells(self, metric: str) -> Iterator[Cell]:
        """See `ObservationTable.cells`."""
        return self.table.cells(metric, self.rows)

    def values(self, metric: str) -> array[float]:
        """The known values of the metric: those of the observations that count as scored."""
        return self.table.values(metric, self.rows)

    def n_errored(self, metric: str) -> int:
        """How many observations have no value of the metric."""
        return len(self) - len(self.values(metric))


def _known_of(column: array[float], rows: Iterable[int]) -> array[float]:
    return array("d", (value for value in map(column.__getitem__, rows) if not math.isnan(value)))


def _known(value: float | None) -> float:
    return _UNKNOWN if value is None else value


def _code(error: str | None) -> int:
    return _NO_ERROR if error is None else _CODES[error]
