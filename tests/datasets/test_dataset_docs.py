"""What `docs/datasets.md` shows works as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from stateval.datasets import FIELDS, open_dataset
from tests.datasets.reading import complaint, samples_of, written

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("language", "rows"), [("jsonl", [2, 4]), ("csv", [2])])
def test_rows_on_the_page_are_read(tmp_path: Path, language: str, rows: list[int]) -> None:
    counts = [len(samples_of(written(tmp_path, f"rows.{language}", block))) for block in blocks(language)]
    assert counts == rows


def test_the_csv_example_says_the_same_as_the_jsonl_example(tmp_path: Path) -> None:
    written(tmp_path, "rows.jsonl", blocks("jsonl")[0])
    written(tmp_path, "rows.csv", blocks("csv")[0])
    assert samples_of("rows.jsonl", tmp_path) == samples_of("rows.csv", tmp_path)


def test_every_source_on_the_page_is_read(tmp_path: Path) -> None:
    row = '{"input": "x", "id": "a"}\n'
    written(tmp_path, "data.jsonl", row)
    written(tmp_path, "part-1.jsonl", row)
    written(tmp_path, "part-2.csv.gz", "id,input\nb,y\n")
    written(tmp_path, "questions.csv", "qid,question,answer\nc,z,1\n")
    written(tmp_path, "export.txt", row)
    sources = [document["dataset"] for document in yaml.safe_load_all(blocks("yaml")[0])]
    assert [[s.id for s in samples_of(source, tmp_path)] for source in sources] == [
        ["a"],
        ["a", "b"],
        ["fruit-1"],
        ["c"],
        ["a"],
    ]


def test_every_field_is_on_the_page() -> None:
    table = PAGE.split("## The fields of a row")[1].split("\n## ")[0]
    assert [field for field in FIELDS if f"`{field}`" not in table] == []


@pytest.mark.parametrize("mention", ["stateval[parquet]", "format: jsonl | csv | json | parquet"])
def test_what_the_code_says_is_what_the_page_says(mention: str) -> None:
    assert mention in PAGE


def test_a_text_in_an_expected_cell(tmp_path: Path) -> None:
    written(tmp_path, "rows.csv", 'input,expected\nq,"""apples"""\n')
    assert [sample.expected for sample in samples_of("rows.csv", tmp_path)] == ["apples"]
    assert "expected: the cell must hold JSON" in complaint(written(tmp_path, "bad.csv", "input,expected\nq,apples\n"))


def test_an_object_in_an_input_cell_is_text(tmp_path: Path) -> None:
    written(tmp_path, "rows.csv", 'input\n"{""simulate"": {}}"\n')
    assert [sample.input for sample in open_dataset("rows.csv", base_directory=tmp_path)] == ['{"simulate": {}}']
