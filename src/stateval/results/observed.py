"""Observations as an index holds them: plain values, which are read several times as fast as records are made.

For statistics over many results. The names are those of `Entry` and of `Observation`. What an index says is not
checked, so whoever takes it in has to be ready for a damaged one, and to ask again for what is `checked`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pydantic_core

from stateval.results.directory import ResultsDirectory
from stateval.results.journal import Entry, JournalFit, read_entries
from stateval.results.reading import Results

ObservedRow = dict[str, Any]
"""`observation` as a dict of what there is of it, and `keys`, which may be None."""


def observed_rows(results: Results, label: str, *, checked: bool = False) -> Iterator[ObservedRow]:
    """One model's observations in all runs, in the order of `Results.entries`, with `checked` only what is sound.

    Raises ResultsError for damaged files; KeyError, TypeError or ValueError for an index that is, unless `checked`.
    """
    if checked or not isinstance(results, ResultsDirectory) or results.record.mixed:
        yield from (_plain(entry) for _, entry in results.entries(label))
        return
    for run in results.runs():
        path = results.journal_path(label, run)
        if path.exists():
            yield from _read(path, results.index_path(label, run))


def _read(path: Path, index: Path) -> Iterator[ObservedRow]:
    """The rows of the index as far as it fits, and what it lacks from the journal."""
    end, size = 0, path.stat().st_size
    with suppress(FileNotFoundError), index.open("rb") as rows, JournalFit(path) as fit:
        for text in rows:
            if not text.endswith(b"\n"):
                break
            row = pydantic_core.from_json(text, allow_inf_nan=False)
            if row["offset"] != end or not fit.has(end, row["length"], row["observation"]["sample_id"]):
                break
            end += row["length"]
            yield row
    if end < size:
        yield from (_plain(entry) for entry in read_entries(path, index) if entry.offset >= end)


def _plain(entry: Entry) -> ObservedRow:
    seen = entry.observation
    observation = {
        "sample_id": seen.sample_id,
        "run": seen.run,
        "scores": seen.scores,
        "timing": {"total": seen.timing.total, "target": seen.timing.target},
        "reward": seen.reward,
        "error": seen.error,
        "exception_type": seen.exception_type,
        "timed_out": seen.timed_out,
        "errors": seen.errors,
        "usage": None if seen.usage is None else seen.usage.to_dict(),
        "tags": seen.tags,
        "cluster": seen.cluster,
    }
    return {"observation": observation, "keys": None if entry.keys is None else entry.keys.to_dict()}
