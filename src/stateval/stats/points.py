"""One number per sample: what every interval and comparison starts from.

Repeats of one sample are not independent, so they are averaged within the sample first: three runs of four tasks are
four numbers, not twelve (Miller, "Adding Error Bars to Evals", 2024).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import eq, lt

from stateval.stats.table import Selection

_OWN_CLUSTER = 0x9E3779B97F4A7C15


@dataclass(slots=True)
class Points:
    """One value per sample, in ascending order of the samples' digests; 28 bytes a sample.

    `samples` and `clusters` are digests (`records.digest.digest_of`); a sample without a cluster has one of its own.
    `trials` is the number of observations that a value is the mean of.
    """

    samples: array[int] = field(default_factory=lambda: array("Q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    clusters: array[int] = field(default_factory=lambda: array("Q"))
    trials: array[int] = field(default_factory=lambda: array("I"))

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.values)

    @property
    def n_clusters(self) -> int:
        """The number of clusters; equal to `n` where no two samples share one."""
        return self.n if self.is_unclustered else len(set(self.clusters))

    @property
    def is_unclustered(self) -> bool:
        """Whether each value is a sample of its own, and none has a cluster: found out without keeping any."""
        return unclustered(self.samples, self.clusters)

    @property
    def is_binary(self) -> bool:
        """Whether every value is 0 or 1, exactly."""
        return self.values.count(0.0) + self.values.count(1.0) == self.n

    def append(self, sample: int, cluster: int, values: Sequence[float]) -> None:
        """Adds the mean of one sample's values, of which there is at least one; 0 as cluster means none."""
        self.samples.append(sample)
        self.values.append(values[0] if len(values) == 1 else math.fsum(values) / len(values))
        self.clusters.append(cluster or own_cluster(sample))
        self.trials.append(len(values))


def own_cluster(sample: int) -> int:
    """The cluster of a sample that has none; never the digest of a cluster that is named like the sample."""
    return sample ^ _OWN_CLUSTER


def unclustered(samples: array[int], clusters: array[int]) -> bool:
    """Whether these ascending samples are all different and none has a cluster, or their clusters ascend too."""
    own = _ascends(samples) and all(map(eq, clusters, map(own_cluster, samples)))
    return own or _ascends(clusters)


def sample_points(
    selection: Selection, metric: str, *, errored: float | None, value_of: Callable[[float], float] | None = None
) -> Points:
    """The metric's mean over each sample's observations.

    Args:
        errored: what an observation without a value counts as. None leaves it out, and a sample with no other too.
        value_of: what a value counts as, for instance 1.0 where it passes and 0.0 where not; not asked of `errored`.

    Raises KeyError for a metric that the table does not have.
    """
    at_once = _observed_once(selection, metric, errored) if value_of is None else None
    if at_once is not None:
        return at_once
    points = Points()
    for sample, cluster, values in grouped(selection, metric, errored=errored, value_of=value_of):
        points.append(sample, cluster, values)
    return points


def observation_points(
    selection: Selection, metric: str, *, errored: float | None, value_of: Callable[[float], float] | None = None
) -> Points:
    """Each observation as a point of its own, where a mean over repeats would be another thing: percentiles.

    Repeats of a sample are one cluster, so that they do not count as independent. Arguments as of `sample_points`.
    """
    points = Points()
    for sample, cluster, values in grouped(selection, metric, errored=errored, value_of=value_of):
        for value in values:
            points.append(sample, cluster, (value,))
    return points


def grouped(
    selection: Selection, metric: str, *, errored: float | None, value_of: Callable[[float], float] | None = None
) -> Iterator[tuple[int, int, list[float]]]:
    """(sample, cluster, values of its observations) in ascending order of the samples; arguments as of `sample_points`.

    The cluster is 0 where the sample has none. A sample without any value is left out.
    """
    samples, clusters, column = selection.table.columns(metric)
    current, cluster, values = 0, 0, list[float]()
    for row in selection.sample_order().rows:
        if samples[row] != current:
            if values:
                yield current, cluster, values
            current, cluster, values = samples[row], clusters[row], []
        value = column[row]
        if not math.isnan(value):
            values.append(value if value_of is None else value_of(value))
        elif errored is not None:
            values.append(errored)
    if values:
        yield current, cluster, values


def _ascends(numbers: array[int]) -> bool:
    """Whether each number is above the one before it, so that no two are equal."""
    return all(map(lt, numbers, islice(numbers, 1, None)))


def _observed_once(selection: Selection, metric: str, errored: float | None) -> Points | None:
    """The points where no sample was observed twice, made a column at a time; None where some was, or is left out."""
    order = selection.sample_order()
    if not order.is_once:
        return None
    _, clusters, column = selection.table.columns(metric)
    values = array("d", map(column.__getitem__, order.rows))
    if any(map(math.isnan, values)):
        if errored is None:
            return None
        values = array("d", (errored if math.isnan(value) else value for value in values))
    own = array("Q", map(_OWN_CLUSTER.__xor__, order.samples))
    if any(clusters):
        own = array("Q", (clusters[row] or alone for row, alone in zip(order.rows, own, strict=True)))
    return Points(order.samples[:], values, own, array("I", [1]) * len(values))
