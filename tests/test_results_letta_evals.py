"""Results of letta-evals, both eras, and single files: what they say, and what they do not."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from stateval.errors import ResultsError, UsageError
from stateval.records.result import ErrorCategory, Observation
from stateval.records.usage import Usage
from stateval.results.opening import open_results
from stateval.running.stored import summary_of
from tests.support import letta_results as le
from tests.support.evaltester import EvalTester

MODEL = "openai/gpt-4.1"


def observations(path: Path, label: str = MODEL) -> dict[str, Observation]:
    return {seen.sample_id: seen for seen in open_results(path).observations(label)}


def test_a_directory_of_the_reward_era_is_read(tmp_path: Path) -> None:
    path = le.write_reward_era(tmp_path / "le", [le.scored(0, 1.0), le.scored(1, 0.25), le.failed(2)])
    results = open_results(path)
    assert (results.suite_name, results.labels, results.num_runs, results.planned) == ("new-suite", (MODEL,), 1, 3)
    assert (results.metric_keys, results.has_reward, results.pass_threshold) == (("quality",), True, 1.0)
    seen = observations(path)
    assert [seen[key].reward for key in "012"] == [1.0, 0.25, None]
    assert seen["1"].scores == {"quality": 0.25}
    assert seen["0"].usage == Usage(prompt_tokens=10, completion_tokens=5, cost=0.001)
    assert seen["0"].timing.target == 1.5
    assert seen["2"].error is ErrorCategory.TARGET
    assert [sample.input for sample in results.samples()] == ["say 0", "say 1", "say 2"]


def test_a_directory_of_the_gate_era_is_read(tmp_path: Path) -> None:
    lines = [le.old(0, 1.0), le.old(0, 0.5, model="a/b"), le.old(1, 0.0), le.old_failed(2)]
    path = le.write_gate_era(tmp_path / "le", lines)
    results = open_results(path)
    assert (results.suite_name, results.labels, results.planned) == ("old-suite", (MODEL, "a/b"), 3)
    assert (results.metric_keys, results.has_reward, results.pass_threshold) == (("quality",), False, 0.5)
    assert observations(path, "a/b")["0"].scores == {"quality": 0.5}
    assert sorted(observations(path)) == ["0", "1", "2"]
    assert [sample.key for sample in results.samples()] == ["0", "1", "2"]


@pytest.mark.parametrize("version", ["before 0.13", "0.13"])
def test_seconds_that_were_not_taken_are_not_zero(tmp_path: Path, version: str) -> None:
    seconds = {"total_time": 2.0, "target_time": 1.5} if version == "0.13" else {}
    path = le.write_gate_era(tmp_path / "le", [le.old(0, 1.0, **seconds)])
    timing = observations(path)["0"].timing
    assert (timing.target == 1.5) if seconds else math.isnan(timing.target)
    stored = summary_of(open_results(path)).models[0].timing
    assert (stored is not None) == bool(seconds)


def test_latency_of_an_error_is_unknown(tmp_path: Path) -> None:
    graded_badly = le.failed(1, category="grading", exception_type="ValueError", message="no")
    path = le.write_reward_era(tmp_path / "le", [le.scored(0, 1.0), graded_badly])
    assert math.isnan(observations(path)["1"].timing.target)
    timing = summary_of(open_results(path)).models[0].timing
    assert timing is not None and math.isfinite(timing.mean_target)


@pytest.mark.parametrize(
    ("line", "category"),
    [
        (le.empty(0), ErrorCategory.EXTRACTION),
        (
            le.scored(0, 0.0)
            | {"grades": {"quality": {"score": 0.0, "rationale": "Error", "metadata": {"error": "no judge"}}}},
            ErrorCategory.GRADING,
        ),
        (le.old_failed(0), ErrorCategory.UNKNOWN),
        (
            le.old(
                0,
                0.0,
                submission="",
                submissions={"quality": ""},
                grades={"quality": {"score": 0.0, "rationale": "Empty submission - extractor found no content"}},
            ),
            ErrorCategory.EXTRACTION,
        ),
        (
            le.old_failed(0, error={"category": "target", "exception_type": "OSError", "message": "gone"}),
            ErrorCategory.TARGET,
        ),
    ],
    ids=["fault-64 nothing said", "fault-64 judge failed", "fault-64 raised", "fault-64 old, nothing said", "0.13"],
)
def test_a_failure_that_was_written_as_a_grade_of_0_is_no_score(
    tmp_path: Path, line: dict[str, Any], category: ErrorCategory
) -> None:
    write = le.write_gate_era if "type" in line else le.write_reward_era
    seen = observations(write(tmp_path / "le", [line]))["0"]
    assert (seen.scores, seen.error) == ({}, category)


def test_fault_64_an_agent_that_says_error_has_a_score(tmp_path: Path) -> None:
    said = {"submission": "Error: no", "submissions": {"quality": "Error: no"}}
    graded = {"score": 0.0, "rationale": "Error: expected x", "metadata": {}}
    path = le.write_gate_era(tmp_path / "le", [le.old(0, 0.0, **said, grade=graded, grades={"quality": graded})])
    assert observations(path)["0"].scores == {"quality": 0.0}
    assert observations(path)["0"].error is None


@pytest.mark.parametrize(
    ("error", "timed_out"),
    [
        ({"exception_type": "TimeoutError", "message": ""}, True),
        ({"exception_type": "RuntimeError", "message": "Letta command timed out after 300 seconds"}, True),
        ({"category": "grading", "exception_type": "TimeoutError", "message": "the judge timed out after 3 s"}, False),
        ({"exception_type": "RuntimeError", "message": "the server went away"}, False),
    ],
)
def test_fault_65_only_the_targets_time_is_timed_out(tmp_path: Path, error: dict[str, str], timed_out: bool) -> None:
    path = le.write_reward_era(tmp_path / "le", [le.failed(0, **error)])
    assert observations(path)["0"].timed_out is timed_out


@pytest.mark.parametrize("era", ["reward", "gate"])
def test_fault_80_twelve_runs_are_in_the_order_of_their_numbers(tmp_path: Path, era: str) -> None:
    path = tmp_path / "le"
    if era == "reward":
        le.write_reward_era(path, [[le.scored(0, run / 100)] for run in range(1, 13)])
    else:
        for run in range(1, 13):
            le.write_gate_era(path / f"run_{run}", [le.old(0, run / 100)])
        (path / "aggregate_stats.json").write_text("{}", encoding="utf-8")
    results = open_results(path)
    seen = list(results.observations(MODEL))
    assert results.num_runs == 12
    assert [(o.run, o.scores["quality"]) for o in seen] == [(run, run / 100) for run in range(1, 13)]
    assert [result.grades["quality"].score for result in results.results(MODEL, 12)] == [0.12]


@pytest.mark.parametrize("last", ["one file", "one a run"])
def test_of_two_layouts_of_a_model_the_one_written_last_counts(tmp_path: Path, last: str) -> None:
    path = le.write_reward_era(tmp_path / "le", [[le.scored(0, 0.2)], [le.scored(0, 0.4)]])
    runs = sorted(path.glob("*/run_*.jsonl"))
    single = path / f"{runs[0].parent.name}.jsonl"
    single.write_bytes(runs[0].read_bytes().replace(b"0.2", b"0.9"))
    for file in runs:
        os.utime(file, (1_000, 3_000 if last == "one a run" else 1_000))
    os.utime(single, (2_000, 2_000))
    results = open_results(path)
    seen = [(o.run, o.scores["quality"]) for o in results.observations(MODEL)]
    assert seen == ([(1, 0.2), (2, 0.4)] if last == "one a run" else [(1, 0.9)])
    assert results.num_runs == len(seen)
    one_model = open_results(runs[0].parent)
    assert (one_model.labels, one_model.num_runs, one_model.suite_name) == ((MODEL,), 2, "new-suite")


def test_an_entry_leads_to_its_body(tmp_path: Path) -> None:
    lines = [le.old(0, 1.0), le.old(1, 0.0), le.old(1, 0.5, model="a/b")]
    results = open_results(le.write_gate_era(tmp_path / "le", lines))
    bodies = [results.read(path, entry) for path, entry in results.entries(MODEL)]
    assert [body.submissions["quality"] for body in bodies] == ["I say 0", "I say 1"]
    assert bodies == list(results.results(MODEL))


def test_a_run_in_the_same_gate_era_directory_was_appended_so_the_last_line_of_a_sample_counts(tmp_path: Path) -> None:
    path = le.write_gate_era(tmp_path / "le", [le.old(0, 0.0), le.old(1, 0.0), le.old(0, 1.0), le.old(1, 1.0)])
    results = open_results(path)
    assert [(o.sample_id, o.scores["quality"]) for o in results.observations(MODEL)] == [("0", 1.0), ("1", 1.0)]
    assert results.planned == 2


def test_a_reward_era_run_that_did_not_finish_says_so(tmp_path: Path) -> None:
    summary = summary_of(open_results(le.write_reward_era(tmp_path / "le", [le.scored(0, 1.0)], samples=5)))
    assert not summary.finished
    assert summary.models[0].ledgers["reward"].not_reached == 4


@pytest.mark.parametrize("indent", [2, None, 4])
def test_samples_are_read_however_the_file_is_indented(tmp_path: Path, indent: int | None) -> None:
    path = le.write_reward_era(tmp_path / "le", [le.scored(n, 1.0) for n in range(3)])
    suite = json.loads((path / "suite.json").read_text(encoding="utf-8"))
    suite["samples"][1]["input"] = ["a\n    }\n", "b"]
    suite["samples"][1]["ground_truth"] = None
    (path / "suite.json").write_text(json.dumps(suite, indent=indent), encoding="utf-8")
    results = open_results(path)
    assert results.planned == 3
    assert [sample.input for sample in results.samples()] == ["say 0", ["a\n    }\n", "b"], "say 2"]


@pytest.mark.parametrize("torn", [1, 10, 300])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: int) -> None:
    path = le.write_reward_era(tmp_path / "le", [le.scored(0, 1.0), le.scored(1, 1.0)])
    file = path / "openai-gpt-4.1.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:torn])
    assert list(observations(path)) == ["0"]
    file.write_bytes(lines[0] + lines[1].rstrip(b"\n"))
    assert list(observations(path)) == ["0", "1"], "a whole line counts, also without its end"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"sample_id": 1}', "`timing`: Field required"),
        (b"[1]", "no JSON object"),
        (b"{", "no line of results"),
        (b'{"type": "result", "result": {}}', "no sample in it"),
        (json.dumps(le.scored(1, 1.5)).encode(), "`grades.quality.score`: Input should be less than or equal to 1"),
    ],
)
def test_a_damaged_line_is_named_with_its_file_and_number(tmp_path: Path, line: bytes, said: str) -> None:
    path = le.write_reward_era(tmp_path / "le", [le.scored(0, 1.0)])
    file = path / "openai-gpt-4.1.jsonl"
    file.write_bytes(file.read_bytes() + b"\n" + line + b"\n")
    with pytest.raises(ResultsError) as raised:
        observations(path)
    assert str(raised.value).startswith(f"{file}, line 3: ")
    assert said in str(raised.value)


def test_a_damaged_suite_is_named(tmp_path: Path) -> None:
    path = le.write_reward_era(tmp_path / "le", [le.scored(0, 1.0)])
    (path / "suite.json").write_text("{", encoding="utf-8")
    with pytest.raises(ResultsError, match=r"suite\.json: cannot be read"):
        open_results(path)


def test_a_single_file_is_results(tmp_path: Path, evaltester: EvalTester) -> None:
    evaltester.write_suite()
    evaltester.run()
    ours = open_results(evaltester.results_path / "default.jsonl")
    assert [o.scores for o in ours.observations("default")] == [
        o.scores for o in evaltester.directory.observations("default")
    ]
    assert ours.inputs == evaltester.directory.inputs
    new = le.write_reward_era(tmp_path / "new", [le.scored(0, 1.0)]) / "openai-gpt-4.1.jsonl"
    old = le.write_gate_era(tmp_path / "old", [le.old(0, 1.0)]) / "results.jsonl"
    for file in (new, old):
        assert observations(file)["0"].scores == {"quality": 1.0}
        alone = tmp_path / f"alone-{file.name}"
        alone.write_bytes(file.read_bytes())
        assert observations(alone)["0"].scores == {"quality": 1.0}
        assert open_results(alone).metric_keys == ("quality",)


def test_one_file_of_several_runs_knows_its_run(tmp_path: Path) -> None:
    path = le.write_reward_era(tmp_path / "le", [[le.scored(0, 0.1)], [le.scored(0, 0.2)]])
    file = path / "openai-gpt-4.1" / "run_2.jsonl"
    assert [(o.run, o.reward) for o in open_results(file).observations(MODEL)] == [(2, 0.2)]


def test_what_holds_no_results_is_told_with_what_does(tmp_path: Path) -> None:
    le.write_reward_era(tmp_path / "runs" / "monday", [le.scored(0, 1.0)])
    le.write_gate_era(tmp_path / "runs" / "tuesday" / "run_1", [le.old(0, 1.0)])
    with pytest.raises(UsageError) as several:
        open_results(tmp_path / "runs")
    told = str(several.value).splitlines()
    assert told[1:] == [f"  {tmp_path / 'runs' / day}" for day in ("monday", "tuesday")]
    with pytest.raises(UsageError, match=r"does not exist; did you mean .*monday\?"):
        open_results(tmp_path / "runs" / "mondy")
    with pytest.raises(UsageError, match=r"there is no directory .*did you mean .*runs\?"):
        open_results(tmp_path / "run" / "monday")
    other = tmp_path / "rows.jsonl"
    other.write_text('{"input": "x"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds no results"):
        open_results(other)
