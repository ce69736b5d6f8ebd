"""From a row to a sample: names, places of fields, turns, values."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.datasets import check_dataset, open_dataset
from stateval.errors import DatasetError, UsageError
from stateval.records.sample import NewConversation, Sample, SimulatedInput, UserTurn, Wait
from tests.datasets.reading import complaint, opened, samples_of, written


def sample_of(row: Any, directory: Path = Path(), **options: Any) -> Sample:
    (sample,) = samples_of([row], directory, **options)
    return sample


class TestFields:
    def test_all_fields(self) -> None:
        row = {
            "id": "x-9",
            "input": "question",
            "ground_truth": "truth",
            "agent_args": {"a": 1},
            "rubric_vars": {"b": 2},
            "extra_vars": {"c": 3},
            "rubric": "is it good?",
            "expected": {"contains_any": ["x", "y"]},
            "tags": ["one", "two"],
            "metadata": {"d": 4},
            "cluster": 7,
        }
        assert sample_of(row) == Sample(**{**row, "tags": ("one", "two"), "cluster": "7"})

    def test_each_field_comes_from_its_own_column(self) -> None:
        fields = ("input", "ground_truth", "expected", "rubric", "cluster", "id")
        sample = sample_of({field: f"the {field}" for field in fields})
        assert {field: getattr(sample, field) for field in fields} == {field: f"the {field}" for field in fields}

    @pytest.mark.parametrize(
        "columns", [{}, {"input": "q", "ground_truth": "a", "expected": "e"}], ids=["plain", "map"]
    )
    @pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"], ids=lambda name: f"fault-22 {name}")
    def test_fields_are_not_mixed_up(self, tmp_path: Path, name: str, columns: dict[str, str]) -> None:
        names = [columns.get(field, field) for field in ("input", "ground_truth", "expected")]
        values = ["the question", "the truth", '"the expected"']
        csv_text = ",".join(names) + "\n" + ",".join(v.replace('"', '""').join('""') for v in values)
        row = dict(zip(names, [*values[:2], "the expected"], strict=True))
        written(tmp_path, name, csv_text if name.endswith("csv") else [row])
        (sample,) = samples_of(name, tmp_path, columns=columns)
        assert (sample.input, sample.ground_truth, sample.expected) == ("the question", "the truth", "the expected")

    def test_aliases(self) -> None:
        sample = sample_of({"prompt": "hi", "sample_id": 5})
        assert (sample.input, sample.id) == ("hi", 5)

    def test_an_alias_beside_its_field(self) -> None:
        assert sample_of({"prompt": "hi", "input": "hi", "id": None, "sample_id": "s"}).id == "s"
        assert "row 1: has both `input` and `prompt`" in complaint([{"input": "a", "prompt": "b"}])

    def test_null_is_missing_and_empty_is_not(self) -> None:
        assert sample_of({"input": "", "ground_truth": None, "tags": None, "metadata": None}).input == ""
        assert "row 1: input: is null" in complaint([{"input": None}])

    def test_a_field_may_be_absent_in_some_rows(self) -> None:
        rows = [{"id": n, "input": "q", **({"ground_truth": "a"} if n < 2 else {})} for n in range(446)]
        samples = samples_of(rows)
        assert [s.ground_truth for s in samples] == ["a"] * 2 + [None] * 444

    @pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"], ids=lambda name: f"fault-19 {name}")
    def test_a_mapped_field_may_be_absent_in_some_rows(self, tmp_path: Path, name: str) -> None:
        if name.endswith("csv"):
            written(tmp_path, name, "question,answer\n" + "q,\n" * 444 + "q,yes\n" * 2)
        else:
            written(tmp_path, name, [{"question": "q"}] * 444 + [{"question": "q", "answer": "yes"}] * 2)
        samples = samples_of({"path": name, "input": "question", "ground_truth": "answer"}, tmp_path)
        assert [s.ground_truth for s in samples] == [None] * 444 + ["yes"] * 2

    @pytest.mark.parametrize(
        ("given", "text"),
        [(4, "4"), (4.5, "4.5"), (True, "true"), ({}, "{}"), ({"a": [1]}, '{"a":[1]}'), (None, None), ("", "")],
        ids=lambda value: f"fault-17 {value!r}",
    )
    def test_truths_become_text(self, tmp_path: Path, given: Any, text: str | None) -> None:
        (sample,) = samples_of(written(tmp_path, "rows.jsonl", [{"input": "q", "ground_truth": given}]))
        assert sample.ground_truth == text

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"input": "q", "ground_truth": ["a", "b"]}, "a list of accepted values into `expected`"),
            ({"input": ["q"], "ground_truth": ["a", "b"]}, "2 items for 1 user turns"),
            ({"input": ["q"], "ground_truth": []}, "0 items for 1 user turns"),
        ],
        ids=["fault-17 list beside a message", "fault-17 list too long", "fault-17 empty list"],
    )
    def test_lists_of_truths_must_fit(self, row: dict[str, Any], said: str) -> None:
        text = complaint([row])
        assert said in text
        assert "row 1: " in text

    def test_lists_of_truths(self) -> None:
        assert sample_of({"input": ["a", "b"], "ground_truth": [1, None]}).ground_truth == ["1", None]

    def test_old_files_keep_fields_in_metadata(self) -> None:
        old = {"agent_args": {"a": 1}, "rubric_vars": {"b": 2}, "extra_vars": {"c": 3}, "tags": "x,y", "other": 1}
        sample = sample_of({"input": "q", "metadata": old})
        assert (sample.agent_args, sample.rubric_vars, sample.extra_vars) == ({"a": 1}, {"b": 2}, {"c": 3})
        assert sample.tags == ("x", "y")
        assert sample.metadata == old

    def test_the_row_itself_wins_over_metadata(self) -> None:
        assert sample_of({"input": "q", "tags": ["new"], "metadata": {"tags": ["old"]}}).tags == ("new",)

    def test_wrong_old_fields_are_named(self) -> None:
        row = {"input": "q", "metadata": {"agent_args": "x"}}
        assert "row 1: metadata.agent_args: must be an object such as {...}, not text" in complaint([row])

    @pytest.mark.parametrize(
        ("tags", "kept"),
        [("a, b ,,c", ("a", "b", "c")), (["a,b", "c"], ("a,b", "c")), ([], ()), ("", ()), (["1", 2], ("1", "2"))],
    )
    def test_tags(self, tags: Any, kept: tuple[str, ...]) -> None:
        assert sample_of({"input": "q", "tags": tags}).tags == kept

    @pytest.mark.parametrize(
        ("field", "value", "said"),
        [
            ("id", 1.5, "id: must be text or a whole number, not the number 1.5"),
            ("id", True, "id: must be text or a whole number, not `true`"),
            ("id", "", "id: must be text or a whole number, not empty"),
            ("input", 5, "input: is the number 5; an input is text, a list of turns"),
            ("input", [], "`input` has no user turn"),
            ("agent_args", "{}", "agent_args: must be an object such as {...}, not text"),
            ("metadata", ["a"], "metadata: must be an object such as {...}, not a list"),
            ("rubric", 3, "rubric: must be text, not the number 3"),
            ("tags", {"a": 1}, "tags: must be a list of names"),
            ("tags", ["a", None], "tags[1]: must be text, not null"),
            ("ground_truth", float("nan"), "ground_truth: is NaN"),
        ],
    )
    def test_wrong_values_are_named(self, field: str, value: Any, said: str) -> None:
        text = complaint([{"input": "q", field: value}])
        assert f"row 1: {said}" in text
        assert "pydantic" not in text

    def test_all_faults_of_a_row_are_named(self) -> None:
        assert len(complaint([{"id": 1.5, "rubric": 1, "tags": 4}]).splitlines()) == 4

    def test_a_row_that_is_none(self) -> None:
        assert "row 2: is the number 3; a row is a dict or a Sample" in complaint([{"input": "a"}, 3])


class TestOtherColumns:
    def test_they_are_kept_in_metadata(self) -> None:
        sample = sample_of({"input": "q", "level": 3, "metadata": {"a": 1}})
        assert sample.metadata == {"a": 1, "level": 3}

    def test_metadata_wins_and_the_clash_is_said(self, tmp_path: Path) -> None:
        dataset = opened(tmp_path, "rows.jsonl", [{"input": "q", "a": 2, "metadata": {"a": 1}}])
        (warning,) = check_dataset(dataset).warnings
        assert "rows.jsonl:1: `a` is a column and a key of `metadata`" in str(warning)
        assert [sample.metadata for sample in dataset] == [{"a": 1}]

    def test_near_misses_are_warned_about_once(self, tmp_path: Path) -> None:
        rows = [{"input": "q", "ground_thruth": "x", "level": 1}] * 3
        (warning,) = check_dataset(opened(tmp_path, "rows.jsonl", rows)).warnings
        assert "rows.jsonl:1: `ground_thruth` is no field of a row" in str(warning)
        assert "did you mean `ground_truth`?" in str(warning)

    def test_a_near_miss_beside_the_field_is_none(self) -> None:
        rows = [{"input": "q", "inputs": 3}]
        assert check_dataset(open_dataset(rows, base_directory=Path())).warnings == ()


class TestTurns:
    def test_every_form(self) -> None:
        turns = ["a", {"user": "b", "ground_truth": 4, "graders": ["g"]}, {"new_conversation": True}, {"wait": 1}]
        assert sample_of({"input": turns}).input == [
            "a",
            UserTurn(user="b", ground_truth="4", graders=("g",)),
            NewConversation(new_conversation=True),
            Wait(wait=1),
        ]

    def test_records_pass_as_they_are(self) -> None:
        turns = [UserTurn(user="a"), NewConversation(new_conversation=True), Wait(wait=0)]
        assert sample_of({"input": turns}).input == turns

    def test_a_simulated_user(self) -> None:
        sample = sample_of({"input": {"simulate": {"persona": "p", "facts": ["x"], "max_turns": 3}}})
        assert isinstance(sample.input, SimulatedInput)
        assert (sample.input.simulate.persona, sample.input.simulate.max_turns) == ("p", 3)

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (["a", 5], "input[1]: is the number 5; a turn is text"),
            (["a", None], "input[1]: is null; a turn is text"),
            ([{"usr": "a"}], "input[0]: has none of `user`, `new_conversation`, `wait`"),
            ([{"usr": "a"}], "did you mean `user`?"),
            ([{"role": "user", "content": "a"}], 'write {"user": "..."}'),
            ([{}], "input[0]: has none of"),
            ([{"user": "a", "wait": 3}], "input[0]: has both `user` and `wait`"),
            (
                [{"user": "a", "ground_thruth": "x"}],
                "has the unknown key `ground_thruth` (did you mean `ground_truth`?",
            ),
            ([{"user": ["a"]}], "input[0].user: must be text, not a list"),
            ([{"user": "a", "graders": "g"}], "input[0].graders: must be a list of grader names, not text"),
            (["a", {"wait": -1}], "input[1].wait: must be a number of seconds, 0 or more, not the number -1"),
            (["a", {"wait": "3"}], "input[1].wait: must be a number of seconds, 0 or more, not text"),
            (["a", {"wait": True}], "input[1].wait: must be a number of seconds, 0 or more, not `true`"),
            (["a", {"wait": float("inf")}], "input[1].wait: must be a number of seconds"),
            (["a", {"new_conversation": False}], "input[1].new_conversation: must be `true`, not `false`"),
            ([{"new_conversation": True}], "`input` has no user turn"),
            ({"simulate": {"max_turns": 0}}, "input.simulate.max_turns: must be a whole number, 1 or more"),
            ({"simulate": {"persna": "x"}}, "input.simulate: has the unknown key `persna` (did you mean `persona`?"),
            ({"simulate": "x"}, "input.simulate: must be an object, not text"),
            ({"simulate": {}, "x": 1}, "input: has the unknown key `x`"),
            ({"text": "x"}, "input: is an object; an input is text, a list of turns"),
        ],
    )
    def test_faults_name_item_and_key(self, value: Any, said: str) -> None:
        text = complaint([{"input": value}])
        assert said in text
        assert text.startswith("row 1: ")
        assert "pydantic" not in text

    def test_two_kinds_of_turn_truths(self) -> None:
        row = {"input": [{"user": "a", "ground_truth": "x"}], "ground_truth": ["y"]}
        assert "a list `ground_truth` and turns with a `ground_truth` of their own" in complaint([row])

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["user", "wait", "new_conversation", "simulate", "graders", "x"]), inner
                )
            ),
            max_leaves=8,
        )
    )
    def test_any_input_is_a_sample_or_a_dataset_error(self, value: Any) -> None:
        try:
            samples_of([{"input": value}])
        except DatasetError as error:
            assert str(error).startswith("row 1: ")


class TestRubricFiles:
    @pytest.fixture
    def suite(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        suite = tmp_path / "real" / "suite"
        (suite / "rubrics").mkdir(parents=True)
        written(suite, "rubrics/good.txt", b"\xef\xbb\xbfIs {submission} good?\r\n")
        written(suite, "rows.jsonl", [{"input": "q", "rubric_path": "rubrics/good.txt"}] * 3)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        (elsewhere / "link").symlink_to(suite, target_is_directory=True)
        return suite

    @pytest.mark.parametrize("directory", ["../real/suite", "link", "link/../suite"], ids=lambda d: f"fault-20 {d}")
    def test_paths_are_relative_to_the_suite(self, suite: Path, directory: str) -> None:
        samples = samples_of("rows.jsonl", Path(directory))
        assert [sample.rubric for sample in samples] == ["Is {submission} good?\n"] * 3
        assert [s.rubric for s in samples_of("../suite/rows.jsonl", suite)] == [s.rubric for s in samples]

    def test_a_missing_rubric_is_named(self, suite: Path) -> None:
        text = complaint([{"input": "q", "rubric_path": "rubrics/god.txt"}], suite)
        assert f"row 1: rubric_path: cannot read the rubric {suite / 'rubrics/god.txt'} (No such file" in text

    def test_never_both(self, suite: Path) -> None:
        text = complaint([{"input": "q", "rubric": "x", "rubric_path": "rubrics/good.txt"}], suite)
        assert "row 1: has both `rubric` and `rubric_path`" in text


class TestMapping:
    def test_names_are_mapped_and_the_old_ones_are_free(self, tmp_path: Path) -> None:
        rows = [{"question": "q", "answer": "a", "qid": "x-1", "input": "not this", "prompt": "nor this"}]
        written(tmp_path, "rows.jsonl", rows)
        source = {"path": "rows.jsonl", "input": "question", "ground_truth": "answer", "id": "qid"}
        (sample,) = samples_of(source, tmp_path)
        assert (sample.id, sample.input, sample.ground_truth) == ("x-1", "q", "a")
        assert sample.metadata == {"input": "not this", "prompt": "nor this"}

    def test_several_files_and_a_format(self, tmp_path: Path) -> None:
        written(tmp_path, "a.txt", "q\none\n")
        written(tmp_path, "b.txt", "q\ntwo\n")
        samples = samples_of({"path": ["a.txt", "b.txt"], "format": "csv", "prompt": "q"}, tmp_path)
        assert [sample.input for sample in samples] == ["one", "two"]

    def test_rows_in_memory_are_mapped_too(self) -> None:
        assert sample_of({"q": "x"}, columns={"input": "q"}).input == "x"

    def test_a_column_that_no_row_has(self, tmp_path: Path) -> None:
        rows = [{"question": "q", "answer": "a"}]
        text = complaint(rows, columns={"input": "question", "ground_truth": "answr"})
        assert text == "no row has the column `answr`, which `ground_truth` is to be read from"
        written(tmp_path, "rows.csv", "question,answer\nq,a\n")
        text = complaint({"path": "rows.csv", "input": "question", "ground_truth": "answr"}, tmp_path)
        assert "rows.csv: there is no column `answr` to read `ground_truth` from (the columns are `question`" in text

    def test_a_missing_input_shows_how_to_map(self) -> None:
        text = complaint([{"question": "q", "answer": "a"}])
        assert "row 1: has no `input` (or `prompt`) (it has `question`, `answer`;" in text
        assert "input: COLUMN" in text

    @pytest.mark.parametrize(
        ("columns", "said"),
        [
            ({"ground_thruth": "a"}, "names `ground_thruth`, which is no field of a row; did you mean `ground_truth`?"),
            ({"input": 5}, "must be the name of a column, not the number 5"),
            ({"input": "a", "prompt": "b"}, "reads `input` from `b` and something else"),
            ({"input": "a", "ground_truth": "a"}, "reads `ground_truth` from `a` and something else"),
        ],
    )
    def test_wrong_mappings(self, columns: dict[str, Any], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            open_dataset([{"a": "q"}], base_directory=Path(), columns=columns)


class TestSources:
    @pytest.mark.parametrize(
        "url",
        [
            "https://huggingface.co/datasets/org/repo",
            "https://huggingface.co/datasets/org/repo/resolve/main/data.jsonl",
            "hf://datasets/org/repo/data.csv",
            "huggingface.co/datasets/org/repo",
        ],
    )
    def test_the_hub_is_not_in_this_release(self, url: str) -> None:
        with pytest.raises(UsageError, match="Hugging Face hub are not in this release; download the file"):
            open_dataset(url, base_directory=Path())

    def test_other_urls(self) -> None:
        with pytest.raises(UsageError, match="datasets are read from files"):
            open_dataset("s3://bucket/rows.jsonl", base_directory=Path())

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("rows.txt", "what format is it"),
            ({"input": "x"}, "needs `path`"),
            ({"path": "rows.txt", "format": "jsnl"}, "did you mean `jsonl`?"),
            (["rows.txt", {"input": "x"}], "mixes paths and rows"),
            (5, "a dataset is a path, a list of paths, or rows; this is the number 5"),
            (b"rows", "this is a bytes"),
        ],
    )
    def test_what_is_no_dataset(self, tmp_path: Path, source: Any, said: str) -> None:
        written(tmp_path, "rows.txt", "x")
        with pytest.raises(UsageError) as caught:
            open_dataset(source, base_directory=tmp_path)
        assert said in str(caught.value)

    def test_a_data_frame_is_told_what_to_do(self) -> None:
        class Frame:
            columns = ("input",)

            def to_dict(self, orient: str) -> list[dict[str, str]]:
                return [{"input": "x"}]

        with pytest.raises(UsageError, match=r"frame\.to_dict"):
            open_dataset(Frame(), base_directory=Path())

    def test_missing_files(self, tmp_path: Path) -> None:
        written(tmp_path, "rows.jsonl", [{"input": "x"}])
        with pytest.raises(DatasetError, match=r"row\.jsonl: there is no such file \(did you mean `rows\.jsonl`\?\)"):
            open_dataset("row.jsonl", base_directory=tmp_path)
        with pytest.raises(DatasetError, match=r"is a directory"):
            open_dataset(".", base_directory=tmp_path)
        with pytest.raises(DatasetError, match=r"File name too long"):
            open_dataset("x" * 5000 + ".csv", base_directory=tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_files(self, tmp_path: Path) -> None:
        written(tmp_path, "rows.jsonl", [{"input": "x"}]).chmod(0)
        assert "rows.jsonl: cannot be read (Permission denied)" in complaint("rows.jsonl", tmp_path)

    def test_samples_pass_as_they_are(self) -> None:
        given = [Sample(id="x", input="a", metadata={"when": datetime.date(2026, 1, 1)})]
        assert samples_of(given) == given

    def test_messages_show_the_path_from_here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "suite").mkdir()
        written(tmp_path / "suite", "rows.jsonl", json.dumps({"x": 1}))
        monkeypatch.chdir(tmp_path)
        assert complaint("rows.jsonl", tmp_path / "suite").startswith("suite/rows.jsonl:1: has no `input`")


@pytest.mark.parametrize("keep", [["x-9", "x-3"], [7, 3]], ids=["fault-16 text", "fault-16 numbers"])
def test_given_ids_are_kept(tmp_path: Path, keep: list[Any]) -> None:
    rows = [{"id": sample_id, "input": "q"} for sample_id in keep]
    assert [s.id for s in samples_of(written(tmp_path, "rows.jsonl", rows))] == keep


def nested(levels: int) -> Any:
    return f"{'[' * levels}{']' * levels}"


class TestWhatCannotBeKept:
    @pytest.mark.parametrize("levels", [300, 900])
    @pytest.mark.parametrize("field", ["metadata", "expected", "ground_truth", "other"])
    def test_a_row_that_is_nested_too_deeply_is_named_with_its_line(self, tmp_path, levels, field):
        deep = f'{{"in": {nested(levels)}}}'
        good = '{"input": "a"}'
        written(tmp_path, "d.jsonl", f'{good}\n{{"input": "b", "{field}": {deep}}}\n')
        assert "d.jsonl:2: is nested too deeply" in complaint("d.jsonl", tmp_path)
        written(tmp_path, "d.json", f'[{good},\n{{"input": "b", "{field}": {deep}}}]')
        assert "d.json:2: is nested too deeply" in complaint("d.json", tmp_path)
        assert "row 1: is nested too deeply" in complaint([{"input": "b", field: json.loads(deep)}])

    def test_a_row_in_memory_that_holds_itself_or_cannot_be_written_is_named(self):
        itself = {"input": "a"}
        itself["metadata"] = itself

        class Odd:
            def __str__(self) -> str:
                raise RuntimeError("no")

        assert "row 1: is nested too deeply" in complaint([itself])
        assert "row 1: cannot be kept as JSON (RuntimeError: no)" in complaint([{"input": "a", "x": Odd()}])

    def test_numbers_too_long_to_be_written(self):
        long = 10**5000
        assert samples_of([{"input": "a", "metadata": {"n": long}}])[0].to_json()
        assert samples_of([{"input": "a", "expected": long}])[0].to_json()
        assert samples_of([{"input": "a", "ground_truth": long}])[0].ground_truth == "a whole number of 5,001 digits"
        assert "whole number of at most 100 digits" in complaint([{"input": "a", "id": long}])
        assert "the number a whole number of 5,001 digits" in complaint([{"input": long}])
        assert "cannot be kept" in complaint([Sample(id=long, input="a")])

    @pytest.mark.parametrize("path", ["/dev/zero", "pipe", "big.txt"])
    def test_a_rubric_is_a_regular_file_of_moderate_size(self, tmp_path, path):
        os.mkfifo(tmp_path / "pipe")
        with (tmp_path / "big.txt").open("wb") as file:
            file.truncate(4_000_001)
        told = complaint([{"input": "a", "rubric_path": path}], tmp_path)
        assert "cannot read the rubric" in told
        assert ("regular file" in told) != (path == "big.txt")
