"""`stateval judge check`: a judge beside people's labels, through the command."""

from __future__ import annotations

import csv
import json
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.errors import ExitStatus, InputError
from stateval.graders.judging import Criterion, JudgeModel, JudgeSettings, ModelJudge
from stateval.judges import Labels, MetricJudge, labelled_answers, read_labels
from stateval.records.digest import hash_of
from stateval.records.judge_check import JudgeCheck, MetricCheck
from stateval.records.sample import Sample
from stateval.suite.build import build_plan
from stateval.suite.load import load_suite
from tests.support.evaltester import EvalTester, Finished
from tests.support.judge_prompts import Prompt
from tests.support.model_server import ModelServer, Reply, Request, refused
from tests.support.scripted_judge import answer_of, judge_environment, judge_server

JUDGE = {"kind": "model_judge", "model": "openai/scripted", "prompt": "Is it polite?", "max_retries": 0}
CRITERIA = {"clear": "It is clear.", "short": {"weight": 0, "description": "It is short."}}
ROWS = [{"id": f"row-{number}", "input": f"say {number}"} for number in range(1, 7)]


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of OpenAI can be opened."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234567890")


def likes(*words: str) -> Any:
    """An opinion: 1 where the submission holds one of these words, else 0."""

    def opinion(shown: Prompt, name: str) -> float:
        return float(any(word in shown.data["submission"] for word in words))

    return opinion


def suite_of(project: EvalTester, grader: dict[str, Any] | None = None, **fields: Any) -> Path:
    return project.write_suite(fields.pop("rows", ROWS), graders={"quality": {**JUDGE, **(grader or {})}}, **fields)


def labels_of(project: EvalTester, *rows: str, name: str = "labels.csv") -> Path:
    return project.write(name, "\n".join(rows) + "\n")


def check(
    project: EvalTester, suite: Path, labels: Path, server: ModelServer, *more: str | Path, **env: Any
) -> Finished:
    return project.command(
        "judge", "check", suite, "--labels", labels, *more, env=judge_environment(server, **env), cwd=project.path
    )


def written(project: EvalTester, metric: str = "quality") -> MetricCheck:
    return JudgeCheck.from_json((project.path / "judge-check.json").read_bytes()).metrics[metric]


FOUR_CELLS = (
    "id,label,submission",
    "row-1,pass,good one",
    "row-2,pass,good two",
    "row-3,fail,good three",
    "row-4,pass,bad four",
    "row-5,fail,bad five",
    "row-6,fail,bad six",
)


def test_a_judge_is_measured_beside_people(evaltester: EvalTester) -> None:
    suite, labels = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    with judge_server(likes("good"), model="scripted-2026") as server:
        finished = check(evaltester, suite, labels, server)
        assert finished.status == ExitStatus.PASSED, finished.output
        assert len(server.requests) == 6 * 4  # three times, and once in the opposite order
    found = written(evaltester)
    assert found.overall is not None
    table = found.overall
    cells = (table.true_positives, table.false_positives, table.false_negatives, table.true_negatives)
    assert cells == (2, 1, 1, 2)
    assert table.kappa.value == pytest.approx(1 / 3)
    assert (found.models, found.answered) == (("openai/scripted",), ("scripted-2026",))
    assert (found.threshold, found.repeats, found.n_errors, found.criteria) == (0.5, 3, 0, {})
    assert (found.flip_rate.value, found.flip_rate.n, found.order_swap_rate.value) == (0.0, 6, 0.0)
    assert "kappa" in finished.stdout
    assert "0.33 [" in finished.stdout
    assert "not fit to gate on" in finished.stdout
    assert "wrote judge-check.json" in finished.stdout
    assert not list(evaltester.path.glob("*.partial"))


