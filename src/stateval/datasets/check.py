"""The first reading of a dataset: everything that is wrong with it is said before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stateval.datasets.dataset import PlacedDataset
from stateval.datasets.identities import IdDigests, few
from stateval.datasets.raw import Place
from stateval.datasets.rows import Entry
from stateval.errors import DatasetError
from stateval.records.digest import digest_of
from stateval.records.sample import Sample
from stateval.records.source import Problem, Source

_MOST_PROBLEMS = 20

SampleCheck = Callable[[Sample], str | None]


@dataclass(frozen=True, slots=True)
class DatasetCheck:
    """A dataset without faults: `count` samples are selected of `rows` rows. `warnings` do not stop a run."""

    count: int
    rows: int
    warnings: tuple[Problem, ...] = ()


def check_dataset(dataset: PlacedDataset, *, checks: Sequence[SampleCheck] = ()) -> DatasetCheck:
    """Reads every row, also those that a filter leaves out, and keeps eight bytes for each.

    Args:
        dataset: what `open_dataset` or `select` returned.
        checks: called with each selected sample; what they return is a complaint about it.

    Raises:
        DatasetError: with up to 20 problems and the number of further ones: rows that cannot be understood, ids that
            occur twice (compared as text), complaints. Or with one: there are no rows, or a filter leaves none.
    """
    dataset.checked = None
    problems = _Problems()
    ids = IdDigests()
    rows = selected = 0
    for entry in dataset.entries():
        rows += 1
        selected += entry.selected
        problems.add_all(entry.problems)
        if entry.sample is None:
            continue
        ids.add(entry.sample.key)
        if entry.selected:
            complaints = (check(entry.sample) for check in checks)
            problems.add_all([Problem(text, entry.place.source()) for text in complaints if text])
    problems.add_all(*_same_ids(dataset, ids))
    problems.raise_if_any()
    if selected == 0:
        raise DatasetError([Problem(dataset.why_empty(), Source(path=dataset.path))])
    dataset.checked = selected
    return DatasetCheck(selected, rows, tuple(dataset.warnings))


class _Problems:
    """The first problems, and how many more there are."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._more = 0

    def add_all(self, problems: Sequence[Problem], more: int = 0) -> None:
        room = _MOST_PROBLEMS - len(self._kept)
        self._kept += problems[:room]
        self._more += len(problems[room:]) + more

    def raise_if_any(self) -> None:
        if self._kept:
            rest = [Problem(f"and {self._more:,} more problem{'s' if self._more > 1 else ''}")] if self._more else []
            raise DatasetError([*self._kept, *rest])


def _same_ids(dataset: PlacedDataset, ids: IdDigests) -> tuple[list[Problem], int]:
    """Rows whose id an earlier row has, and how many more such rows there are; reads the rows again if any are."""
    suspects, too_many = ids.repeated()
    chosen = few(suspects, _MOST_PROBLEMS)
    first: dict[str, Place] = {}
    problems: list[Problem] = []
    for entry in dataset.entries() if chosen else ():
        if entry.sample is None or digest_of(entry.sample.key) not in chosen:
            continue
        if entry.sample.key in first:
            problems.append(_same_id(entry, first[entry.sample.key]))
            if len(problems) == _MOST_PROBLEMS:
                break
        first.setdefault(entry.sample.key, entry.place)
    return problems, too_many - len(problems) if problems else 0


def _same_id(entry: Entry, earlier: Place) -> Problem:
    assigned = "" if entry.own_id else "; this row has none of its own and is known by its position, counted from 0"
    key = entry.sample.key if entry.sample else ""
    return Problem(
        f"the id `{key}` is already that of {earlier.source()}{assigned}",
        entry.place.source(),
        "ids are compared as text and must differ",
    )
