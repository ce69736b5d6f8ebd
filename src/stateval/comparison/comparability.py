"""Whether two runs can be compared at all: the same rows, graded by the same graders.

Another agent is what a comparison is for. Another row, rubric or judge is not: the difference could be theirs.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from pydantic import Field

from stateval.errors import ResultsError
from stateval.records.digest import digest_of
from stateval.records.encoding import dump_json
from stateval.records.record import Record
from stateval.records.sample import Sample
from stateval.results.reading import Results
from stateval.results.run_record import RunInputs
from stateval.stats.table import RESOURCES, REWARD

_UNKNOWN = 0
_SHOWN = 5


class Comparability(Record):
    """What differs between two runs, and what cannot be checked.

    Graders are named by their metric; that of the reward is `reward`. `unchecked_graders` have a hash in one run only,
    or hashes of different makers; of `configuration_only` graders the configuration is the same, and nothing is known
    of their code. `moved_judges` has a sentence for each metric whose judges' endpoints answered under other
    names. Rows are those of samples in both runs; `differing_rows` names some of them.
    """

    differing_graders: list[str] = Field(default_factory=list)
    unchecked_graders: list[str] = Field(default_factory=list)
    configuration_only: list[str] = Field(default_factory=list)
    moved_judges: dict[str, str] = Field(default_factory=dict)
    n_rows: int = 0
    n_differing_rows: int = 0
    n_unchecked_rows: int = 0
    differing_rows: list[str] = Field(default_factory=list)

    @property
    def is_comparable(self) -> bool:
        """Whether nothing is known to differ."""
        return not (self.differing_graders or self.moved_judges or self.n_differing_rows)

    def differences(self) -> Iterator[str]:
        """What is known to differ, a sentence each."""
        for metric in self.differing_graders:
            yield f"{_what(metric)} differs"
        yield from self.moved_judges.values()
        if self.n_differing_rows:
            few = ", ".join(f"`{key}`" for key in self.differing_rows)
            yield f"{self.n_differing_rows:,} of {self.n_rows:,} shared samples have other rows{few and f': {few}'}"

    def doubts(self) -> Iterator[str]:
        """What cannot be checked, a sentence each."""
        if self.unchecked_graders:
            yield f"whether {_listed(self.unchecked_graders)} graded alike: one run does not say"
        if self.configuration_only:
            yield f"{_listed(self.configuration_only)}: the configuration is the same, the graders' code is not known"
        if self.n_unchecked_rows:
            yield f"whether {self.n_unchecked_rows:,} of {self.n_rows:,} shared samples had the same rows"


def compare_graders(one: Results, other: Results, metrics: Iterable[str]) -> Comparability:
    """What is known of the graders of these metrics in two runs: their hashes, and who answered as judge."""
    asked = list(metrics)
    judged = dict.fromkeys([*asked, *(one.judges if REWARD in asked else ())])
    found = compare_inputs(one.inputs, other.inputs, asked)
    return found.model_copy(update={"moved_judges": moved_judges(one.judges, other.judges, judged)})


def compare_inputs(one: RunInputs, other: RunInputs, metrics: Iterable[str]) -> Comparability:
    """What the hashes of two runs say of the graders of these metrics.

    The reward is composed of the graders, so it is concerned by all of them; latency, cost and tokens by none.
    """
    asked = list(metrics)
    keys = list(dict.fromkeys([*one.graders, *other.graders]))
    if REWARD not in asked or REWARD in keys:
        keys = [key for key in keys if key in asked]
    graders = {key: _same(one.graders.get(key), other.graders.get(key)) for key in keys}
    if REWARD in asked and REWARD not in keys:
        graders[REWARD] = _same(one.reward, other.reward)
    for key in asked:  # graders that neither run has a hash of
        graders.setdefault(key, True if key in RESOURCES else None)
    alike = [key for key, same in graders.items() if same]
    hashes = {REWARD: one.reward or "", **one.graders}
    return Comparability(
        differing_graders=[key for key, same in graders.items() if same is False],
        unchecked_graders=[key for key, same in graders.items() if same is None],
        configuration_only=[key for key in alike if ":" in hashes.get(key, "")],
    )


def moved_judges(
    one: Mapping[str, Sequence[str]], other: Mapping[str, Sequence[str]], metrics: Iterable[str]
) -> dict[str, str]:
    """A sentence for each metric that was judged by models of other names: by another one, or behind the same alias.

    The names are those that the endpoints gave; where one run has none, nothing is known to differ.
    """
    moved = {}
    for metric in metrics:
        before, after = one.get(metric), other.get(metric)
        if before and after and set(before) != set(after):
            then, now = _listed(sorted(before)), _listed(sorted(after))
            moved[metric] = f"the judge of `{metric}` answered as {then} in one run, as {now} in the other"
    return moved


class RowHashes:
    """The rows of samples, 16 bytes each; a row whose hash is not known is kept as such."""

    def __init__(self) -> None:
        self._samples = array("Q")
        self._rows = array("Q")

    def add(self, sample: str, row: str | None) -> None:
        """Takes down a sample's row, by its hash of at least 16 hexadecimal digits; all are added before `close`."""
        self.put(digest_of(sample), None if row is None else int(row[:16], 16))

    def put(self, sample: int, row: int | None) -> None:
        """The same by the digest of the id, and the number that the hash begins with."""
        self._samples.append(sample)
        self._rows.append(_UNKNOWN if row is None else row)

    def close(self) -> None:
        """Sorts them, so that they can be looked up; of repeats of a sample one stays."""
        order = sorted(range(len(self._samples)), key=self._samples.__getitem__)
        samples, rows = array("Q"), array("Q")
        for place in order:
            if not samples or samples[-1] != self._samples[place]:
                samples.append(self._samples[place])
                rows.append(self._rows[place])
        self._samples, self._rows = samples, rows

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[tuple[int, int | None]]:
        for sample, row in zip(self._samples, self._rows, strict=True):
            yield sample, None if row == _UNKNOWN else row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowHashes) and (self._samples, self._rows) == (other._samples, other._rows)

    def without(self, other: RowHashes) -> list[int]:
        """The digests of the samples that the other ones lack."""
        if self._samples == other._samples:
            return []
        return [sample for sample in self._samples if sample not in other]

    @property
    def n_unknown(self) -> int:
        """How many samples' rows are not known."""
        return self._rows.count(_UNKNOWN)

    def __contains__(self, sample: int) -> bool:
        place = bisect_left(self._samples, sample)
        return place < len(self._samples) and self._samples[place] == sample

    def of(self, sample: int) -> int | None:
        """The row of a sample, by the digest of its id; None where it is not known."""
        place = bisect_left(self._samples, sample)
        found = place < len(self._samples) and self._samples[place] == sample
        return (self._rows[place] or None) if found else None