def test_what_is_written_is_the_check_that_a_gate_of_the_same_judge_reads(evaltester: EvalTester) -> None:
    gate = {"metric_key": "quality", "op": "gte", "value": 0.5, "judge_check": "judge-check.json"}
    suite = suite_of(evaltester, gate=gate | {"min_judge_kappa": 0.6})
    labels = labels_of(evaltester, *FOUR_CELLS[:3], *FOUR_CELLS[5:])
    with judge_server(likes("good", "say")) as server:
        environment = judge_environment(server)
        assert check(evaltester, suite, labels, server).status == ExitStatus.PASSED
        finished = evaltester.run(suite, env=environment)
        assert finished.status == ExitStatus.PASSED, finished.output
        assert "the judge's kappa 1" in finished.stdout
        changed = suite_of(evaltester, {"prompt": "Is it rude?"}, gate=gate)
        finished = evaltester.run(changed, env=environment)
        assert finished.status == ExitStatus.INCONCLUSIVE, finished.output


def test_criteria_have_tables_of_their_own(evaltester: EvalTester) -> None:
    suite = suite_of(evaltester, {"prompt": None, "criteria": CRITERIA})
    labels = labels_of(
        evaltester,
        "id,label,clear,label:short,submission,annotator",
        "row-1,1,yes,no,good,ann",
        "row-2,0,no,,bad,ann",
        "row-3,,yes,yes,bad,bob",
    )
    with judge_server(likes("good")) as server:
        finished = check(evaltester, suite, labels, server, "--repeats", "1")
    assert finished.status == ExitStatus.PASSED, finished.output
    found = written(evaltester)
    assert found.overall is not None
    assert (found.overall.n, found.overall.kappa.value) == (2, 1.0)
    clear, short = found.criteria["clear"], found.criteria["short"]
    assert (clear.n, clear.true_positives, clear.false_negatives, clear.true_negatives) == (3, 1, 1, 1)
    assert (short.n, short.false_positives, short.false_negatives) == (2, 1, 1)
    assert found.flip_rate.value is None
    assert "--repeats" in (found.flip_rate.reason or "")


def test_labels_of_criteria_alone_will_do_and_no_gate_stands_on_them(evaltester: EvalTester) -> None:
    suite = suite_of(evaltester, {"prompt": None, "criteria": CRITERIA})
    labels = labels_of(evaltester, "id,submission,clear", "row-1,good,yes", "row-2,bad,no")
    with judge_server(likes("good")) as server:
        finished = check(evaltester, suite, labels, server)
    assert finished.status == ExitStatus.PASSED, finished.output
    assert written(evaltester).overall is None
    assert "no gate can stand on this check" in finished.stdout


def test_verdicts_that_flip_and_verdicts_that_hang_on_the_order_are_counted(evaltester: EvalTester) -> None:
    seen: dict[str, int] = {}

    def opinion(shown: Prompt, name: str) -> float:
        submission = shown.data["submission"]
        seen[submission] = seen.get(submission, 0) + 1
        if submission == "first":  # what is shown first is liked
            return float(next(iter(shown.data)) == "submission")
        return float(submission != "fickle" or seen[submission] != 2)

    suite = suite_of(evaltester)
    labels = labels_of(
        evaltester, "id,label,submission", "row-1,yes,first", "row-2,yes,fickle", "row-3,yes,a", "row-4,no,b"
    )
    with judge_server(opinion) as server:
        finished = check(evaltester, suite, labels, server, "--max-concurrent", "1")
    assert finished.status == ExitStatus.PASSED, finished.output
    found = written(evaltester)
    assert (found.flip_rate.value, found.flip_rate.n) == (0.25, 4)
    assert found.flip_rate.low is not None
    assert 0 < found.flip_rate.low < 0.25
    assert (found.order_swap_rate.value, found.order_swap_rate.n) == (0.25, 4)


