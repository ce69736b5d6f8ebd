"""A dataset whose rows know where they stand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stateval.datasets.raw import Place
from stateval.datasets.rows import Entry, RowParser
from stateval.datasets.sources import RowSource
from stateval.errors import DatasetError
from stateval.records.sample import Sample
from stateval.records.source import Problem, Source


class PlacedDataset(ABC):
    """The rows of a source as samples, in order; iterating again reads the source again.

    It follows `records.protocols.Dataset`. A context manager: leaving it deletes what it has put on disk.
    `checked` is how many samples the last check found: iterating gives as many.
    """

    checked: int | None = None

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Every row, also those that are wrong or not selected. Raises DatasetError where reading cannot go on."""

    @property
    @abstractmethod
    def provenance(self) -> Mapping[str, Any]:
        """Where the rows came from, and how many there are once they have all been read."""

    @property
    @abstractmethod
    def path(self) -> str | None:
        """The file, where there is exactly one."""

    @property
    @abstractmethod
    def warnings(self) -> Sequence[Problem]:
        """What looked odd in the rows read so far."""

    @abstractmethod
    def close(self) -> None:
        """Deletes what the dataset has put on disk."""

    def why_empty(self) -> str:
        """Why no row is selected, in a sentence; to be asked after all rows have been read."""
        return "the dataset holds no rows"

    def __iter__(self) -> Iterator[Sample]:
        """The selected samples.

        Raises DatasetError at a bad row, naming file and line, and where there are more or fewer samples than the check
        found.
        """
        count = 0
        for entry in self.entries():
            if entry.sample is None:
                raise DatasetError(entry.problems)
            if entry.selected:
                if count == self.checked:
                    raise self._changed()
                count += 1
                yield entry.sample
        if self.checked is not None and count < self.checked:
            raise self._changed()

    def _changed(self) -> DatasetError:
        what = "has changed since it was checked" if self.path else "the rows have changed since they were checked"
        return DatasetError([Problem(what, Source(path=self.path), "start the run again")])

    def __enter__(self) -> PlacedDataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RowDataset(PlacedDataset):
    """All rows of one source."""

    def __init__(self, source: RowSource, parser: RowParser) -> None:
        self._source = source
        self._parser = parser
        self._rows: int | None = None

    def entries(self) -> Iterator[Entry]:
        rows = 0
        for raw in self._source.rows():
            yield self._parser.parse(raw, rows)
            rows += 1
        self._rows = rows
        problem = self._parser.never_seen(self.path) if rows else None
        if problem:
            yield Entry(Place(self.path, rows), None, (problem,))

    @property
    def provenance(self) -> Mapping[str, Any]:
        counted = {} if self._rows is None else {"rows": self._rows}
        mapped = {"columns": dict(self._parser.columns)} if self._parser.columns else {}
        return {**self._source.provenance, **mapped, **counted}

    @property
    def path(self) -> str | None:
        return self._source.path

    @property
    def warnings(self) -> Sequence[Problem]:
        return [*self._source.warnings, *self._parser.warnings.values()]

    def close(self) -> None:
        self._source.close()
