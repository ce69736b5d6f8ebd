"""The Python face: suites made of objects."""

from __future__ import annotations

import asyncio
import csv
import gc
import io
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import stateval
from stateval import (
    AgentEvalTarget,
    EvalGate,
    EvalSuite,
    GateFailed,
    GateInconclusive,
    GradeResult,
    Sample,
    UsageError,
    extractors,
    graders,
)
from stateval.errors import DatasetError, ExitStatus, ResultsError, RunUnfinished

ROWS = [
    {"id": "a", "input": "I like apples", "ground_truth": "apples", "tags": ["fruit"]},
    {"id": "b", "input": "I like bananas", "ground_truth": "cherries", "tags": ["fruit"]},
    {"id": "c", "input": "I like chess", "ground_truth": "chess"},
]


class Diary:
    """Remembers what it is told, word for word."""

    def __init__(self) -> None:
        self.heard = ""

    def send(self, message: str) -> str:
        self.heard = message
        return f"You said: {message}"

    def state(self) -> dict[str, str]:
        return {"diary": self.heard}


def make(sample: Sample) -> Diary:
    return Diary()


def suite(tmp_path: Path, **changes: Any) -> EvalSuite:
    arguments: dict[str, Any] = {
        "dataset": ROWS,
        "target": AgentEvalTarget(agent_factory=make),
        "grader": graders.contains(),
        "output": tmp_path / "results",
    }
    return EvalSuite(**{**arguments, **changes})


def test_the_words_of_the_guides(tmp_path: Path) -> None:
    results = suite(tmp_path, extractor=extractors.memory_block("diary"), gate=EvalGate(min_score=0.66)).run()

    assert results.average_score == pytest.approx(2 / 3)
    assert results.std_dev == pytest.approx(0.57735, abs=1e-5)
    assert results.error_count == 0
    assert results.passed
    assert (results.ledger.planned, results.ledger.passed, results.ledger.failed) == (3, 2, 1)
    seen = {observation.id: observation for observation in results}
    assert seen["a"].score == 1.0
    assert seen["a"].submission == "I like apples"
    assert seen["b"].scores == {"grader": 0.0}
    assert "cherries" in (seen["b"].rationale or "")
    assert seen["c"].sample.input == "I like chess"
    assert results.path == tmp_path / "results"
    assert (tmp_path / "results" / "summary.json").exists()


def test_a_gate_that_fails_raises_and_carries_the_saved_results(tmp_path: Path) -> None:
    with pytest.raises(GateFailed) as caught:
        suite(tmp_path, gate=EvalGate(min_score=0.67)).run()
    assert not isinstance(caught.value, GateInconclusive)
    assert caught.value.results.average_score == pytest.approx(2 / 3)
    assert (tmp_path / "results" / "default.jsonl").exists()
    assert "measured 0.666667" in str(caught.value)


def test_a_gate_need_not_raise(tmp_path: Path) -> None:
    results = suite(tmp_path, gate=EvalGate(min_score=0.67)).run(check=False)
    assert results.exit_status is ExitStatus.GATE_FAILED
    assert not results.passed


def test_a_plain_script_exits_non_zero_when_its_gate_fails(tmp_path: Path) -> None:
    script = tmp_path / "evals.py"
    script.write_text(
        "from stateval import EvalSuite, EvalGate, graders\n"
        "EvalSuite(dataset=[{'input': 'a', 'ground_truth': 'b'}], target=lambda sample: str.upper,\n"
        "          grader=graders.contains(), gate=EvalGate(min_score=1)).run()\n",
        encoding="utf-8",
    )
    finished = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert "the gate is fail" in finished.stderr
    assert len(list((tmp_path / ".stateval" / "runs").iterdir())) == 1


def test_it_works_inside_a_running_loop_and_has_an_async_twin(tmp_path: Path) -> None:
    async def both() -> tuple[float | None, float | None]:
        inside = suite(tmp_path, output=tmp_path / "one").run()
        awaited = await suite(tmp_path, output=tmp_path / "two").run_async()
        return inside.average_score, awaited.average_score

    assert asyncio.run(both()) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_nothing_is_left_of_a_run_that_is_not_saved(tmp_path: Path) -> None:
    results = suite(tmp_path, output=None).run(save=False)
    path = results.path
    assert len(list(results)) == 3
    assert path.exists()
    del results
    gc.collect()
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


@stateval.grader
def polite(sample: Sample, submission: str) -> float:
    return 1.0 if "please" in submission else 0.25


@stateval.grader
async def whole(sample: Sample, submission: str) -> GradeResult:
    return GradeResult(score=0.5, rationale="half", metadata={"id": sample.id})


@stateval.extractor
def shouted(trajectory: stateval.Trajectory, config: dict[str, Any]) -> str:
    return trajectory[-1][-1].content.upper()  # type: ignore[union-attr]


@stateval.reward_composer
def mean_of_all(ctx: stateval.RewardContext) -> float:
    return sum(grade.score for grade in ctx.grades.values()) / len(ctx.grades)