def test_a_rubric_that_places_everything_has_no_opposite_order(evaltester: EvalTester) -> None:
    suite = suite_of(evaltester, {"prompt": "Asked: {input} Answered: {submission} Is it polite?"})
    labels = labels_of(evaltester, *FOUR_CELLS)
    with judge_server(likes("good")) as server:
        assert check(evaltester, suite, labels, server, "--repeats", "2").status == ExitStatus.PASSED
        assert len(server.requests) == 6 * 2
    assert written(evaltester).order_swap_rate.value is None
    assert "rubric itself" in (written(evaltester).order_swap_rate.reason or "")


# Answers of a run.


def test_the_answers_may_be_those_of_a_run_whose_whole_rate_is_then_corrected(evaltester: EvalTester) -> None:
    rows = [{"id": f"row-{number}", "input": f"say {'good' if number < 7 else 'bad'} {number}"} for number in range(10)]
    suite = suite_of(evaltester, rows=rows)
    labels = labels_of(evaltester, "id,label", "row-0,yes", "row-1,yes", "row-2,no", "row-7,no", "row-8,no", "row-9,")
    with judge_server(likes("good")) as server:
        environment = judge_environment(server, STATEVAL_JUDGE_CACHE=str(evaltester.path / "kept.sqlite3"))
        assert evaltester.run(suite, env=environment).status == ExitStatus.PASSED
        before = len(server.requests)
        finished = check(evaltester, suite, labels, server, "--results", "results", **environment)
        assert finished.status == ExitStatus.PASSED, finished.output
        assert len(server.requests) - before == 5 * 3  # the first of each was asked in the run
    found = written(evaltester).overall
    assert found is not None
    assert (found.n, found.reported.n, found.reported.value) == (5, 10, 0.7)
    # sensitivity 1, specificity 2/3: (0.7 + 2/3 - 1) / (1 + 2/3 - 1)
    assert found.corrected.value == pytest.approx(0.55)


def test_grades_of_another_judge_correct_nothing(evaltester: EvalTester) -> None:
    suite, labels = suite_of(evaltester), labels_of(evaltester, "id,label", "row-1,yes", "row-2,no")
    with judge_server(1.0) as server:
        assert evaltester.run(suite, env=judge_environment(server)).status == ExitStatus.PASSED
        suite = suite_of(evaltester, {"prompt": "Is it rude?"})
        finished = check(evaltester, suite, labels, server, "--results", "results")
    assert finished.status == ExitStatus.PASSED, finished.output
    assert "graded by another judge" in finished.stdout
    found = written(evaltester)
    assert found.overall is not None
    assert found.overall.reported.n == 2
    assert "6 answers" in found.notes[0]


def test_results_of_several_models_and_runs_want_columns_that_say_which(evaltester: EvalTester) -> None:
    agent = (
        "class A:\n    def __init__(self, n):\n        self.n = n\n    def send(self, m):\n        return self.n\n\n"
    )
    agent += "def make(sample, model_handle):\n    return A('good' if model_handle == 'one' else 'bad')\n"
    target = {"kind": "python", "factory": "agent.py:make", "model_handles": ["one", "two"]}
    suite = suite_of(evaltester, agent=agent, target=target, num_runs=2)
    with judge_server(likes("good")) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
        assert finished.status == ExitStatus.PASSED, finished.output
        labels = labels_of(evaltester, "id,label", "row-1,yes", "row-2,no")
        finished = check(evaltester, suite, labels, server, "--results", "results")
        assert finished.status == ExitStatus.INPUT_WRONG
        assert (
            "labels.csv:2: model: has no model (a column `model` says whose answer it is: `one`, `two`)"
            in finished.stderr
        )
        assert "labels.csv:3: run: has no run" in finished.stderr
        labels = labels_of(evaltester, "id,label,model,run", "row-1,yes,one,2", "row-1,no,two,1")
        finished = check(evaltester, suite, labels, server, "--results", "results")
    assert finished.status == ExitStatus.PASSED, finished.output
    found = written(evaltester).overall
    assert found is not None
    assert (found.true_positives, found.true_negatives, found.reported.n) == (1, 1, 24)