class RowComparison:
    """The rows of the samples that two runs share: how many there are, and which differ."""

    def __init__(self, one: RowHashes, other: RowHashes) -> None:
        self.shared = self.unchecked = 0
        self.differing: set[int] = set()
        if one == other:
            self.shared, self.unchecked = len(one), one.n_unknown
            return
        for sample, row in other:
            if sample in one:
                self.shared += 1
                before = one.of(sample)
                if row is None or before is None:
                    self.unchecked += 1
                elif row != before:
                    self.differing.add(sample)


def content_hashes(results: Results) -> RowHashes | None:
    """The rows by what every tool keeps of them, input and ground truth; None where the samples are not known."""
    hashes = RowHashes()
    try:
        for sample in results.samples():
            hashes.add(sample.key, _content(sample))
    except (OSError, ResultsError):
        return None
    hashes.close()
    return hashes


def first_names(differing: set[int], keys: Iterable[str]) -> list[str]:
    """The ids of some of these samples, in the order of the run."""
    found: list[str] = []
    for key in keys:
        if len(found) == min(_SHOWN, len(differing)):
            break
        if digest_of(key) in differing and key not in found:
            found.append(key)
    return found


def _content(sample: Sample) -> str:
    said = sample.to_dict()
    whole = dump_json([said["input"], said.get("ground_truth")], sort_keys=True)
    return blake2b(whole, digest_size=8).hexdigest()


def _same(one: str | None, other: str | None) -> bool | None:
    """None where it cannot be said: hashes of another tool begin with its name and compare with its own alone."""
    if one is None or other is None or one.rpartition(":")[0] != other.rpartition(":")[0]:
        return None
    return one == other


def _what(metric: str) -> str:
    if metric == REWARD:
        return "how the reward is composed"
    return f"the grader of `{metric}` (its code, rubric, judge, settings or extractor)"


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)