def test_own_functions_and_pairs_of_grader_and_extractor(tmp_path: Path) -> None:
    results = suite(
        tmp_path,
        grader=None,
        graders={"polite": polite, "whole": (whole, shouted), "named": "contains"},
        reward=mean_of_all,
        dataset=ROWS[:1],
    ).run()
    (seen,) = results
    assert seen.scores == {"polite": 0.25, "whole": 0.5, "named": 1.0}
    assert seen.score == pytest.approx(1.75 / 3)
    assert seen.result.submissions["whole"] == "YOU SAID: I LIKE APPLES"
    (row,) = results.rows()
    assert row["submission"] == row["polite_submission"] == "You said: I like apples"
    assert (row["whole_score"], row["whole_rationale"], row["whole_submission"]) == (
        0.5,
        "half",
        "YOU SAID: I LIKE APPLES",
    )


def test_an_agent_that_fails_is_counted_not_scored(tmp_path: Path) -> None:
    def fragile(sample: Sample) -> Any:
        if sample.id == "b":
            raise RuntimeError("no agent today")
        return Diary()

    results = suite(tmp_path, target=fragile).run()
    assert results.error_count == 1
    assert results.average_score == pytest.approx(2 / 3)
    broken = next(seen for seen in results if seen.id == "b")
    assert broken.score is None
    assert broken.error is not None
    assert "no agent today" in broken.error.message
    assert suite(tmp_path, target=fragile, on_error="exclude").run().average_score == 1.0


def test_tables(tmp_path: Path) -> None:
    results = suite(tmp_path, num_runs=2).run()
    text = results.to_csv()
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 6
    expected = ["id", "model", "run", "input", "submission", "grader_score", "grader_rationale", "reward", "error"]
    assert list(rows[0])[:9] == expected
    assert list(rows[0])[9:12] == ["error_category", "error_type", "prompt_tokens"]
    assert {row["id"]: json.loads(row["tags"] or "[]") for row in rows} == {"a": ["fruit"], "b": ["fruit"], "c": []}
    assert results.to_csv(tmp_path / "out.csv") is None
    assert (tmp_path / "out.csv").read_bytes().decode("utf-8") == text
    parsed = json.loads(results.to_json() or "")
    assert [row["run"] for row in parsed] == [1, 1, 1, 2, 2, 2]