def test_a_row_that_is_graded_turn_by_turn_wants_labels_by_turn(evaltester: EvalTester) -> None:
    turns = [{"user": "say good", "ground_truth": "good"}, "and", {"user": "say bad", "ground_truth": "bad"}]
    suite = suite_of(evaltester, rows=[{"id": "talk", "input": turns}])
    with judge_server(likes("good")) as server:
        assert evaltester.run(suite, env=judge_environment(server)).status == ExitStatus.PASSED
        labels = labels_of(evaltester, "id,label", "talk,yes")
        finished = check(evaltester, suite, labels, server, "--results", "results")
        assert finished.status == ExitStatus.INPUT_WRONG
        assert "a column `turn` says which one the label is about, of 0, 2" in finished.stderr
        labels = labels_of(evaltester, "id,label,turn", "talk,yes,0", "talk,no,2")
        finished = check(evaltester, suite, labels, server, "--results", "results")
    assert finished.status == ExitStatus.PASSED, finished.output
    found = written(evaltester).overall
    assert found is not None
    assert (found.true_positives, found.true_negatives, found.reported.n) == (1, 1, 2)


# What fails.


def test_an_answer_that_cannot_be_graded_is_listed_and_in_no_table(evaltester: EvalTester) -> None:
    def answer(request: Any) -> Reply:
        if "bad five" in request.last:
            return refused(400, "no such thing")
        return Reply(answer_of(request, likes("good")))

    suite, labels = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    with ModelServer(answer) as server:
        finished = check(evaltester, suite, labels, server)
    assert finished.status == ExitStatus.PASSED, finished.output
    found = written(evaltester)
    assert found.overall is not None
    assert (found.overall.n, found.n_errors, found.flip_rate.n) == (5, 1, 5)
    assert list(found.errors) == ["row-5", "row-5 (time 2)", "row-5 (time 3)", "row-5 (opposite order)"]
    assert "Not graded, and in no table: 1 labelled answer" in finished.stdout
    assert "no such thing" in finished.stdout


def test_where_nothing_is_graded_nothing_is_written(evaltester: EvalTester) -> None:
    suite, labels = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    evaltester.write("judge-check.json", "the one before")
    with ModelServer(refused(400, "no such thing")) as server:
        finished = check(evaltester, suite, labels, server)
    assert finished.status == ExitStatus.UNFINISHED
    assert "so nothing is written" in finished.stderr
    assert (evaltester.path / "judge-check.json").read_text(encoding="utf-8") == "the one before"


def test_where_nobody_answers_no_sample_is_blamed(evaltester: EvalTester) -> None:
    suite, labels = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    with judge_server() as server:
        pass
    finished = check(evaltester, suite, labels, server)
    assert finished.status == ExitStatus.INPUT_WRONG, finished.output
    assert not (evaltester.path / "judge-check.json").exists()


def test_an_interrupted_check_asks_for_nothing_twice(evaltester: EvalTester) -> None:
    suite, labels = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    kept = str(evaltester.path / "kept.sqlite3")
    ended = threading.Event()

    def answer(request: Request) -> Reply:
        if request.number == 5:
            ended.wait(60)
        return Reply(answer_of(request, likes("good")))

    with ModelServer(answer) as server:
        environment = judge_environment(server, STATEVAL_JUDGE_CACHE=kept)
        command = ("judge", "check", suite, "--labels", labels, "--max-concurrent", "1")
        process = evaltester.start(*command, env=environment)
        while len(server.requests) < 6:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate()
        ended.set()
        assert process.returncode == ExitStatus.INTERRUPTED
        assert not (evaltester.path / "judge-check.json").exists()
        assert evaltester.command(*command, env=environment).status == ExitStatus.PASSED
        assert len(server.requests) <= 6 * 4 + 1  # the one in flight


