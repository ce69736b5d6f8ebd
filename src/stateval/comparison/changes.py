"""Which samples fail now and passed before, and the other way round."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stateval.comparison.compared import ChangedSample, Changes
from stateval.comparison.measured import MeasuredRun
from stateval.stats.comparison import Operator, holds
from stateval.stats.points import Points, sample_points


@dataclass(slots=True)
class ChangedDigests:
    """The samples in both runs by what became of them; each is (digest, value before, value now)."""

    metric: str
    threshold: float
    newly_failing: _Samples = field(default_factory=lambda: _Samples())
    newly_passing: _Samples = field(default_factory=lambda: _Samples())
    still_failing: _Samples = field(default_factory=lambda: _Samples())
    n_still_passing: int = 0

    def listed(self, limit: int | None) -> set[int]:
        """The digests of the samples that are listed."""
        lists = (self.newly_failing, self.newly_passing, self.still_failing)
        return {digest for samples in lists for digest, _, _ in samples.first(limit)}

    def named(self, names: dict[int, str], one: MeasuredRun, other: MeasuredRun, limit: int | None) -> Changes:
        """The same with ids, at most `limit` a list."""
        errored = _Errored(one, other, self.metric)
        return Changes(
            metric=self.metric,
            threshold=self.threshold,
            n_newly_failing=len(self.newly_failing),
            n_newly_passing=len(self.newly_passing),
            n_still_failing=len(self.still_failing),
            n_still_passing=self.n_still_passing,
            newly_failing=errored.samples(self.newly_failing.first(limit), names),
            newly_passing=errored.samples(self.newly_passing.first(limit), names),
            still_failing=errored.samples(self.still_failing.first(limit), names),
        )


def changed(one: MeasuredRun, other: MeasuredRun, metric: str, threshold: float) -> ChangedDigests:
    """What became of each sample. One fails where the mean of its repeats, errored ones as 0, is below the threshold.

    Errors count as failures here whatever the suite says of its means: who reads "newly failing" wants to see them.
    """
    found = ChangedDigests(metric, threshold)
    before, now = (sample_points(run.selection, metric, errored=0.0) for run in (one, other))
    for digest, value, new_value in _shared(before, now):
        passed, passes = (holds(v, Operator.GTE, threshold) for v in (value, new_value))
        if passed and passes:
            found.n_still_passing += 1
        elif passed:
            found.newly_failing.add(digest, value, new_value)
        else:
            (found.newly_passing if passes else found.still_failing).add(digest, value, new_value)
    return found


class _Samples:
    """Digest and both values of many samples, 24 bytes each."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._values = array("d")

    def add(self, digest: int, one: float, other: float) -> None:
        self._digests.append(digest)
        self._values.extend((one, other))

    def __len__(self) -> int:
        return len(self._digests)

    def first(self, limit: int | None) -> list[tuple[int, float, float]]:
        """The greatest changes first; equal ones in the order of their digests, which no run can choose."""
        every = ((digest, self._values[2 * n], self._values[2 * n + 1]) for n, digest in enumerate(self._digests))
        return sorted(every, key=lambda sample: -abs(sample[2] - sample[1]))[:limit]


class _Errored:
    """Which samples have errored observations of a metric, in either run."""

    def __init__(self, one: MeasuredRun, other: MeasuredRun, metric: str) -> None:
        self._one, self._other = (
            sample_points(run.selection, metric, errored=1.0, value_of=_nothing) for run in (one, other)
        )

    def samples(self, found: Sequence[tuple[int, float, float]], names: dict[int, str]) -> list[ChangedSample]:
        named = [
            ChangedSample(names[digest], one, other, _has(self._one, digest), _has(self._other, digest))
            for digest, one, other in found
        ]
        return sorted(named, key=lambda sample: (-abs(sample.other - sample.one), natural(sample.id)))


def natural(text: str) -> tuple[int, str, str]:
    """What ids are sorted by: numbers by their value."""
    digits = text if text.isascii() and text.isdigit() else ""
    return (len(digits.lstrip("0")) if digits else 10**9, digits.lstrip("0"), text)


def _nothing(value: float) -> float:
    return 0.0


def _has(points: Points, digest: int) -> bool:
    place = bisect_left(points.samples, digest)
    return place < points.n and points.samples[place] == digest and points.values[place] > 0


def _shared(one: Points, other: Points) -> Iterator[tuple[int, float, float]]:
    i = j = 0
    while i < one.n and j < other.n:
        if one.samples[i] == other.samples[j]:
            yield one.samples[i], one.values[i], other.values[j]
            i, j = i + 1, j + 1
        elif one.samples[i] < other.samples[j]:
            i += 1
        else:
            j += 1
