"""Files of every format, well and badly formed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.datasets import check_dataset, open_dataset
from stateval.errors import DatasetError, MissingExtra
from tests.datasets.reading import complaint, opened, samples_of, written

ROWS = [
    {"id": "a", "input": "naïve – 東京", "ground_truth": "b"},  # noqa: RUF001 - the dash is the point
    {"id": "b", "input": "second", "ground_truth": "007"},
    {"id": "c", "input": "third\nline", "ground_truth": None},
]


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink, row_group_size=2)
    return sink.getvalue()


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def _jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


FORMATS = {
    "jsonl": _jsonl(ROWS),
    "ndjson": _jsonl(ROWS),
    "csv": _csv(ROWS),
    "json": json.dumps(ROWS, indent=1).encode(),
    "parquet": _parquet(ROWS),
}


class TestFormats:
    @pytest.mark.parametrize("format_name", FORMATS)
    @pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
    def test_every_format_reads_the_same_rows(self, tmp_path: Path, format_name: str, packed: bool) -> None:
        content = FORMATS[format_name]
        name = f"rows.{format_name}" + (".gz" if packed else "")
        written(tmp_path, name, gzip.compress(content) if packed else content)
        samples = samples_of(name, tmp_path)
        assert [(s.id, s.input, s.ground_truth) for s in samples] == [
            (row["id"], row["input"], row["ground_truth"]) for row in ROWS
        ]

    @pytest.mark.parametrize(
        ("name", "content"),
        [("rows.jsonl", gzip.compress(FORMATS["jsonl"])), ("rows.csv.gz", FORMATS["csv"])],
        ids=["packed without the ending", "ending without being packed"],
    )
    def test_gzip_is_told_by_content(self, tmp_path: Path, name: str, content: bytes) -> None:
        assert len(samples_of(written(tmp_path, name, content))) == 3

    def test_damaged_gzip_is_named(self, tmp_path: Path) -> None:
        written(tmp_path, "rows.jsonl.gz", gzip.compress(os.urandom(5000))[:2000])
        assert "rows.jsonl.gz: is damaged" in complaint("rows.jsonl.gz", tmp_path)

    def test_parquet_without_pyarrow_names_the_extra(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        dataset = opened(tmp_path, "rows.parquet", FORMATS["parquet"])
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingExtra, match=r"pip install 'stateval\[parquet\]'"):
            check_dataset(dataset)

    def test_parquet_has_nested_turns_and_row_numbers(self, tmp_path: Path) -> None:
        rows = [
            {"id": 1, "input": [{"user": "hi", "wait": None}, {"user": None, "wait": 2.0}], "tags": ["x"]},
            {"id": 1, "input": [{"user": "hi", "wait": None}], "tags": None},
        ]
        dataset = opened(tmp_path, "rows.parquet", _parquet(rows))
        first = next(iter(dataset))
        assert [turn.to_dict() for turn in first.turns] == [{"user": "hi"}, {"wait": 2.0}]
        assert "rows.parquet: row 2: the id `1` is already that of" in complaint(dataset)

    def test_what_is_no_parquet_is_named(self, tmp_path: Path) -> None:
        assert "rows.parquet: cannot be read as Parquet" in complaint(written(tmp_path, "rows.parquet", b"nonsense"))

    def test_several_files_are_one_dataset(self, tmp_path: Path) -> None:
        written(tmp_path, "a.csv", "input\none\n")
        written(tmp_path, "b.jsonl", [{"input": "two"}])
        assert [(s.id, s.input) for s in samples_of(["a.csv", "b.jsonl"], tmp_path)] == [(0, "one"), (1, "two")]

    def test_an_empty_file_among_several_is_warned_about(self, tmp_path: Path) -> None:
        written(tmp_path, "a.csv", "input\n")
        written(tmp_path, "b.jsonl", [{"input": "two"}])
        check = check_dataset(open_dataset(["a.csv", "b.jsonl"], base_directory=tmp_path))
        assert [problem.message for problem in check.warnings] == ["holds no rows"]

    def test_a_pipe_is_read_once_and_kept(self, tmp_path: Path) -> None:
        pipe = tmp_path / "rows.jsonl"
        os.mkfifo(pipe)
        with subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'w').write('{{\"input\": \"x\"}}\\n')"]):
            assert [sample.input for sample in samples_of(pipe)] == ["x"]


class TestCsv:
    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b"\xef\xbb\xbfid,input\n1,hi\n", id="fault-01 byte-order mark"),
            pytest.param(b'\xef\xbb\xbf"id","input"\n1,hi\n', id="fault-01 byte-order mark and quotes"),
            pytest.param(b"id,input\r\n1,hi\r\n", id="CRLF"),
            pytest.param(b"id,input\r1,hi\r", id="CR"),
            pytest.param(b"\n\nid,input\n\n1,hi\n\n", id="blank lines"),
            pytest.param(b"id, input \n1,hi", id="spaces in the header, no newline at the end"),
        ],
    )
    def test_accepted_spellings(self, tmp_path: Path, content: bytes) -> None:
        (sample,) = samples_of(written(tmp_path, "rows.csv", content))
        assert (sample.id, sample.input, sample.metadata) == ("1", "hi", None)

    def test_ragged_rows_are_errors_with_their_lines(self, tmp_path: Path) -> None:
        written(tmp_path, "rows.csv", 'input,b,c\n1,2\n"x\ny",2,3\n1,2,3,4\n')
        text = complaint("rows.csv", tmp_path)
        assert "rows.csv:2: has 2 cells where the header has 3 columns" in text
        assert "rows.csv:5: has 4 cells where the header has 3 columns" in text
        assert len(text.splitlines()) == 2

    @pytest.mark.parametrize("rows", ["1,2\n", "1,2,3,4\n"], ids=["fault-04 short", "fault-04 long"])
    def test_reading_stops_at_a_ragged_row(self, tmp_path: Path, rows: str) -> None:
        dataset = opened(tmp_path, "rows.csv", "input,b,c\n" + rows)
        with pytest.raises(DatasetError, match=r"rows\.csv:2: has \d cells"):
            list(dataset)

    @pytest.mark.parametrize(
        "cell",
        ["[URGENT] call [bob]", "[1", "[", " [a]", '["a",]'],
        ids=lambda cell: f"fault-05 {cell}",
    )
    def test_a_cell_that_begins_with_a_bracket_is_text(self, tmp_path: Path, cell: str) -> None:
        (sample,) = samples_of(written(tmp_path, "rows.csv", _csv([{"input": cell, "ground_truth": cell}])))
        assert (sample.input, sample.ground_truth) == (cell, cell)

    @pytest.mark.parametrize("cell", ["007", "1.10", "NA", "null", "None", " x ", "true", "1e5", "-", "{}", "[1]"])
    def test_cells_stay_as_written(self, tmp_path: Path, cell: str) -> None:
        row = {"id": cell, "input": "q", "ground_truth": cell, "cluster": cell, "rubric": cell, "other": cell}
        (sample,) = samples_of(written(tmp_path, "rows.csv", _csv([row])))
        assert (sample.id, sample.ground_truth, sample.cluster, sample.rubric) == (cell,) * 4
        assert sample.metadata == {"other": cell}

    def test_only_an_empty_cell_is_missing(self, tmp_path: Path) -> None:
        (sample,) = samples_of(written(tmp_path, "rows.csv", "input,ground_truth,tags,metadata,x\nq,,,,\n"))
        assert (sample.ground_truth, sample.tags, sample.metadata) == (None, (), None)
        text = complaint(written(tmp_path, "empty.csv", "input,ground_truth\n,x\n"))
        assert "empty.csv:2: input: the cell is empty" in text

    def test_json_cells(self, tmp_path: Path) -> None:
        row = {
            "input": '["a", {"user": "b"}]',
            "ground_truth": '["1", null]',
            "tags": "x, y",
            "agent_args": '{"n": 1}',
            "expected": '"apples"',
        }
        (sample,) = samples_of(written(tmp_path, "rows.csv", _csv([row])))
        assert [turn.user for turn in sample.user_turns] == ["a", "b"]
        assert sample.ground_truth == ["1", None]
        assert (sample.tags, sample.agent_args, sample.expected) == (("x", "y"), {"n": 1}, "apples")

    @pytest.mark.parametrize("column", ["agent_args", "rubric_vars", "extra_vars", "metadata", "expected"])
    def test_a_cell_that_must_hold_json_is_named(self, tmp_path: Path, column: str) -> None:
        text = complaint(written(tmp_path, "rows.csv", f"input,{column}\nq,{{bad\n"))
        assert f"rows.csv:2: {column}: the cell must hold JSON" in text

    def test_a_list_of_truths_beside_one_message_is_text(self, tmp_path: Path) -> None:
        (sample,) = samples_of(written(tmp_path, "rows.csv", _csv([{"input": "q", "ground_truth": '["a", "b"]'}])))
        assert sample.ground_truth == '["a", "b"]'

    def test_very_long_cells(self, tmp_path: Path) -> None:
        long = "x" * 3_000_000
        (sample,) = samples_of(written(tmp_path, "rows.csv", f"input\n{long}\n"))
        assert sample.input == long

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("input,a,input\n1,2,3\n", r"rows\.csv:1: the header names the column `input` twice"),
            ("id;input\n1;2\n", r"rows\.csv:1: the header is one column, `id;input`.*separated by commas"),
            ("question,answer\n1,2\n", r"there is no column `input` \(or `prompt`\).*`question`, `answer`"),
            ('input\nok\n"never closed\nx\n', r"rows\.csv:3: the quotes of this row are wrong"),
            ('input,b\n"a"b,c\n', r"rows\.csv:2: the quotes of this row are wrong"),
            (b"input\nok\ncaf\xe9\n", r"rows\.csv:3: is not UTF-8 \(byte 0xe9\)"),
            ("input\nx\n".encode("utf-16"), r"rows\.csv: is UTF-16"),
        ],
        ids=["same name", "semicolons", "no input", "open quote", "text after a quote", "latin-1", "utf-16"],
    )
    def test_broken_files(self, tmp_path: Path, content: str | bytes, said: str) -> None:
        written(tmp_path, "rows.csv", content)
        with pytest.raises(DatasetError, match=said) as caught:
            check_dataset(open_dataset("rows.csv", base_directory=tmp_path))
        assert len(caught.value.problems) == 1

    def test_unnamed_columns_are_kept_by_number(self, tmp_path: Path) -> None:
        (sample,) = samples_of(written(tmp_path, "rows.csv", ",input,\n0,q,x\n"))
        assert sample.metadata == {"column 1": "0", "column 3": "x"}


class TestJsonl:
    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b'\xef\xbb\xbf{"input":"a","ground_truth":"b"}\n', id="fault-02 byte-order mark"),
            pytest.param(b'\n \r\n{"input":"a","ground_truth":"b"}\r\n\n', id="blank lines and CRLF"),
            pytest.param(b'{"input":"a","ground_truth":"b"}', id="no newline at the end"),
        ],
    )
    def test_accepted_spellings(self, tmp_path: Path, content: bytes) -> None:
        (sample,) = samples_of(written(tmp_path, "rows.jsonl", content))
        assert (sample.id, sample.input, sample.ground_truth) == (0, "a", "b")

    def test_bad_lines_are_named_all_at_once(self, tmp_path: Path) -> None:
        lines = [b'{"input": "a"}', b"", b"{bad", b'{"input": "caf\xe9"}', b"[1]", b'{"x": NaN}', b"[" * 5000, b'"t"']
        text = complaint(written(tmp_path, "rows.jsonl", b"\n".join(lines)))
        for line, said in [(3, "is not JSON"), (4, "is not UTF-8"), (5, "is a list"), (6, "is not JSON")]:
            assert f"rows.jsonl:{line}: {said}" in text
        assert "rows.jsonl:7: is not JSON" in text
        assert "rows.jsonl:8: is text; a row must be a JSON object" in text

    def test_at_most_twenty_problems_are_listed(self, tmp_path: Path) -> None:
        with pytest.raises(DatasetError) as caught:
            check_dataset(opened(tmp_path, "rows.jsonl", "{bad\n" * 1030))
        assert len(caught.value.problems) == 21
        assert str(caught.value.problems[-1]) == "and 1,010 more problems"


class TestJson:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ('{"input": "a"}', r"rows\.json:1: must hold a JSON array of rows"),
            ('[\n{"input": "a"}\n{"input": "b"}]', r"rows\.json:3: a comma or `\]` is missing"),
            ('[\n{"input": "a"},\n\n{"input": }\n]', r"rows\.json:4: is not JSON"),
            ('[{"input": "a"},\n]', r"rows\.json:2: is not JSON"),
            ('[{"input": "a"}', r"rows\.json:1: a comma or `\]` is missing"),
            ('[\n{"input": "a', r"rows\.json:2: is not JSON"),
            ('[{"input": "a"}] x', r"rows\.json:1: something follows the end"),
            ('[\n{"input": NaN}]', r"rows\.json:2: is not JSON"),
            (b'[\n{"input": "a"},\n{"input": "\xe9"}]', r"rows\.json:3: is not UTF-8 \(byte 0xe9\)"),
            ('[{"input": "a"},\n\n 7, "x"]', r"rows\.json:3: is the number 7; a row must be a JSON object"),
            ('[{"input": "a"},\n{"ground_truth": "x"}]', r"rows\.json:2: has no `input`"),
        ],
    )
    def test_faults_are_named_with_their_line(self, tmp_path: Path, content: str | bytes, said: str) -> None:
        written(tmp_path, "rows.json", content)
        with pytest.raises(DatasetError, match=said):
            check_dataset(open_dataset("rows.json", base_directory=tmp_path))

    def test_an_array_longer_than_what_is_looked_at_at_once(self, tmp_path: Path) -> None:
        rows = [{"id": n, "input": "x" * (n * 37 % 5000)} for n in range(400)] + [{"id": 400, "input": "y" * 2_000_000}]
        samples = samples_of(written(tmp_path, "rows.json", json.dumps(rows, indent=2)))
        assert [(s.id, s.input) for s in samples] == [(row["id"], row["input"]) for row in rows]

    def test_lines_are_counted_over_the_pieces(self, tmp_path: Path) -> None:
        rows = [{"input": "x" * 1000} for _ in range(900)]
        text = json.dumps(rows, indent=0).removesuffix("\n]") + ',\n{"input": 5}\n]'
        assert f"rows.json:{1 + 3 * 900 + 1}: input: is the number 5" in complaint(written(tmp_path, "rows.json", text))

    def test_a_byte_order_mark_is_fine(self, tmp_path: Path) -> None:
        assert len(samples_of(written(tmp_path, "rows.json", b'\xef\xbb\xbf [ {"input": "a"} ]\n'))) == 1


class TestAnyText:
    TEXT = st.text(st.characters(exclude_categories=()), min_size=1)

    @given(inputs=st.lists(TEXT, min_size=1, max_size=5))
    def test_json_keeps_every_text(self, tmp_path_factory: pytest.TempPathFactory, inputs: list[str]) -> None:
        directory = tmp_path_factory.mktemp("rows")
        rows = [{"input": text, "ground_truth": text, "tags": [text]} for text in inputs]
        written(directory, "rows.json", json.dumps(rows, indent=1))
        written(directory, "rows.jsonl", rows)
        for name in ("rows.json", "rows.jsonl"):
            samples = samples_of(name, directory)
            assert [(s.input, s.ground_truth, s.tags) for s in samples] == [(text, text, (text,)) for text in inputs]

    @given(inputs=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5))
    def test_csv_keeps_every_text(self, tmp_path_factory: pytest.TempPathFactory, inputs: list[str]) -> None:
        rows = [{"id": str(n), "input": text, "ground_truth": text, "x": text} for n, text in enumerate(inputs)]
        file = written(tmp_path_factory.mktemp("rows"), "rows.csv", _csv(rows))
        for sample, text in zip(open_dataset(file, base_directory=Path()), inputs, strict=True):
            assert sample.ground_truth == text
            assert (sample.metadata or {})["x"] == text

    @given(items=st.lists(st.text(st.sampled_from(";|,\n\"'[]ab"), min_size=1), min_size=1, max_size=4))
    def test_lists_survive_csv(self, tmp_path_factory: pytest.TempPathFactory, items: list[str]) -> None:
        row = {"input": json.dumps(items), "tags": json.dumps(items), "expected": json.dumps(items)}
        (sample,) = samples_of(written(tmp_path_factory.mktemp("rows"), "rows.csv", _csv([row])))
        assert ([turn.user for turn in sample.user_turns], list(sample.tags), sample.expected) == (items,) * 3


@pytest.mark.parametrize("delimiter", [";", "|", ";|"], ids=lambda mark: f"fault-07 {mark}")
def test_delimiters_inside_items_stay(tmp_path: Path, delimiter: str) -> None:
    items = [f"a{delimiter}b", "c"]
    row = {"input": json.dumps(items), "tags": f"a{delimiter}b, c", "expected": json.dumps(items)}
    (sample,) = samples_of(written(tmp_path, "rows.csv", _csv([row])))
    assert ([turn.user for turn in sample.user_turns], list(sample.tags), sample.expected) == (items,) * 3


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.json"], ids=lambda name: f"fault-08 {name}")
def test_files_are_utf8_whatever_the_console_is(tmp_path: Path, name: str) -> None:
    written(tmp_path, name, FORMATS[name.removeprefix("rows.")])
    written(tmp_path, "rubric.txt", "Grüße 東京")
    script = (
        "from pathlib import Path; from stateval.datasets import open_dataset\n"
        f"print(ascii([s.input for s in open_dataset({name!r}, base_directory=Path())]))\n"
        "rows = [{'input': 'x', 'rubric_path': 'rubric.txt'}]\n"
        "print(ascii([s.rubric for s in open_dataset(rows, base_directory=Path())]))\n"
    )
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [ascii([row["input"] for row in ROWS]), ascii(["Grüße 東京"])]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("rows.csv", b"input\na\x00b\n", id="fault-10 csv"),
        pytest.param("rows.jsonl", b'{"input": "a\\u0000b"}\n', id="fault-10 jsonl"),
        pytest.param("rows.json", b'[{"input": "a\\u0000b"}]', id="fault-10 json"),
        pytest.param("rows.parquet", _parquet([{"input": "a\0b"}]), id="fault-10 parquet"),
    ],
)
def test_nul_is_text(tmp_path: Path, name: str, content: bytes) -> None:
    assert [sample.input for sample in samples_of(written(tmp_path, name, content))] == ["a\0b"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("rows.jsonl", b'{"input": "ok \\ud83d", "id": "\\ud83d"}\n', id="fault-11 jsonl"),
        pytest.param("rows.json", b'[{"input": "ok \\ud83d", "id": "\\ud83d"}]', id="fault-11 json"),
    ],
)
def test_lone_surrogates_are_kept(tmp_path: Path, name: str, content: bytes) -> None:
    (sample,) = samples_of(written(tmp_path, name, content))
    assert (sample.input, sample.id) == ("ok \ud83d", "\ud83d")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("rows.csv", b"", id="fault-13 csv of 0 bytes"),
        pytest.param("rows.csv", b"id,input\n", id="fault-13 header only"),
        pytest.param("rows.csv", b"\xef\xbb\xbf", id="fault-13 byte-order mark only"),
        pytest.param("rows.jsonl", b"", id="fault-13 jsonl of 0 bytes"),
        pytest.param("rows.jsonl", b"\n \n", id="fault-13 blank lines"),
        pytest.param("rows.json", b"", id="fault-13 json of 0 bytes"),
        pytest.param("rows.json", b" [ ] ", id="fault-13 empty array"),
        pytest.param("rows.jsonl.gz", gzip.compress(b""), id="fault-13 gzip of nothing"),
        pytest.param("rows.parquet", _parquet([]), id="fault-13 parquet without rows"),
    ],
)
def test_an_empty_file_is_an_error(tmp_path: Path, name: str, content: bytes) -> None:
    written(tmp_path, name, content)
    assert complaint(name, tmp_path).endswith(f"{name}: the dataset holds no rows")


@pytest.mark.parametrize("source", [[], (), iter([])], ids=["fault-13 list", "fault-13 tuple", "fault-13 iterator"])
def test_no_rows_in_memory_are_an_error(source: Any) -> None:
    assert complaint(source) == "the dataset holds no rows"


@pytest.mark.parametrize("source", ["/dev/zero", ["/dev/zero"]])
def test_a_device_is_no_dataset(source):
    with pytest.raises(DatasetError, match=r"is a device|not a regular file"):
        open_dataset(source, base_directory=Path(), format="jsonl")


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.json", "d.parquet"])
@pytest.mark.parametrize("rows", [3, 20_000])
def test_a_row_that_is_added_while_a_file_is_read_is_never_handed_out(tmp_path, name, rows):
    texts = [f"text {number}" for number in range(rows)]
    contents = {
        "d.jsonl": "".join(f'{{"input": "{text}"}}\n' for text in texts),
        "d.csv": "input\n" + "".join(f"{text}\n" for text in texts),
        "d.json": json.dumps([{"input": text} for text in texts]),
    }
    if name == "d.parquet":
        pyarrow.parquet.write_table(pyarrow.table({"input": texts}), tmp_path / name)
    else:
        written(tmp_path, name, contents[name])
    dataset = open_dataset(name, base_directory=tmp_path)
    assert check_dataset(dataset).count == rows
    seen = []
    with pytest.raises(DatasetError, match="has changed since it was checked"):
        for sample in dataset:
            if not seen:
                with (tmp_path / name).open("ab") as file:
                    file.write(b'{"input": "added"}\n')
            seen.append(sample.input)
    assert seen == texts[: len(seen)]


@pytest.mark.parametrize("change", [lambda rows: rows.append({"input": "c"}), lambda rows: rows.pop()])
def test_a_list_that_is_changed_after_its_check_gives_no_other_samples(change):
    rows = [{"input": "a"}, {"input": "b"}]
    dataset = open_dataset(rows, base_directory=Path())
    assert check_dataset(dataset).count == 2
    change(rows)
    with pytest.raises(DatasetError, match="have changed since they were checked"):
        list(dataset)
    assert check_dataset(dataset).count == len(list(dataset)) == len(rows)
