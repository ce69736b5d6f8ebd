"""The results directory: nothing finished is lost, nothing is overwritten, a reader sees whole lines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.errors import ResultsError, ResultsLocked, UsageError
from stateval.records.encoding import dump_json, load_json
from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.message import AssistantMessage
from stateval.records.result import ErrorCategory, Observation, SampleError, SampleResult, StageKeys
from stateval.records.sample import Sample
from stateval.records.usage import Timing, Usage
from stateval.redaction import Redaction, secrets_of_environment
from stateval.results.directory import ResultsDirectory, default_directory
from stateval.results.journal import read_entries, read_result, read_results
from stateval.results.naming import file_names

TIMING = Timing(total=1.5, target=1.0)

texts = st.text(st.characters(), max_size=40)  # surrogates and NUL included
finite = st.floats(0, 1)
results = st.builds(
    SampleResult,
    sample_id=st.one_of(st.integers(), texts),
    trajectory=st.lists(st.lists(st.builds(AssistantMessage, content=st.none() | texts), max_size=2), max_size=2),
    submissions=st.dictionaries(texts, texts, max_size=2),
    grades=st.dictionaries(
        texts,
        st.builds(GradeResult, score=finite, rationale=st.none() | texts, metadata=st.dictionaries(texts, texts)),
        max_size=2,
    ),
    reward=st.none() | st.builds(RewardOutput, score=finite),
    timing=st.builds(Timing, total=finite, target=finite),
    usage=st.none() | st.builds(Usage, prompt_tokens=st.integers(0, 10**15), cost=st.none() | finite),
    error=st.none()
    | st.builds(SampleError, category=st.sampled_from(ErrorCategory), exception_type=texts, message=texts),
    grade_errors=st.none()
    | st.dictionaries(
        texts,
        st.builds(SampleError, category=st.sampled_from(ErrorCategory), exception_type=texts, message=texts),
        min_size=1,
        max_size=2,
    ),
    stage_keys=st.none() | st.builds(StageKeys, target=texts),
    tags=st.none() | st.lists(texts, min_size=1, max_size=3).map(tuple),
    cluster=st.none() | texts,
)


def begin(path: Path, **changes: Any) -> ResultsDirectory:
    arguments = {"suite": "s", "identity": "i", "labels": ["m"], "num_runs": 1, "planned": 3, "version": "0"}
    return ResultsDirectory.begin(path, **{**arguments, **changes})


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[ResultsDirectory]:
    with begin(tmp_path / "results") as opened:
        yield opened


def append(directory: ResultsDirectory, *ids: Any, label: str = "m", run: int = 1) -> None:
    with directory.journal(label, run) as journal:
        for sample_id in ids:
            journal.append(SampleResult(sample_id=sample_id, timing=TIMING, run=run))


@given(results)
def test_a_result_is_read_back_equal(result: SampleResult) -> None:
    line = result.to_json()
    assert b"\n" not in line
    assert SampleResult.from_json(line) == result


@given(st.lists(results, max_size=5))
def test_an_index_says_what_the_lines_say(
    tmp_path_factory: pytest.TempPathFactory, written: list[SampleResult]
) -> None:
    with begin(tmp_path_factory.mktemp("run")) as directory:
        with directory.journal("m") as journal:
            for result in written:
                journal.append(result)
        path, index = directory.journal_path("m"), directory.index_path("m")
        entries = list(read_entries(path, index))
        assert [entry.observation for entry in entries] == [Observation.of(result) for result in written]
        assert [read_result(path, entry) for entry in entries] == written
        index.unlink()
        assert list(read_entries(path, index)) == entries


@pytest.mark.parametrize("torn", [0, 1, 7, 30])
def test_a_torn_last_line_is_left_out_and_the_rest_stays(directory: ResultsDirectory, torn: int) -> None:
    append(directory, 1, 2, 3)
    path = directory.journal_path("m")
    content = path.read_bytes()
    end = content.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(content[: end + torn])
    assert [result.sample_id for result in read_results(path)] == [1, 2]
    assert [o.sample_id for o in directory.observations("m")] == ["1", "2"]


def test_a_damaged_index_is_made_again(directory: ResultsDirectory) -> None:
    append(directory, 1, 2, 3)
    index = directory.index_path("m")
    for damage in (b"", b"garbage\n", index.read_bytes()[:50], index.read_bytes().replace(b'"at":[', b'"at":[9')):
        index.write_bytes(damage)
        assert [o.sample_id for o in directory.observations("m")] == ["1", "2", "3"]


def test_a_line_that_is_no_result_is_named(directory: ResultsDirectory) -> None:
    path = directory.journal_path("m")
    path.write_bytes(b'{"sample_id": 1}\n')
    with pytest.raises(ResultsError, match=r"m\.jsonl:1: the line is no sample result"):
        list(directory.observations("m"))


def test_fault_76_a_finished_run_is_moved_whole_to_history(tmp_path: Path) -> None:
    for _ in range(3):
        with begin(tmp_path) as directory:
            append(directory, 1)
            directory.finish()
    kept = sorted(path.name for path in (tmp_path / "history").iterdir())
    assert len(kept) == 2
    for name in kept:
        assert ResultsDirectory.open(tmp_path / "history" / name).record.finished is not None
        assert (tmp_path / "history" / name / "m.jsonl").read_bytes().count(b"\n") == 1
    assert (tmp_path / "m.jsonl").read_bytes().count(b"\n") == 1


def test_an_unfinished_run_is_kept_until_it_is_sent_to_history(tmp_path: Path) -> None:
    with begin(tmp_path) as directory:
        append(directory, 1)
    with begin(tmp_path) as again:
        assert again.earlier is not None and not (tmp_path / "history").exists()
    with pytest.raises(UsageError, match="unfinished run of another suite"):
        begin(tmp_path, identity="other")
    assert directory.journal_path("m").read_bytes().count(b"\n") == 1
    with begin(tmp_path, fresh=True):
        assert len(list((tmp_path / "history").iterdir())) == 1


def test_a_run_that_wrote_nothing_stands_in_nobodys_way(tmp_path: Path) -> None:
    begin(tmp_path).close()
    begin(tmp_path).close()
    assert not (tmp_path / "history").exists()


def test_a_directory_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="not empty and holds no results"):
        begin(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "thesis.txt"]


def test_fault_83_a_second_process_is_refused(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, stateval.results.directory as d\n"
        "held = d.ResultsDirectory.begin(pathlib.Path(sys.argv[1]), suite='s', identity='i', labels=['m'], num_runs=1,"
        " planned=1, version='0')\n"
        "print('taken', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        with pytest.raises(ResultsLocked, match="another process"):
            begin(tmp_path)
        other.kill()
    begin(tmp_path).close()


@pytest.mark.parametrize("kind", ["a file", "below a file"])
def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    path = tmp_path / "file" if kind == "a file" else tmp_path / "file" / "results"
    with pytest.raises(UsageError, match="results cannot be written to"):
        begin(path)


def test_secrets_never_reach_a_file(tmp_path: Path) -> None:
    secret = 'sk-"quoted"\\and\nnew-line-é'
    redaction = Redaction([secret])
    with begin(tmp_path, redaction=redaction) as directory:
        with directory.journal("m") as journal:
            said = AssistantMessage(content=f"my key is {secret}!")
            journal.append(SampleResult(sample_id=secret, trajectory=[[said]], timing=TIMING))
        directory.write_suite({"api_key": secret}, [Sample(id=1, input=secret)])
        (result,) = directory.results("m")
    message = result.trajectory[0][0]
    assert isinstance(message, AssistantMessage)
    assert message.content == "my key is [redacted]!"
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        content = path.read_text(encoding="utf-8")
        assert "quoted" not in content, path
        assert "new-line" not in content, path


def test_secrets_of_the_environment_are_those_whose_name_says_so() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-12345678",
        "HOME": "/home/someone",
        "HF_TOKEN": "short",
        "MY_SECRET": "abcdefghi",
    }
    assert secrets_of_environment(environment) == {"sk-12345678", "abcdefghi"}


@pytest.mark.parametrize(
    "labels",
    [
        ["a/b", "a:b", "a-b", "a\\b"],
        ["CON", "con", "nul.txt", "COM1"],
        ["x" * 300, "x" * 301],
        ["", "..", ".", " "],
        ["history", "suite", "summary"],
        ["Model", "model"],
        ["a-b-6783a31e", "a/b", "a:b"],
        ["a/b", "a:b", "a-b-6783a31e"],
        ["东京" * 100, "\ud83d", "a\x00b", "a\nb"],
    ],
)
def test_fault_79_every_label_has_a_file_of_its_own(labels: list[str], tmp_path: Path) -> None:
    names = file_names(labels)
    assert len({name.casefold() for name in names.values()}) == len(labels)
    for name in names.values():
        assert len(os.fsencode(name)) < 240
        assert not {"/", "\\", ":"} & set(name)
        assert name.casefold() not in {"con", "history", "suite", "summary", ".", ".."}
        (tmp_path / f"{name}.jsonl").write_text("", encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == len(labels)


def test_names_of_the_field_are_as_the_field_writes_them() -> None:
    assert file_names(["openai/gpt-4.1-mini"]) == {"openai/gpt-4.1-mini": "openai-gpt-4.1-mini"}


def test_fault_79_two_runs_in_one_second_have_two_directories(tmp_path: Path) -> None:
    assert len({default_directory("my suite", below=tmp_path) for _ in range(50)}) == 50
    assert default_directory("../..//evil name", below=tmp_path).parent == tmp_path / ".stateval" / "runs"


def test_fault_80_runs_are_in_order_of_their_number(tmp_path: Path) -> None:
    with begin(tmp_path, num_runs=12) as directory:
        for run in range(1, 13):
            append(directory, "s", run=run)
        assert [result.run for result in directory.results("m")] == list(range(1, 13))
        assert [o.run for o in directory.observations("m")][-1] == 12
        assert (tmp_path / "m" / "run_10.jsonl").exists()


def test_suite_json_holds_configuration_and_samples(directory: ResultsDirectory) -> None:
    samples = [Sample(id=1, input="a", expected={"x": None}), Sample(id="b", input=["c", {"new_conversation": True}])]
    directory.write_suite({"name": "s", "dataset_provenance": {"rows": 2}}, samples)
    written = load_json((directory.path / "suite.json").read_bytes())
    assert written["suite"] == "s"
    assert written["config"]["dataset_provenance"] == {"rows": 2}
    assert [Sample.model_validate(row) for row in written["samples"]] == samples


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a small tmpfs")
def test_fault_77_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    try:
        with begin(mount / "r") as directory:
            journal = directory.journal("m")
            written = 0
            with pytest.raises(ResultsError, match="the disk is full"):
                for written in range(1000):
                    journal.append(SampleResult(sample_id=written, submissions={"q": "x" * 2000}, timing=TIMING))
            assert [result.sample_id for result in directory.results("m")] == list(range(written))
            assert len(list(directory.observations("m"))) == written
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | texts | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=8,
    )
)
def test_fault_10_and_11_json_keeps_any_text_and_number(value: Any) -> None:
    assert load_json(dump_json(value)) == value
    assert dump_json(value, sort_keys=True) == dump_json(load_json(dump_json(value, sort_keys=True)), sort_keys=True)
