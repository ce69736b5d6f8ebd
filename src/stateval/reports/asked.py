"""What samples ask, by id, for those who read results in the order in which they ended."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from stateval.records.digest import digest_of
from stateval.records.sample import Sample
from stateval.results.directory import ResultsDirectory
from stateval.results.lines import LineTable
from stateval.results.reading import Results


def knows_samples(results: Results) -> bool:
    """Whether the samples are known: not where a run was stopped before it had written them."""
    return not isinstance(results, ResultsDirectory) or (results.path / "suite.json").exists()


def known_samples(results: Results) -> Iterator[Sample]:
    """The samples of a run, or none where they are not known."""
    return results.samples() if knows_samples(results) else iter(())


@contextmanager
def kept_aside(texts: Iterable[tuple[str, str]]) -> Iterator[Callable[[str], str | None]]:
    """A function from a sample's id to its text, None where there is none.

    The texts lie in a temporary file as long as the context lasts; memory holds about thirty bytes of each.
    """
    with tempfile.TemporaryFile() as file:
        places = _written(file, texts)

        def find(key: str) -> str | None:
            place = places.find(digest_of(key))
            if place is None:
                return None
            file.seek(place[0])
            return file.read(place[1]).decode("utf-8", "surrogatepass")

        yield find


def _written(file: BinaryIO, texts: Iterable[tuple[str, str]]) -> LineTable:
    places = LineTable()
    offset = 0
    for key, text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        file.write(encoded)
        places.add(digest_of(key), offset, len(encoded))
        offset += len(encoded)
    return places
