"""The samples of a run, from its `suite.json`, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stateval.errors import ResultsError
from stateval.records.encoding import load_json
from stateval.records.sample import Sample

_BEGINS = b'"samples": ['


class SampleLookup:
    """Samples by id; of each only its place in the file is kept. Raises ResultsError for a damaged file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places = {key: (offset, length) for key, offset, length in _places(path)}

    def __getitem__(self, key: str) -> Sample:
        offset, length = self._places[key]
        with self._path.open("rb") as file:
            file.seek(offset)
            return Sample.from_json(file.read(length))


def read_samples(path: Path) -> Iterator[Sample]:
    """The samples in the order of the dataset."""
    for line, _ in _lines(path):
        yield _sample(line, path)


def raw_samples(path: Path) -> Iterator[bytes]:
    """The JSON of each sample, in the order of the dataset."""
    return (text for text, _ in _lines(path))


def _places(path: Path) -> Iterator[tuple[str, int, int]]:
    for line, offset in _lines(path):
        yield _sample(line, path).key, offset, len(line)


def _lines(path: Path) -> Iterator[tuple[bytes, int]]:
    """(sample's JSON, its offset): `suite.json` is written with one sample a line."""
    offset = 0
    begun = False
    if not path.exists():
        raise ResultsError(f"{path}: there is no such file; the run was stopped before it was written")
    with path.open("rb") as file:
        for line in file:
            if begun and line.startswith(b"    {"):
                text = line.strip().removesuffix(b",")
                yield text, offset + line.index(b"{")
            begun = begun or line.strip() == _BEGINS
            offset += len(line)


def _sample(line: bytes, path: Path) -> Sample:
    try:
        return Sample.model_validate(load_json(line))
    except ValueError as error:
        raise ResultsError(f"{path}: a line is no sample: {error}") from error
