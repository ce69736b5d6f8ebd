"""Which samples fail now and passed before, and the other way round."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stateval.comparison.compared import ChangedSample, Changes
from stateval.comparison.measured import MeasuredRun
from stateval.stats.comparison import Operator, holds
from stateval.stats.points import Points

_NUMBERS = re.compile(r"([0-9]+)")


class SampleList:
    """Digest and both values of many samples, 24 bytes each."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._values = array("d")

    def add(self, digest: int, one: float, other: float) -> None:
        """Takes down one sample."""
        self._digests.append(digest)
        self._values.extend((one, other))

    def __len__(self) -> int:
        return len(self._digests)

    def first(self, limit: int | None) -> list[tuple[int, float, float]]:
        """The greatest changes first; equal ones in the order of their digests, which no run can choose."""
        every = ((digest, self._values[2 * n], self._values[2 * n + 1]) for n, digest in enumerate(self._digests))
        return sorted(every, key=lambda sample: -abs(sample[2] - sample[1]))[:limit]


@dataclass(slots=True)
class ChangedDigests:
    """The samples in both runs by what became of them."""

    metric: str
    threshold: float
    newly_failing: SampleList = field(default_factory=SampleList)
    newly_passing: SampleList = field(default_factory=SampleList)
    still_failing: SampleList = field(default_factory=SampleList)
    n_still_passing: int = 0

    def listed(self, limit: int | None) -> set[int]:
        """The digests of the samples that are listed."""
        lists = (self.newly_failing, self.newly_passing, self.still_failing)
        return {digest for samples in lists for digest, _, _ in samples.first(limit)}

    def named(self, names: dict[int, str], one: MeasuredRun, other: MeasuredRun, limit: int | None) -> Changes:
        """The same with ids, at most `limit` a list."""
        listed = self.listed(limit)
        errored = tuple(run.without_value(self.metric, listed) for run in (one, other))

        def samples(found: SampleList) -> list[ChangedSample]:
            return _ordered(_named(found.first(limit), names, *errored))

        return Changes(
            metric=self.metric,
            threshold=self.threshold,
            n_newly_failing=len(self.newly_failing),
            n_newly_passing=len(self.newly_passing),
            n_still_failing=len(self.still_failing),
            n_still_passing=self.n_still_passing,
            newly_failing=samples(self.newly_failing),
            newly_passing=samples(self.newly_passing),
            still_failing=samples(self.still_failing),
        )


def changed(one: MeasuredRun, other: MeasuredRun, metric: str, threshold: float) -> ChangedDigests:
    """What became of each sample. One fails where the mean of its repeats, errored ones as 0, is below the threshold.

    Errors count as failures here whatever the suite says of its means: who reads "newly failing" wants to see them.
    """
    found = ChangedDigests(metric, threshold)
    for digest, value, new_value in _shared(one.points(metric, 0.0), other.points(metric, 0.0)):
        passed, passes = holds(value, Operator.GTE, threshold), holds(new_value, Operator.GTE, threshold)
        if passed and passes:
            found.n_still_passing += 1
        elif passed:
            found.newly_failing.add(digest, value, new_value)
        else:
            (found.newly_passing if passes else found.still_failing).add(digest, value, new_value)
    return found


def natural(text: str) -> list[tuple[int, str]]:
    """What ids are sorted by: `sample-2` before `sample-10`.

    >>> sorted(["s10", "s2", "10", "9"], key=natural)
    ['9', '10', 's2', 's10']
    """
    parts = _NUMBERS.split(text)
    return [(len(part.lstrip("0")), part.lstrip("0")) if number % 2 else (0, part) for number, part in enumerate(parts)]


def _named(
    found: Sequence[tuple[int, float, float]], names: dict[int, str], one_errored: set[int], other_errored: set[int]
) -> list[ChangedSample]:
    return [
        ChangedSample(names[digest], one, other, digest in one_errored, digest in other_errored)
        for digest, one, other in found
    ]


def _ordered(samples: list[ChangedSample]) -> list[ChangedSample]:
    return sorted(samples, key=lambda sample: (-abs(sample.other - sample.one), natural(sample.id)))


def _shared(one: Points, other: Points) -> Iterator[tuple[int, float, float]]:
    """(digest, both values) of the samples in both, which are in ascending order."""
    if one.samples == other.samples:
        yield from zip(one.samples, one.values, other.values, strict=True)
        return
    i = j = 0
    while i < one.n and j < other.n:
        if one.samples[i] == other.samples[j]:
            yield one.samples[i], one.values[i], other.values[j]
            i, j = i + 1, j + 1
        elif one.samples[i] < other.samples[j]:
            i += 1
        else:
            j += 1
