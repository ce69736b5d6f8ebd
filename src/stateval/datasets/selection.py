"""Which rows of a dataset are used: tags, a hold-out split, the first so many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from stateval.datasets.dataset import PlacedDataset
from stateval.datasets.raw import kind_of
from stateval.datasets.rows import Entry
from stateval.datasets.split import SplitSpec
from stateval.errors import DatasetError, UsageError
from stateval.records.sample import Sample
from stateval.records.source import Problem, Source

_MOST_TAGS_KEPT = 1000
_MOST_TAGS_SHOWN = 20


def select(
    dataset: PlacedDataset,
    *,
    tags: Sequence[str] = (),
    exclude_tags: Sequence[str] = (),
    split: SplitSpec | None = None,
    max_samples: int | None = None,
) -> PlacedDataset:
    """The rows that have any of `tags` and none of `exclude_tags`, on the side of `split`; the first `max_samples` of
    these.

    Reading it raises DatasetError where rows have no ids of their own and a split is asked for. Selections can be
    laid over each other.

    Raises UsageError where `max_samples` is less than 1.
    """
    if max_samples is not None and (not isinstance(max_samples, int) or isinstance(max_samples, bool)):
        raise UsageError(f"`max_samples` must be a whole number, not {kind_of(max_samples)}")
    if max_samples is not None and max_samples >= 2**63:
        raise UsageError("`max_samples` must be at most 2**63 - 1, or be left out for all rows")
    if max_samples is not None and max_samples < 1:
        raise UsageError(f"`max_samples` is {max_samples}; it must be 1 or more, or be left out for all rows")
    if not (tags or exclude_tags or split or max_samples):
        return dataset
    return _Selection(dataset, _names(tags), _names(exclude_tags), split, max_samples)


def _names(tags: Sequence[str]) -> tuple[str, ...]:
    return (tags,) if isinstance(tags, str) else tuple(tags)


class _Selection(PlacedDataset):
    def __init__(
        self,
        inner: PlacedDataset,
        tags: tuple[str, ...],
        exclude_tags: tuple[str, ...],
        split: SplitSpec | None,
        max_samples: int | None,
    ) -> None:
        self._inner = inner
        self._tags = tags
        self._exclude_tags = exclude_tags
        self._split = split
        self._max_samples = max_samples
        self._seen: Counter[str] = Counter()
        self._offered = 0
        self._selected: int | None = None

    def __iter__(self) -> Iterator[Sample]:
        return islice(super().__iter__(), self._max_samples)

    def entries(self) -> Iterator[Entry]:
        offered = taken = 0
        seen: Counter[str] = Counter()
        for entry in self._inner.entries():
            if entry.sample is None or not entry.selected:
                yield entry
                continue
            offered += 1
            self._count_tags(seen, entry.sample)
            if self._fits(entry, entry.sample) and taken != self._max_samples:
                taken += 1
                yield entry
            else:
                yield entry._replace(selected=False)
        self._seen, self._offered, self._selected = seen, offered, taken

    @property
    def provenance(self) -> Mapping[str, Any]:
        rules = {
            "tags": list(self._tags),
            "exclude_tags": list(self._exclude_tags),
            "split": self._split.model_dump() if self._split else None,
            "max_samples": self._max_samples,
            "rows": self._selected,
        }
        said = {name: rule for name, rule in rules.items() if rule}
        inner = self._inner.provenance
        return {**inner, "selections": [*inner.get("selections", []), said]}

    @property
    def path(self) -> str | None:
        return self._inner.path

    @property
    def warnings(self) -> Sequence[Problem]:
        return [*self._inner.warnings, *(self._unknown_tag(tag) for tag in self._tags_without_rows())]

    @property
    def names_files(self) -> bool:
        return self._inner.names_files

    def close(self) -> None:
        self._inner.close()

    def why_empty(self) -> str:
        if not self._offered:
            return self._inner.why_empty()
        rules = []
        if self._tags:
            rules.append(f"with one of the tags {_listed(self._tags)}")
        if self._exclude_tags:
            rules.append(f"without the tags {_listed(self._exclude_tags)}")
        if self._split:
            rules.append(f"on the side `{self._split.use}` of the split")
        known = f"; {self._known_tags()}" if self._tags or self._exclude_tags else ""
        return f"of {self._offered:,} rows there is none {' and '.join(rules)}{known}"

    def _fits(self, entry: Entry, sample: Sample) -> bool:
        if self._tags and not any(tag in sample.tags for tag in self._tags):
            return False
        if any(tag in sample.tags for tag in self._exclude_tags):
            return False
        if self._split is None:
            return True
        if not entry.own_id:
            raise DatasetError(
                [
                    Problem(
                        "has no `id`, and a split needs ids",
                        entry.place.source(),
                        "a row without an id is known by its position, so it would change sides when the file changes",
                    )
                ]
            )
        return self._split.side_of(sample.id) == self._split.use

    def _count_tags(self, seen: Counter[str], sample: Sample) -> None:
        if self._tags or self._exclude_tags:
            wanted = (*self._tags, *self._exclude_tags)
            seen.update(tag for tag in set(sample.tags) if tag in seen or tag in wanted or len(seen) < _MOST_TAGS_KEPT)

    def _tags_without_rows(self) -> list[str]:
        if self._selected is None:
            return []
        return [tag for tag in (*self._tags, *self._exclude_tags) if tag not in self._seen]

    def _unknown_tag(self, tag: str) -> Problem:
        return Problem(f"no row has the tag `{tag}`", Source(path=self.path), self._known_tags())

    def _known_tags(self) -> str:
        if not self._seen:
            return "no row has any tag"
        most = self._seen.most_common(_MOST_TAGS_SHOWN)
        more = ", ..." if len(self._seen) > len(most) else ""
        return "tags are " + ", ".join(f"{tag} ({rows})" for tag, rows in most) + more


def _listed(tags: Sequence[str]) -> str:
    return ", ".join(f"`{tag}`" for tag in tags)