def test_several_models(tmp_path: Path) -> None:
    def by_handle(sample: Sample, model_handle: str) -> Any:
        return lambda message: message if model_handle == "good/one" else ""

    results = suite(
        tmp_path,
        target=AgentEvalTarget(agent_factory=by_handle, model_handles=["good/one", "bad/one"]),
        dataset=ROWS[::2],
    ).run()
    assert {(seen.model, seen.id): seen.score for seen in results} == {
        ("good/one", "a"): 1.0,
        ("good/one", "c"): 1.0,
        ("bad/one", "a"): 0.0,
        ("bad/one", "c"): 0.0,
    }
    assert results.average_score == 0.5
    assert results.ledger.planned == 4


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"grader": None}, "exactly one of `grader` and `graders`"),
        ({"graders": {"x": "contains"}}, "exactly one of `grader` and `graders`"),
        ({"grader": "contians"}, "contains"),
        ({"extractor": "lst_assistant"}, "last_assistant"),
        ({"max_concurrent": 0}, "`max_concurrent` is 0"),
        ({"num_runs": True}, "`num_runs` is True"),
        ({"max_samples": 0}, "max_samples"),
        ({"on_error": "ignore"}, "it must be one of `fail`, `exclude`, `stop`"),
        ({"target": 7}, "`target` is a int"),
        ({"target": lambda client, sample: 1}, "Letta server"),
        ({"reward": "missing"}, "names the metric `missing`"),
        ({"gate": EvalGate(min_score=0.5, metric_key="missing")}, "missing"),
        ({"gate": {"op": "gte"}}, "`gate`"),
        ({"gate": EvalGate(min_score=float("nan"))}, "`gate`"),
    ],
)
def test_what_fits_nothing_is_refused_before_anything_runs(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        suite(tmp_path, **changes)
    assert told in str(caught.value)


def test_bad_rows_are_refused_before_anything_runs(tmp_path: Path) -> None:
    def never(sample: Sample) -> Any:
        raise AssertionError("an agent was made")

    with pytest.raises(DatasetError, match="row 4: the id `a` is already that of row 1"):
        suite(tmp_path, dataset=[*ROWS, ROWS[0]], target=never).run()
    with pytest.raises(DatasetError):
        suite(tmp_path, dataset=[], target=never).run()
    assert not (tmp_path / "results").exists()


def test_a_one_shot_iterable_is_a_dataset(tmp_path: Path) -> None:
    assert suite(tmp_path, dataset=(row for row in ROWS)).run().ledger.planned == 3


def test_public_names_are_lazy_and_real() -> None:
    for name in stateval.__all__:
        assert getattr(stateval, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = stateval.nonsense


def _never_ends() -> dict[str, Any]:
    row: dict[str, Any] = {"input": "a", "ground_truth": "a"}
    return row | {"metadata": {"again": row, "itself": _itself()}}


def _itself() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    "wrong",
    [
        {"grader": None, "graders": ["contains"]},
        {"grader": None, "graders": {5: "contains"}},
        {"grader": None, "graders": {"a": ("contains", "last_assistant", "x")}},
        {"name": 5},
        {"name": ""},
        {"output": 5},
        {"output": "a\0b"},
        {"max_samples": 10**30},
        {"num_runs": 10**30},
        {"max_concurrent": 10**30},
        {"reward": 5},
        {"gate": 5},
        {"split": "x"},
        {"sample_tags": 5},
        {"exclude_tags": [5]},
        {"on_error": []},
        {"pass_threshold": "x"},
        {"setup": 5},
        {"setup": lambda server: None},
        {"target": 5},
        {"target": AgentEvalTarget(5)},  # type: ignore[arg-type]
        {"target": AgentEvalTarget(lambda sample: Diary(), model_handles="abc")},
        {"target": AgentEvalTarget(lambda sample: Diary(), timeout="x")},  # type: ignore[arg-type]
        {"target": AgentEvalTarget(lambda sample: Diary(), max_retries=-1)},
        {"dataset": {"path": "x.jsonl", "format": []}},
    ],
)
def test_an_argument_of_a_wrong_kind_is_a_usage_error(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"dataset": ROWS, "target": lambda sample: Diary(), "grader": graders.contains()}
    with pytest.raises(UsageError):
        EvalSuite(**{**good, **wrong})


@pytest.mark.parametrize("path", [None, 5, "a\0b", "\ud800", "x" * 5000, b"x"])
def test_a_suite_is_read_from_a_path(path: Any) -> None:
    with pytest.raises(UsageError, match="`path` is"):
        EvalSuite.from_file(path)


def test_rows_that_cannot_be_kept_are_told_and_numbers_may_have_any_length() -> None:
    def suite(row: dict[str, Any]) -> EvalSuite:
        return EvalSuite(dataset=[row], target=lambda sample: Diary(), grader=graders.contains())

    with pytest.raises(DatasetError, match="row 1: is nested too deeply"):
        suite(_never_ends()).run(save=False)
    assert suite({"input": "a", "ground_truth": "a", "metadata": {"n": 10**5000}}).run(save=False).average_score == 1


def test_the_output_is_where_it_was_when_the_suite_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    for output, wanted in (("out", tmp_path / "one/out"), ("~/at-home", tmp_path / "at-home")):
        monkeypatch.chdir(tmp_path / "one")
        suite = EvalSuite(dataset=ROWS, target=lambda sample: Diary(), grader=graders.contains(), output=output)
        monkeypatch.chdir(tmp_path / "two")
        assert suite.run().path == wanted


def test_results_that_cannot_be_written_and_half_an_emoji(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = EvalSuite(dataset=ROWS[:1], target=lambda sample: lambda message: "half \ud800", grader=graders.contains())
    results = suite.run(save=False)
    for write in (results.to_csv, results.to_json):
        with pytest.raises(ResultsError, match="cannot be written"):
            write(tmp_path / "no-such-directory" / "file")
        with pytest.raises(UsageError, match="`path`"):
            write("a\0b")
    pandas = types.ModuleType("pandas")
    pandas.DataFrame = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert results.to_dataframe()[0]["submission"] == "half \\ud800"


def test_a_run_that_did_not_finish_raises_without_a_gate_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": n, "input": "x", "ground_truth": "x"} for n in range(6)]

    def broken(sample: Sample) -> Any:
        raise RuntimeError("no")

    suite = EvalSuite(dataset=rows, target=broken, grader="contains", name="unfinished", limits={"errors": 2})
    with pytest.raises(RunUnfinished, match="the limit of 2 errors is reached") as caught:
        suite.run()
    assert caught.value.results.exit_status == ExitStatus.UNFINISHED
    with pytest.raises(RunUnfinished, match="every sample errored"):
        EvalSuite(dataset=rows, target=broken, grader="contains", name="broken").run(save=False)
    assert EvalSuite(dataset=rows, target=broken, grader="contains").run(save=False, check=False).error_count == 6


def test_python_says_that_a_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    fails = [True]

    class Agent:
        def send(self, message: str) -> str:
            if fails[0]:
                raise RuntimeError("no")
            return message

    def make(sample: Sample) -> Agent:
        return Agent()

    def suite(errors: int) -> EvalSuite:
        rows = [{"id": n, "input": "x", "ground_truth": "x"} for n in range(6)]
        return EvalSuite(
            dataset=rows, target=make, grader="contains", output="out", limits={"errors": errors}, max_concurrent=1
        )

    with pytest.raises(RunUnfinished):
        suite(2).run()
    fails[0] = False
    results = suite(9).run(retry_errors=True)
    assert results.notes[0].startswith("resuming: ")
    assert results.notes[0] in caplog.text
    assert results.error_count == 0
