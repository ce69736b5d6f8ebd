"""Filters, splits, the check over all rows, and rows that can be read once."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stateval.datasets import PlacedDataset, SplitSpec, check_dataset, open_dataset, select
from stateval.errors import DatasetError, UsageError
from stateval.records.protocols import Dataset
from stateval.records.sample import Sample
from tests.datasets.reading import complaint, opened, samples_of, written

ROWS: list[dict[str, Any]] = [
    {"id": "x-9", "input": "a", "tags": ["memory", "easy"]},
    {"id": "x-3", "input": "b", "tags": ["memory"]},
    {"id": "x-5", "input": "c", "tags": ["safety"]},
    {"id": "x-1", "input": "d"},
]


def selected(rows: list[dict[str, Any]] | PlacedDataset, **rules: Any) -> list[Any]:
    dataset = select(open_dataset(rows, base_directory=Path()), **rules)
    check = check_dataset(dataset)
    ids = [sample.id for sample in dataset]
    assert check.count == len(ids)
    return ids


class TestSelect:
    @pytest.mark.parametrize(
        ("rules", "ids"),
        [
            ({}, ["x-9", "x-3", "x-5", "x-1"]),
            ({"tags": ["memory"]}, ["x-9", "x-3"]),
            ({"tags": ["safety", "easy"]}, ["x-9", "x-5"]),
            ({"exclude_tags": ["memory"]}, ["x-5", "x-1"]),
            ({"tags": ["memory"], "exclude_tags": ["easy"]}, ["x-3"]),
            ({"tags": ["memory", "safety"], "max_samples": 2}, ["x-9", "x-3"]),
            ({"exclude_tags": ["easy"], "max_samples": 2}, ["x-3", "x-5"]),
            ({"max_samples": 100}, ["x-9", "x-3", "x-5", "x-1"]),
        ],
    )
    def test_rules(self, rules: dict[str, Any], ids: list[str]) -> None:
        assert selected(ROWS, **rules) == ids

    @pytest.mark.parametrize("own_ids", [True, False], ids=["fault-16 own ids", "fault-16 positions"])
    def test_ids_do_not_change_with_a_filter(self, own_ids: bool) -> None:
        rows = [row if own_ids else {**row, "id": None} for row in ROWS]
        assert selected(rows, exclude_tags=["easy"]) == (["x-3", "x-5", "x-1"] if own_ids else [1, 2, 3])

    def test_selections_can_be_laid_over_each_other(self) -> None:
        dataset = select(open_dataset(ROWS, base_directory=Path()), tags=["memory"])
        assert selected(dataset, exclude_tags=["easy"]) == ["x-3"]
        assert selected(dataset, max_samples=1) == ["x-9"]

    @pytest.mark.parametrize("value", [0, -1, True, 1.5, "3"], ids=lambda value: f"fault-14 {value!r}")
    def test_no_number_means_no_limit(self, value: Any) -> None:
        with pytest.raises(UsageError, match="`max_samples`"):
            select(open_dataset(ROWS, base_directory=Path()), max_samples=value)

    def test_reading_stops_at_the_last_sample(self) -> None:
        dataset = select(open_dataset([*ROWS, {"wrong": 1}], base_directory=Path()), max_samples=4)
        assert len(list(dataset)) == 4

    @pytest.mark.parametrize(
        ("rules", "said"),
        [
            ({"tags": ["nosuch"]}, "of 4 rows there is none with one of the tags `nosuch`"),
            ({"tags": ["nosuch"]}, "tags are memory (2), easy (1), safety (1)"),
            ({"tags": ["easy"], "exclude_tags": ["memory"]}, "tags `easy` and without the tags `memory`"),
            ({"split": SplitSpec(holdout=0.0001, seed=1, use="holdout")}, "on the side `holdout` of the split"),
        ],
    )
    def test_rules_that_leave_nothing_are_errors(self, rules: dict[str, Any], said: str) -> None:
        dataset = select(open_dataset(ROWS, base_directory=Path()), **rules)
        with pytest.raises(DatasetError) as caught:
            check_dataset(dataset)
        assert said in str(caught.value)

    def test_tags_that_one_of_several_rules_does_not_find_are_warned_about(self) -> None:
        dataset = select(open_dataset(ROWS, base_directory=Path()), tags=["memory", "mem"], exclude_tags=["esy"])
        warnings = [problem.message for problem in check_dataset(dataset).warnings]
        assert warnings == ["no row has the tag `mem`", "no row has the tag `esy`"]

    def test_a_selection_of_nothing_stays_empty_under_another(self) -> None:
        dataset = select(select(open_dataset(ROWS, base_directory=Path()), tags=["nosuch"]), max_samples=2)
        with pytest.raises(DatasetError, match="none with one of the tags `nosuch`"):
            check_dataset(dataset)


class TestSplit:
    SPLIT = SplitSpec(holdout=0.3, seed=7)

    def test_sides_are_the_hash_of_seed_and_id(self) -> None:
        ids = [f"q{number}" for number in range(500)]
        held_out = [i for i in ids if int(hashlib.sha256(f"7:{i}".encode()).hexdigest()[:16], 16) < 0.3 * 2**64]
        rows = [{"id": sample_id, "input": "q"} for sample_id in ids]
        holdout = self.SPLIT.model_copy(update={"use": "holdout"})
        assert selected(rows, split=holdout) == held_out
        assert selected(rows, split=self.SPLIT) == [i for i in ids if i not in held_out]
        assert 100 < len(held_out) < 200

    @given(ids=st.sets(st.text(min_size=1) | st.integers(), min_size=1), seed=st.integers(-(2**63) + 1, 2**63 - 1))
    def test_rows_keep_their_side_when_the_file_grows(self, ids: set[str | int], seed: int) -> None:
        split = SplitSpec(holdout=0.5, seed=seed)
        sides = {sample_id: split.side_of(sample_id) for sample_id in ids}
        assert all(split.side_of(str(sample_id)) == side for sample_id, side in sides.items())

    def test_refused_without_ids(self, tmp_path: Path) -> None:
        dataset = opened(tmp_path, "rows.jsonl", [{"id": "a", "input": "q"}, {"input": "q"}])
        with pytest.raises(DatasetError, match=r"rows\.jsonl:2: has no `id`, and a split needs ids"):
            check_dataset(select(dataset, split=self.SPLIT))

    @pytest.mark.parametrize(
        "spec", [{"holdout": 0}, {"holdout": 1}, {"holdout": 0.1, "use": "test"}, {"holdout": 0.1, "sed": 1}, {}]
    )
    def test_wrong_specs(self, spec: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            SplitSpec.model_validate(spec)


class TestCheck:
    def test_the_protocol_is_followed(self) -> None:
        dataset: Dataset = open_dataset(ROWS, base_directory=Path())
        assert [sample.id for sample in dataset] == [sample.id for sample in dataset]

    @pytest.mark.parametrize("ids", [[1, "1"], ["a", "b", "a"], ["\ud83d", "\ud83d"]])
    def test_ids_are_compared_as_text(self, tmp_path: Path, ids: list[Any]) -> None:
        rows = [{"id": sample_id, "input": "q"} for sample_id in ids]
        text = complaint(written(tmp_path, "rows.jsonl", rows))
        assert f"rows.jsonl:{len(ids)}: the id `{ids[-1]}` is already that of " in text
        assert "rows.jsonl:1 (" in text

    def test_an_id_that_is_another_rows_position(self) -> None:
        text = complaint([{"id": 1, "input": "q"}, {"input": "q"}])
        assert "row 2: the id `1` is already that of row 1; this row has none of its own" in text

    def test_same_ids_are_found_in_rows_that_a_filter_leaves_out(self) -> None:
        with pytest.raises(DatasetError, match="the id `x-1` is already that of row 4"):
            selected([*ROWS, {"id": "x-1", "input": "q"}], tags=["memory"])

    def test_many_same_ids_are_counted(self, tmp_path: Path) -> None:
        rows = [{"id": number % 100, "input": "q"} for number in range(300)]
        with pytest.raises(DatasetError) as caught:
            check_dataset(opened(tmp_path, "rows.jsonl", rows))
        assert len(caught.value.problems) == 21
        assert str(caught.value.problems[-1]) == "and 180 more problems"

    def test_bad_rows_that_a_filter_leaves_out_are_named(self) -> None:
        with pytest.raises(DatasetError, match="row 5: has no `input`"):
            selected([*ROWS, {"id": "y"}], max_samples=1)

    def test_complaints_about_selected_samples(self, tmp_path: Path) -> None:
        def needs_truth(sample: Sample) -> str | None:
            return None if sample.ground_truth else "`contains` needs a `ground_truth`"

        rows = [{"input": "a", "ground_truth": "x", "tags": ["t"]}, {"input": "b", "tags": ["t"]}, {"input": "c"}]
        dataset = select(opened(tmp_path, "rows.jsonl", rows), tags=["t"])
        with pytest.raises(DatasetError) as caught:
            check_dataset(dataset, checks=[needs_truth])
        (problem,) = caught.value.problems
        assert str(problem).endswith("rows.jsonl:2: `contains` needs a `ground_truth`")

    def test_provenance_of_files(self, tmp_path: Path) -> None:
        file = written(tmp_path, "rows.csv", "question\nq\nr\n")
        dataset = open_dataset("./rows.csv", base_directory=tmp_path, columns={"input": "question"})
        chosen = select(dataset, max_samples=1)
        check_dataset(chosen)
        content = file.read_bytes()
        assert chosen.provenance == {
            "kind": "files",
            "files": [
                {"path": "./rows.csv", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)},
            ],
            "columns": {"input": "question"},
            "rows": 2,
            "selections": [{"max_samples": 1, "rows": 1}],
        }
        json.dumps(chosen.provenance)

    def test_a_file_that_changes_after_the_check_is_refused(self, tmp_path: Path) -> None:
        dataset = opened(tmp_path, "rows.jsonl", [{"input": "a"}])
        check_dataset(dataset)
        os.utime(tmp_path / "rows.jsonl", (1, 1))
        assert len(list(dataset)) == 1
        written(tmp_path, "rows.jsonl", [{"input": "b"}])
        with pytest.raises(DatasetError, match=r"rows\.jsonl: has changed since it was checked"):
            list(dataset)


class TestOneShot:
    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        directory = tmp_path / "temporary"
        directory.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        return directory

    def test_generators_are_read_once_and_kept_on_disk(self, temporary: Path) -> None:
        dataset = open_dataset((row for row in ROWS), base_directory=Path())
        assert check_dataset(dataset).count == 4
        assert [[s.id for s in dataset], [s.id for s in dataset]] == [["x-9", "x-3", "x-5", "x-1"]] * 2
        assert len(list(temporary.iterdir())) == 1
        assert dataset.provenance == {"kind": "stream", "rows": 4}
        del dataset
        gc.collect()
        assert list(temporary.iterdir()) == []

    def test_leaving_the_context_deletes_the_file(self, temporary: Path) -> None:
        with open_dataset(iter(ROWS), base_directory=Path()) as dataset:
            check_dataset(select(dataset, tags=["memory"]))
            assert list(temporary.iterdir())
        assert list(temporary.iterdir()) == []

    def test_samples_and_odd_values_come_back_as_they_were(self) -> None:
        rows = [Sample(id=1, input="a", expected=(1, 2)), {"id": 2, "input": ("x", "y"), "metadata": {"n": {1, 2}}}]
        first, second = samples_of(iter(rows))
        assert first == rows[0]
        assert (second.input, second.metadata) == (["x", "y"], {"n": {1, 2}})

    def test_two_readers_do_not_disturb_each_other(self) -> None:
        dataset = open_dataset(iter(ROWS), base_directory=Path())
        assert [(a.id, b.id) for a, b in zip(dataset, dataset, strict=True)] == [(row["id"],) * 2 for row in ROWS]

    def test_a_generator_that_raises(self, temporary: Path) -> None:
        def rows() -> Iterator[dict[str, str]]:
            yield {"input": "a"}
            raise RuntimeError("the server is gone")

        assert "after row 1 (RuntimeError: the server is gone)" in complaint(rows())
        assert list(temporary.iterdir()) == []

    def test_rows_that_cannot_be_kept(self) -> None:
        assert "the rows end with an error after row 0" in complaint(
            iter([{"input": "a", "metadata": {"f": lambda: 0}}])
        )

    @pytest.mark.parametrize(
        "stream",
        [io.StringIO('{"input": "ä"}\n'), io.BytesIO('\ufeff{"input": "ä"}\n'.encode())],
        ids=["text", "bytes"],
    )
    def test_open_files(self, stream: Any) -> None:
        assert [sample.input for sample in samples_of(stream, format="jsonl")] == ["ä"]
        assert not stream.closed

    def test_an_open_file_has_the_format_of_its_name(self, tmp_path: Path) -> None:
        with written(tmp_path, "rows.csv", "input\nx\n").open("rb") as stream:
            assert [sample.input for sample in samples_of(stream)] == ["x"]
        with pytest.raises(UsageError, match="what format is it"):
            open_dataset(io.StringIO(""), base_directory=Path())


def test_a_file_that_is_named_twice_has_every_id_twice(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "a", "input": "x"}\n', encoding="utf-8")
    dataset = open_dataset(["d.jsonl", "d.jsonl"], base_directory=tmp_path)
    with pytest.raises(DatasetError, match=r"d\.jsonl:1: the id `a` is already that of .*d\.jsonl:1"):
        check_dataset(dataset)
