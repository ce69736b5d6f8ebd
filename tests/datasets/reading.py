"""What the tests of datasets do all the time: write a file, read it, look at what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from stateval.datasets import PlacedDataset, check_dataset, open_dataset
from stateval.errors import DatasetError
from stateval.records.sample import Sample


def written(directory: Path, name: str, content: str | bytes | Iterable[Any]) -> Path:
    """A file with these bytes, this text, or these rows as JSON Lines."""
    file = directory / name
    if isinstance(content, str):
        content = content.encode("utf-8")
    elif not isinstance(content, bytes):
        content = "".join(json.dumps(row) + "\n" for row in content).encode("utf-8")
    file.write_bytes(content)
    return file


def opened(directory: Path, name: str, content: str | bytes | Iterable[Any], **options: Any) -> PlacedDataset:
    written(directory, name, content)
    return open_dataset(name, base_directory=directory, **options)


def samples_of(source: Any, directory: Path = Path(), **options: Any) -> list[Sample]:
    """The samples of a dataset that passes its check; both readings must agree."""
    dataset = open_dataset(source, base_directory=directory, **options)
    check = check_dataset(dataset)
    samples = list(dataset)
    assert check.count == len(samples)
    return samples


def complaint(source: Any, directory: Path = Path(), **options: Any) -> str:
    """What the check says about a dataset that must not pass it."""
    with pytest.raises(DatasetError) as caught:
        check_dataset(open_dataset(source, base_directory=directory, **options))
    assert all(problem.message for problem in caught.value.problems)
    return str(caught.value)