@pytest.mark.parametrize(
    "option", [("--threshold", "1.5"), ("--threshold", "0"), ("--confidence", "1"), ("--metric", "x")]
)
def test_wrong_options_are_refused_before_any_call(evaltester: EvalTester, option: tuple[str, str]) -> None:
    suite, labels = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    with judge_server() as server:
        finished = check(evaltester, suite, labels, server, *option)
        assert server.requests == []
    assert finished.status == ExitStatus.INPUT_WRONG
    assert option[0] in finished.stderr


@pytest.mark.parametrize("command", [("check", "--labels", "labels.csv"), ("attack",)])
@pytest.mark.parametrize("place", [".", "suite.yaml/check.json"])
def test_a_file_that_cannot_be_written_is_refused_before_any_call(evaltester, command, place) -> None:
    suite, _ = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    with judge_server() as server:
        name, *options = command
        finished = evaltester.command("judge", name, suite, *options, "-o", place, env=judge_environment(server))
        assert server.requests == []
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "cannot be written" in finished.stderr


def test_a_suite_without_a_judge_says_so(evaltester: EvalTester) -> None:
    finished = evaltester.command("judge", "check", evaltester.write_suite(), "--labels", "labels.csv")
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "kind: model_judge" in finished.stderr


def test_what_only_the_target_lacks_does_not_matter(evaltester: EvalTester) -> None:
    target = {"kind": "local_agent", "agent": {}, "model_handles": ["anthropic/claude-haiku-4-5"]}
    suite, labels = suite_of(evaltester, target=target), labels_of(evaltester, *FOUR_CELLS)
    with judge_server(likes("good")) as server:
        finished = check(evaltester, suite, labels, server, ANTHROPIC_API_KEY=None)
    assert finished.status == ExitStatus.PASSED, finished.output


def test_the_threshold_is_that_of_the_suite_where_it_has_one(evaltester: EvalTester) -> None:
    labels = labels_of(evaltester, "id,label,submission", "row-1,0.7,a", "row-2,0.9,b")
    with judge_server(0.7) as server:
        for fields, options, threshold, passed in (
            ({}, (), 0.5, 2),
            ({"pass_threshold": 0.8}, (), 0.8, 1),
            ({"pass_threshold": 0.8}, ("--threshold", "0.95"), 0.95, 0),
        ):
            suite = suite_of(evaltester, **fields)
            assert check(evaltester, suite, labels, server, *options).status == ExitStatus.PASSED
            found = written(evaltester)
            assert found.overall is not None
            people = found.overall.true_positives + found.overall.false_negatives
            assert (found.threshold, people) == (threshold, passed)


def test_no_secret_is_written_or_shown(evaltester: EvalTester) -> None:
    suite = suite_of(evaltester)
    labels = labels_of(evaltester, "id,label,submission", "row-1,yes,sk-test-1234567890", "row-2,no,b")
    with ModelServer(refused(400, "the key sk-test-1234567890 is wrong")) as server:
        finished = check(evaltester, suite, labels, server)
    assert "the key" in finished.output
    assert "sk-test-1234567890" not in finished.output


# The file of labels.


def judge_of(key: str = "quality", *criteria: str, scale: tuple[float, float] = (0.0, 1.0)) -> MetricJudge:
    settings = JudgeSettings(
        prompt=None if criteria else "Is it polite?", criteria={name: Criterion() for name in criteria}, scale=scale
    )
    return MetricJudge(
        key, ModelJudge(settings, [JudgeModel("openai/scripted")]), lambda sample: sample, lambda view: None
    )


def problems_of(
    path: Path, judges: Sequence[MetricJudge], ids: Sequence[str] = ("row-1", "row-2", "row-3")
) -> list[str]:
    """All that is wrong with labels, without the name of their file."""
    try:
        labelled_answers(read_labels(path, judges), judges, [Sample(id=key, input="say") for key in ids])
    except InputError as error:
        return [str(problem).replace(str(path), "FILE") for problem in error.problems]
    return []


