"""The commands around a suite file: validate, init, schema, list-extractors, list-graders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stateval.cli.init import init
from stateval.cli.listing import list_extractors, list_graders
from stateval.cli.schema import schema
from stateval.cli.validate import validate
from stateval.errors import UsageError
from stateval.extractors import BUILTIN as EXTRACTORS
from stateval.graders import BUILTIN as GRADERS
from stateval.loading.registry import Registry
from stateval.suite.json_schema import schema_text, shipped_schema, suite_schema
from stateval.suite.new import FILES, write_new_suite
from stateval.suite.overrides import parse_set
from stateval.suite.report import SuiteReport, examine
from stateval.suite.spec import SuiteSpec
from tests.support.evaltester import EvalTester

TOOL = {"kind": "tool", "function": "contains"}
PYTHON = {"kind": "python", "factory": "agent.py:make"}
MEMORY = TOOL | {"extractor": "memory_block", "extractor_config": {"block_label": "heard"}}
BEST = {
    "graders": {"quality": MEMORY},
    "split": {"holdout": 0.01, "seed": 3},
    "gate": {"metric_key": "quality", "op": "gte", "value": 0.5},
}
GOOD_ROWS = [
    {"id": f"r{n}", "input": ["I like bananas.", "What do I like?"], "ground_truth": "bananas"} for n in range(3)
]


def report_on(tester: EvalTester, rows=None, **fields) -> SuiteReport:
    return examine(tester.write_suite(rows, **fields))


def test_a_suite_without_fault_is_summed_up_in_one_line(evaltester):
    path = evaltester.write_suite(GOOD_ROWS, **BEST)
    report = examine(path)
    assert report.text() == f"{path}: all is well: 3 samples, target python, metrics quality\n"


def test_the_models_and_runs_are_counted(evaltester):
    fields = BEST | {"target": PYTHON | {"model_handles": ["a", "b"]}, "num_runs": 2}
    assert "target python (2 models), 2 runs, metrics" in report_on(evaltester, GOOD_ROWS, **fields).summary


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"gradrs": {}}, "did you mean `graders`?", id="fault-91-unknown-key"),
        pytest.param({"graders": {"q": TOOL | {"extractr": "x"}}}, "did you mean `extractor`?", id="fault-91-option"),
        pytest.param({"graders": {"q": TOOL | {"grader_config": {"x": 1}}}}, "no setting `x`", id="fault-91-setting"),
        pytest.param(
            {"graders": {"q": TOOL | {"ground_truth_field": "capital"}}},
            "samples.jsonl:1: metric `q`: the row has no field `capital`",
            id="fault-91-missing-field",
        ),
        pytest.param(
            {"graders": {"q": {"kind": "tool", "function": "tool_sequence", "extractor": "tool_calls"}}},
            "samples.jsonl:1",
            id="fault-91-no-expected",
        ),
        pytest.param({"sample_tags": ["nosuch"]}, "there is none with one of the tags `nosuch`", id="fault-49"),
        pytest.param({"max_samples": 0}, "max_samples: must be at least 1, got 0", id="fault-14"),
        pytest.param({"max_concurrent": 0}, "max_concurrent: must be at least 1, got 0", id="fault-67"),
    ],
)
def test_what_a_run_would_stumble_over_is_a_problem(evaltester, fields, message):
    report = report_on(evaltester, **fields)
    assert message in "\n".join(map(str, report.problems))
    assert report.summary == ""
    assert report.advice == []


def test_the_suite_the_code_and_the_rows_are_all_looked_at_in_one_go(evaltester):
    rows = [{"input": "a", "ground_truth": "b"}, {"input": "a"}, {"inptu": "a"}]
    report = report_on(evaltester, rows, gate={"metric_key": "x", "op": "gte", "value": 1}, setup_script="no.py:f")
    places = [str(problem.source).removeprefix(f"{evaltester.path}/") for problem in report.problems]
    assert places == ["suite.yaml:11: gate.metric_key", "suite.yaml:14: setup_script", *places[2:]]
    assert [place.partition(":")[2][:1] for place in places[2:]] == ["2", "3"]
    assert report.text().startswith(f"{evaltester.path}/suite.yaml: {len(report.problems)} problems:\n")


ADVICE = [
    ({"gate": None}, GOOD_ROWS, "there is no gate: the run reports and always passes"),
    ({"split": None}, GOOD_ROWS, "there is no hold-out"),
    ({}, [row | {"input": "one"} for row in GOOD_ROWS], "every sample has a single turn"),
    ({"graders": {"quality": TOOL}}, GOOD_ROWS, "only whole replies are graded (`quality`)"),
    ({}, [row | {"ground_truth": 4} for row in GOOD_ROWS], "`quality`: the truth of 3 of 3 samples is risky"),
    (
        {"gate": {"metric_key": "quality", "aggregation": "accuracy", "op": "eq", "value": 66.7}},
        GOOD_ROWS,
        "2 of 3 is not 66.7",
    ),
    ({"gate": {"metric_key": "quality", "op": "gte", "value": 0}}, GOOD_ROWS, "`avg_score gte 0` can never fail"),
    ({"generation": {"temperature": 0}}, GOOD_ROWS, "`generation` changes nothing"),
]


@pytest.mark.parametrize(("fields", "rows", "message"), ADVICE, ids=[message[:30] for _, _, message in ADVICE])
def test_advice_is_given_where_a_suite_could_say_more(evaltester, fields, rows, message):
    report = report_on(evaltester, rows, **(BEST | fields))
    assert report.problems == []
    assert [message in advice for advice in report.advice] == [True]


def test_old_spellings_come_after_problems_and_before_advice(evaltester):
    text = report_on(evaltester, gate={"metric": "avg_score", "op": "gte", "value": 0.5}, nosuch=1).text()
    assert "problem:" in text
    text = report_on(evaltester, gate={"metric": "avg_score", "op": "gte", "value": 0.5}).text()
    assert text.index("old spellings:") < text.index("`gate.metric` read as `aggregation`") < text.index("advice:")


def test_a_tag_that_no_row_has_is_a_warning(evaltester):
    report = report_on(evaltester, GOOD_ROWS, **BEST, exclude_tags=["nosuch"])
    assert ["nosuch" in warning for warning in report.warnings] == [True]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (["corection"], ["tag `corection` of its `where` (did you mean `correction`?); so it can never be decided"]),
        (["safety", "correction"], ["no row has the tag `safety` of its `where` (there are `correction`)"]),
        (["correction"], []),
    ],
)
def test_a_tag_of_a_gate_that_no_row_has_is_a_warning(evaltester, wanted, said):
    gate = {"name": "wins", "metric_key": "quality", "op": "gte", "value": 0.5, "where": {"tags": wanted}}
    rows = [row | {"tags": ["correction"]} for row in GOOD_ROWS]
    report = report_on(evaltester, rows, **BEST | {"gate": [gate]})
    assert len(report.warnings) == len(said)
    for warning, words in zip(report.warnings, said, strict=True):
        assert warning.startswith("gate `wins`: ")
        assert words in warning


@pytest.mark.parametrize("in_a_file", [False, True])
@pytest.mark.parametrize("extractor", ["memory_block", "memory_diff"])
@pytest.mark.parametrize(("label", "advised"), [("herd", True), ("heard", False)])
def test_a_block_that_the_agent_does_not_have_is_a_warning(evaltester, in_a_file, extractor, label, advised):
    agent = {"system": "Help.", "blocks": {"heard": ""}}
    evaltester.write("agent.json", json.dumps(agent))
    written = {"agent_file": "agent.json"} if in_a_file else {"agent": agent}
    target = {"kind": "local_agent", "model_handles": ["mine", "yours"], "base_url": "http://localhost:1"} | written
    grader = TOOL | {"extractor": extractor, "extractor_config": {"block_label": label}}
    report = report_on(evaltester, GOOD_ROWS, **BEST | {"target": target, "graders": {"quality": grader}})
    assert report.problems == []
    complaint = "metric `quality`: the agent has no memory block `herd` (did you mean `heard`?)"
    assert report.warnings == ([complaint] if advised else [])


@pytest.mark.parametrize("field", ["max_concurrent", "target.timeout"])
def test_what_is_wrong_on_the_command_line_is_named_once(evaltester, field):
    report = examine(evaltester.write_suite(GOOD_ROWS, **BEST), [parse_set(f"{field}=0")])
    (problem,) = report.problems
    assert str(problem).startswith(f"--set {field}: must be ")


def test_secrets_do_not_reach_the_screen(evaltester, monkeypatch):
    monkeypatch.setenv("STATEVAL_TEST_API_KEY", "hunter2-hunter2")
    report = report_on(evaltester, num_runs="${STATEVAL_TEST_API_KEY}")
    assert "hunter2" not in report.text()
    assert "[redacted]" in report.text()


@pytest.mark.parametrize(
    ("target", "key", "count"),
    [
        ({"model_handles": ["openai/gpt-4o-mini"]}, "", 1),
        ({"model_handles": ["openai/gpt-4o-mini"]}, "sk-test", 0),
        ({"model_handles": ["openai/gpt-4o-mini"], "api_key": "sk-test"}, "", 0),
        ({"model_handles": ["mine"], "base_url": "http://localhost:1"}, "", 0),
    ],
)
def test_a_key_that_is_not_set_is_a_warning(evaltester, monkeypatch, target, key, count):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    agent = {"kind": "local_agent", "agent": {"system": "Help.", "blocks": {"heard": ""}}}
    report = report_on(evaltester, GOOD_ROWS, **BEST | {"target": agent | target})
    assert report.problems == []
    assert ["needs a key: set `OPENAI_API_KEY`" in warning for warning in report.warnings] == [True] * count


# --- the commands themselves


def invoke(function, *arguments: str | Path):
    import typer

    app = typer.Typer()
    app.command()(function)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_validate_exits_with_0_or_2(evaltester):
    good = invoke(validate, evaltester.write_suite())
    assert (good.exit_code, "all is well" in good.output) == (0, True)
    bad = invoke(validate, evaltester.path, "--set", "max_samples=0")
    assert (bad.exit_code, "must be at least 1, got 0" in bad.output) == (2, True)


def test_init_writes_a_suite_that_is_valid_and_says_what_to_type_next(tmp_path):
    done = invoke(init, tmp_path / "new")
    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(FILES)
    assert done.output.splitlines()[-1] == f"next: stateval run {tmp_path / 'new' / 'suite.yaml'}"
    report = examine(tmp_path / "new")
    assert report.problems == []
    assert [advice[:20] for advice in report.advice] == ["there is no hold-out"]


def test_the_suite_of_init_runs_as_it_is_and_fails_where_its_readme_says(evaltester):
    suite = write_new_suite(evaltester.path / "new")[0]
    finished = evaltester.run(suite)
    assert finished.status == 0, finished.output
    scores = {key: result.grades["answer"].score for key, result in evaltester.results().items()}
    assert {key for key, score in scores.items() if score < 1} == {"corrected-in-short"}


def test_init_overwrites_nothing_unless_told(tmp_path):
    (tmp_path / "agent.py").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"agent\.py would be overwritten"):
        write_new_suite(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["agent.py"]
    assert len(write_new_suite(tmp_path, force=True)) == len(FILES)
    assert (tmp_path / "agent.py").read_text(encoding="utf-8") != "mine"


def test_init_says_where_it_cannot_write(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        write_new_suite(tmp_path / "file" / "below")


def test_the_shipped_schema_is_that_of_the_models():
    assert json.loads(shipped_schema()) == json.loads(schema_text()), "run `python -m stateval.suite.json_schema`"


def test_schema_is_printed_or_written(tmp_path):
    assert json.loads(invoke(schema).output) == suite_schema()
    assert invoke(schema, "--output", tmp_path / "s.json").exit_code == 0
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == suite_schema()


def test_every_field_of_a_suite_has_a_description_in_the_schema():
    found = suite_schema()
    assert set(found["properties"]) == set(SuiteSpec.model_fields)
    assert [name for name, field in found["properties"].items() if not field.get("description")] == []
    own = ("DatasetSpec", "PythonTargetSpec", "LocalAgentTargetSpec", "ToolGraderSpec", "BlockSpec", "GenerationSpec")
    own += ("ModelJudgeSpec", "JudgeSpec", "PanelJudgeSpec", "CriterionSpec")
    fields = [(name, key, field) for name in own for key, field in found["$defs"][name]["properties"].items()]
    assert [(name, key) for name, key, field in fields if key != "kind" and not field.get("description")] == []


@pytest.mark.parametrize(
    ("function", "builtin", "setting"),
    [(list_extractors, EXTRACTORS, "block_label (required)"), (list_graders, GRADERS, "whole (default false)")],
)
def test_listings_name_every_part_with_its_settings(function, builtin, setting):
    output = invoke(function).output
    names = [line for line in output.splitlines() if line and not line.startswith(" ") and " " not in line]
    assert names == list(builtin)
    assert setting in output
    assert "`file.py:function`" in output


def test_listings_name_plug_ins_even_broken_ones(monkeypatch):
    from importlib.metadata import EntryPoint

    point = EntryPoint("polite", "no_such_package:polite", "stateval.graders")
    monkeypatch.setattr(Registry, "entry_points", lambda self, group: {"polite": point})
    assert "polite\n    of the package that it comes from: no_such_package:polite" in invoke(list_graders).output
