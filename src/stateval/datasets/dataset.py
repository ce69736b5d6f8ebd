"""A dataset whose rows know where they stand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from stateval.datasets.raw import Place
from stateval.datasets.rows import Entry, RowParser
from stateval.datasets.sources import RowSource
from stateval.errors import DatasetError
from stateval.records.encoding import dump_json
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

    def unfinished(self, is_done: Callable[[str], bool]) -> Iterator[Sample]:
        """The selected samples whose ids are not done, in order; raises as iterating does."""
        return (sample for sample in self if not is_done(sample.key))

    @property
    def digest(self) -> str | None:
        """A hash of the rows as they are selected, of which no row has to be read.

        None where the files do not say it all: rows that are in memory or come from a stream, rubrics in files of their
        own once a row that names one has been read.
        """
        provenance = self.provenance
        if provenance.get("kind") != "files" or self.names_files:
            return None
        contents = [file["sha256"] for file in provenance["files"]]
        rules = [{k: v for k, v in rule.items() if k != "rows"} for rule in provenance.get("selections", ())]
        said = dump_json([contents, provenance.get("columns"), rules], sort_keys=True)
        return blake2b(said, digest_size=12).hexdigest()

    @property
    @abstractmethod
    def names_files(self) -> bool:
        """Whether a row that was read names a further file."""

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

    def unfinished(self, is_done: Callable[[str], bool]) -> Iterator[Sample]:
        """A row that is done is not even made a sample."""
        rows = 0
        for index, raw in enumerate(self._source.rows()):
            rows += 1
            if index == self.checked:
                raise self._changed()
            key = self._parser.key_of(raw, index)
            if key is not None and is_done(key):
                continue
            entry = self._parser.parse(raw, index)
            if entry.sample is None:
                raise DatasetError(entry.problems)
            if not is_done(entry.sample.key):
                yield entry.sample
        if self.checked is not None and rows < self.checked:
            raise self._changed()

    @property
    def names_files(self) -> bool:
        return self._parser.names_files

    def close(self) -> None:
        self._source.close()