def scores_of(labels: Labels) -> list[dict[str, float]]:
    return [{":".join(filter(None, key)): score for key, score in row.scores.items()} for row in labels.rows]


@pytest.mark.usefixtures("keyed")
def test_all_that_is_wrong_with_labels_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(
        "id,label,lable:clear,submision,submission\nrow-1,maybe,,,a\nrow-9,yes,,,b\nrow-1,2,,,c\n,yes,,,d\nrow-2,no,,,\n"
        "row-3,yes\n",
        encoding="utf-8",
    )
    found = problems_of(file, [judge_of("quality", "clear")])
    assert [problem.split(" (")[0] for problem in found] == [
        "FILE:1: `lable:clear` is no column of labels",
        "FILE:2: label: 'maybe' is no label; write true or false, yes or no, pass or fail, or a number from 0 to 1, or "
        "leave it empty",
        "FILE:3: id: no row of the dataset has the id `row-9`",
        "FILE:4: label: '2' is no label; write true or false, yes or no, pass or fail, or a number from 0 to 1, or "
        "leave it empty",
        "FILE:4: id: row-1 is labelled already at FILE:2",
        "FILE:5: has no `id`",
        "FILE:6: submission: has no submission",
        "FILE:7: has 2 cells where the header has 5 columns",
    ]


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "FILE: there are no rows in it"),
        ("id,label,submission\n", "FILE: there are no rows in it"),
        ("id,submission,notes\nrow-1,a,b\n", "there is no column of labels"),
        ("label,submission\nyes,a\n", "FILE:1: there is no column `id`"),
        ("id,label,submission\nrow-1,,a\n", "no answer has a label for `quality`"),
        ("id,label\nrow-1,yes\n", "nothing that they are about"),
        ("id,label,label:quality,submission\nrow-1,1,1,a\n", "are the same labels"),
        ("id,label,run,submission\nrow-1,1,0,a\n", "FILE:2: run: must be a whole number from 1 on"),
        ("id,label,turn,submission\nrow-1,1,0,a\n", "graded as a whole"),
        ("id,label,label:clear,submission\nrow-1,1,1,a\n", "`label:clear` is no column of labels"),
        ("id,label,submission\nrow-1,nan,a\n", "'nan' is no label"),
        ("id;label;submission\nrow-1;1;a\n", "columns are separated by commas"),
    ],
)
def test_what_is_wrong_with_a_file_of_labels(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    assert told in "\n".join(problems_of(file, [judge_of()]))


@pytest.mark.usefixtures("keyed")
def test_labels_are_read_as_they_are_written(tmp_path: Path) -> None:
    csv = tmp_path / "labels.csv"
    csv.write_text(
        '\ufeffid,label,submission\r\n007,TRUE,"two\r\nlines, "\r\nx, Fail ,  b\r\ny,0.25,c\r\nz,,d\r\n', "utf-8"
    )
    read = read_labels(csv, [judge_of()])
    assert [(row.sample_id, row.submission) for row in read.rows] == [
        ("007", "two\r\nlines, "),
        ("x", "  b"),
        ("y", "c"),
        ("z", "d"),
    ]
    assert scores_of(read) == [{"quality": 1.0}, {"quality": 0.0}, {"quality": 0.25}, {}]
    lines = tmp_path / "labels.jsonl"
    rows = [
        {"id": 7, "label": True, "submission": "a"},
        {"id": "x", "label": 0, "submission": "b", "run": 2},
        {"id": "y", "label": None, "submission": "c"},
        {"id": "z", "submission": "d"},
    ]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    read = read_labels(lines, [judge_of()])
    assert [row.sample_id for row in read.rows] == ["7", "x", "y", "z"]
    assert scores_of(read) == [{"quality": 1.0}, {"quality": 0.0}, {}, {}]
    assert read.rows[1].run == 2


@pytest.mark.usefixtures("keyed")
def test_numbers_are_on_the_scale_of_the_judge(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("id,label,submission\nrow-1,1,a\nrow-2,4,b\nrow-3,pass,c\n", encoding="utf-8")
    assert [next(iter(scores.values())) for scores in scores_of(read_labels(file, [judge_of(scale=(1, 5))]))] == [
        0,
        0.75,
        1,
    ]
    file.write_text("id,label,submission\nrow-1,1,a\nrow-2,0,b\n", encoding="utf-8")
    assert "'0' is no label" in problems_of(file, [judge_of(scale=(1, 5))])[0]
    assert "are from 0 to 1, while the judge's scale is 0 to 10" in problems_of(file, [judge_of(scale=(0, 10))])[0]


@pytest.mark.usefixtures("keyed")
def test_several_judges_have_columns_of_their_own(tmp_path: Path) -> None:
    judges = [judge_of("quality", "clear"), judge_of("safety")]
    file = tmp_path / "labels.csv"
    file.write_text("id,label,submission\nrow-1,1,a\n", encoding="utf-8")
    assert "`label` does not say which judge it is for, of `quality`, `safety`" in problems_of(file, judges)[0]
    file.write_text(
        "id,label:quality,label:quality:clear,label:safety,submission\nrow-1,1,0,,a\nrow-2,,,0,b\n", encoding="utf-8"
    )
    read = read_labels(file, judges)
    assert scores_of(read) == [{"quality": 1.0, "quality:clear": 0.0}, {"safety": 0.0}]
    found = labelled_answers(read, judges, [Sample(id=f"row-{number}", input="say") for number in (1, 2)])
    assert {key: [answer.name for answer in answers] for key, answers in found.items()} == {
        "quality": ["row-1"],
        "safety": ["row-2"],
    }


@pytest.fixture(scope="module")
def plain_judge() -> MetricJudge:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test-1234567890")
        return judge_of()


SPELLINGS = {"yes": 1.0, "PASS": 1.0, "true": 1.0, "1": 1.0, "no": 0.0, "Failed": 0.0, "false": 0.0, "0": 0.0, "": None}


@given(st.lists(st.tuples(st.sampled_from(sorted(SPELLINGS)), st.text(min_size=1)), min_size=1, max_size=8))
def test_labels_survive_being_written_as_csv(plain_judge, tmp_path_factory, rows) -> None:
    file = tmp_path_factory.mktemp("labels") / "labels.csv"
    rows = [(label, text.encode("utf-8", "ignore").decode()) for label, text in rows]
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("id", "label", "submission"), *((n, *row) for n, row in enumerate(rows))])
    read = read_labels(file, [plain_judge])
    assert [row.scores.get(("quality", "")) for row in read.rows] == [SPELLINGS[label] for label, _ in rows]
    assert [row.submission for row in read.rows] == [text if text.strip() else None for _, text in rows]


@given(st.binary(max_size=60), st.sampled_from(["csv", "jsonl", "json"]))
def test_whatever_is_in_a_file_of_labels_is_read_or_refused(plain_judge, tmp_path_factory, content, ending) -> None:
    file = tmp_path_factory.mktemp("labels") / f"labels.{ending}"
    file.write_bytes(b"id,label,submission\n" + content if ending == "csv" else content)
    problems_of(file, [plain_judge])


@pytest.mark.usefixtures("keyed")
def test_the_check_names_the_judge_by_the_fingerprint_of_the_suite(evaltester: EvalTester) -> None:
    suite, labels = suite_of(evaltester), labels_of(evaltester, *FOUR_CELLS)
    with judge_server(likes("good")) as server:
        assert check(evaltester, suite, labels, server).status == ExitStatus.PASSED
        environment = {name: value for name, value in judge_environment(server).items() if value}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        [binding] = build_plan(load_suite(suite)).graders
    assert written(evaltester).fingerprint == hash_of(binding.grader.fingerprint)
