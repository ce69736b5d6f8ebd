"""From a suite file to a plan: what it names is found, and everything that cannot be found is said at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stateval.errors import DatasetError, SuiteError
from stateval.records.protocols import Snapshots
from stateval.running.plan import OnError, RunPlan
from stateval.suite.build import build, build_plan, check_plan
from stateval.suite.load import load_suite
from stateval.targets.python_target import PythonTarget
from tests.support.evaltester import EvalTester

TOOL = {"kind": "tool", "function": "contains"}
PYTHON = {"kind": "python", "factory": "agent.py:make"}

CODE = """
from stateval.records.marks import extractor, grader, reward_composer, suite_setup

@grader
def polite(sample, submission):
    return 1.0

@extractor
def whole(trajectory, config):
    return "x"

@reward_composer
def compose(ctx):
    return 1.0

@suite_setup
def prepare(client, model_handle):
    return None

def unmarked(sample, submission):
    return 1.0

def many(a, b, c):
    return None
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvalTester:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    tester = EvalTester(tmp_path)
    tester.write("code.py", CODE)
    return tester


def plan_of(project: EvalTester, rows: list[dict[str, Any]] | None = None, **fields: Any) -> RunPlan:
    return build_plan(load_suite(project.write_suite(rows, **fields)))


def problems_of(project: EvalTester, rows: list[dict[str, Any]] | None = None, **fields: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        plan_of(project, rows, **fields)
    return str(caught.value)


def test_a_plan_holds_what_the_suite_says(project):
    plan = plan_of(
        project,
        num_runs=3,
        max_concurrent=2,
        snapshots="ends",
        on_error="exclude",
        pass_threshold=0.5,
        cleanup=True,
        seed=7,
        setup_script="code.py:prepare",
        gate={"op": "gte", "value": 0.5},
        target={**PYTHON, "timeout": 5, "max_retries": 2},
    )
    assert (plan.name, plan.num_runs, plan.max_concurrent, plan.seed, plan.cleanup) == ("test-suite", 3, 2, 7, True)
    assert (plan.snapshots, plan.on_error, plan.pass_threshold) == (Snapshots.ENDS, OnError.EXCLUDE, 0.5)
    assert plan.metric_keys == ("quality",)
    assert plan.setup is not None
    assert (plan.setup.reference, plan.setup.parameters) == ("code.py:prepare", 2)
    (model,) = plan.models
    assert isinstance(model.target, PythonTarget)
    assert (model.label, model.model_handle, model.timeout, model.max_retries) == ("default", None, 5.0, 2)
    assert check_plan(plan).count == 2


def test_without_more_said_fifteen_samples_are_in_flight(project):
    assert plan_of(project).max_concurrent == 15


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({"target": PYTHON}, ["default"]),
        ({"target": PYTHON | {"model_handles": ["a/b", "a:b"]}}, ["a/b", "a:b"]),
        ({"target": None, "targets": [PYTHON | {"name": "x"}, PYTHON | {"name": "y"}]}, ["x", "y"]),
        ({"target": None, "targets": [PYTHON | {"name": "x", "model_handles": ["m", "n"]}]}, ["x/m", "x/n"]),
    ],
)
def test_every_target_with_every_model_has_a_label_of_its_own(project, fields, labels):
    assert [model.label for model in plan_of(project, **fields).models] == labels


def test_with_one_grader_its_metric_is_the_reward_and_with_several_there_is_none(project):
    assert plan_of(project).reward.metrics == ("quality",)
    assert plan_of(project, graders={"a": TOOL, "b": TOOL}).reward is None
    rewarded = plan_of(project, graders={"a": TOOL, "b": TOOL}, reward={"kind": "metric", "metric_key": "b"})
    assert rewarded.reward.metrics == ("b",)


def test_functions_of_the_suite_s_own_files_are_found(project):
    plan = plan_of(
        project,
        graders={"own": {"kind": "tool", "function": "code.py:polite", "extractor": "code.py:whole"}},
        reward={"kind": "custom", "function": "code.py:compose"},
        teardown_script="code.py:prepare",
    )
    assert plan.graders[0].extractor.name == "code.py:whole"
    assert plan.teardown is not None


LOCAL: dict[str, Any] = {
    "kind": "local_agent",
    "agent": {
        "system": "Help.",
        "blocks": {"user": "", "rules": {"value": "Be kind.", "limit": 100, "read_only": True}},
    },
    "model_handles": ["mine"],
    "base_url": "http://127.0.0.1:1/v1",
    "api_key": "a-key-of-the-suite",
}


def test_a_local_agent_is_made_as_the_suite_says(project):
    plan = plan_of(project, target=LOCAL, seed=7, generation={"max_tokens": 50})
    (model,) = plan.models
    assert (model.label, model.target.kind, model.target.model_handle) == ("mine", "local_agent", "mine")
    blocks = model.target.fingerprint["agent"]["blocks"]
    assert (blocks["user"]["value"], blocks["rules"]["limit"], blocks["rules"]["read_only"]) == ("", 100, True)
    generation = model.target.fingerprint["generation"]
    assert (generation["seed"], generation["max_tokens"]) == (7, 50)


def test_an_agent_file_is_found_beside_the_suite_file(project, monkeypatch):
    project.write("agents/kind.json", '{"system": "Be kind.", "blocks": {"user": "x"}}')
    monkeypatch.chdir("/")
    fields = {key: value for key, value in LOCAL.items() if key != "agent"}
    plan = plan_of(project, target=fields | {"agent_file": "agents/kind.json"})
    assert plan.models[0].target.fingerprint["agent"]["system"] == "Be kind."


def test_keys_are_secrets_and_stand_nowhere_in_the_configuration(project, monkeypatch):
    monkeypatch.setenv("STATEVAL_TEST_TOKEN", "a-token-of-the-environment")
    plan = plan_of(project, target=LOCAL, dataset=[{"input": "a", "ground_truth": "b"}])
    assert {"a-key-of-the-suite", "a-token-of-the-environment"} <= plan.secrets
    assert "a-key-of-the-suite" not in str(plan.config)
    assert plan.config["target"]["base_url"] == "http://127.0.0.1:1/v1"
    assert plan.config["dataset"] == "1 rows in the suite file"


def test_a_missing_key_stops_a_run_but_is_no_fault_of_the_suite(project):
    path = project.write_suite(target={"kind": "local_agent", "agent": {}, "model_handles": ["openai/gpt-4o-mini"]})
    built = build(load_suite(path))
    assert (built.problems, len(built.missing)) == ([], 1)
    with pytest.raises(SuiteError, match=r"suite\.yaml:3: target: .* needs a key: set `OPENAI_API_KEY`"):
        build_plan(load_suite(path))


WRONG = [
    ({"dataset": "nosuch.jsonl"}, "dataset: ", "there is no such file"),
    ({"dataset": "https://huggingface.co/datasets/a/b"}, "dataset: ", "not in this release"),
    (
        {"dataset": {"path": "samples.jsonl", "format": "jsonl"}, "graders": {"q": TOOL | {"function": "containz"}}},
        "graders.q.function: ",
        "did you mean `contains`?",
    ),
    (
        {"graders": {"q": TOOL | {"extractor": "last_asistant"}}},
        "graders.q.extractor: ",
        "did you mean `last_assistant`?",
    ),
    ({"graders": {"q": TOOL | {"extractor": "memory_block"}}}, "graders.q.extractor: ", "`block_label` is missing"),
    (
        {"graders": {"q": TOOL | {"grader_config": {"wole": True}}}},
        "graders.q.grader_config: ",
        "did you mean `whole`?",
    ),
    ({"graders": {"q": TOOL | {"function": "tool_sequence"}}}, "graders.q.function: ", "`extractor: tool_calls`"),
    ({"graders": {"q": TOOL | {"function": "code.py:polit"}}}, "graders.q.function: ", "did you mean `polite`?"),
    ({"graders": {"q": TOOL | {"function": "code.py:unmarked"}}}, "graders.q.function: ", "is not marked `@grader`"),
    ({"graders": {"q": TOOL | {"function": "nosuch.py:polite"}}}, "graders.q.function: ", "there is no file"),
    ({"grader": TOOL | {"function": "containz"}, "graders": None}, "grader.function: ", "did you mean `contains`?"),
    ({"target": PYTHON | {"factory": "agent.py:mak"}}, "target.factory: ", "did you mean `make`?"),
    (
        {"target": PYTHON | {"factory": "code.py:many"}},
        "target.factory: ",
        "must take (sample) or (sample, model_handle)",
    ),
    (
        {"target": None, "targets": [PYTHON | {"name": "x", "factory": "no.py:x"}]},
        "targets.0.factory: ",
        "there is no file",
    ),
    (
        {
            "target": None,
            "targets": [PYTHON | {"name": "x", "model_handles": ["m"]}, PYTHON | {"name": "x/m"}],
        },
        "targets: ",
        "two targets would both be called `x/m`",
    ),
    (
        {"target": LOCAL | {"model_handles": ["embeded/smollm2-135m"], "base_url": None}},
        "target: ",
        "no provider is known",
    ),
    ({"target": {"kind": "local_agent", "agent_file": "no.af"}}, "target.agent_file: ", "the agent file"),
    (
        {"target": LOCAL | {"agent": {"blocks": {"a": {"value": "xx", "limit": 1}}}}},
        "target: ",
        "more than its `limit` of 1",
    ),
    ({"reward": {"kind": "metric", "metric_key": "qality"}}, "reward.metric_key: ", "did you mean `quality`?"),
    ({"reward": {"kind": "custom", "function": "code.py:polite"}}, "reward.function: ", "not `@reward_composer`"),
    ({"setup_script": "code.py:polite"}, "setup_script: ", "not `@suite_setup`"),
    ({"teardown_script": "code.py:many"}, "teardown_script: ", "takes 3 parameters"),
    ({"gate": {"metric_key": "qality", "op": "gte", "value": 1}}, "gate.metric_key: ", "did you mean `quality`?"),
    (
        {"gate": [{"metric_key": "quality", "op": "gte", "value": 1}, {"metric_key": "x", "op": "gte", "value": 1}]},
        "gate.1.metric_key: ",
        "the metric `x`, which does not exist",
    ),
    (
        {"gate": {"kind": "weighted_average", "weights": {"qality": 1}, "op": "gte", "value": 1}},
        "gate.weights: ",
        "did you mean `quality`?",
    ),
    (
        {"gate": {"kind": "logical", "operator": "or", "conditions": [{"metric_key": "x", "op": "lt", "value": 1}]}},
        "gate.conditions.0.metric_key: ",
        "does not exist",
    ),
    ({"graders": {"a": TOOL, "b": TOOL}, "gate": {"op": "gte", "value": 1}}, "gate.metric_key: ", "`metric_key`"),
    (
        {"graders": {"a": TOOL, "b": TOOL}, "gate": {"metric_key": "reward", "op": "gte", "value": 1}},
        "gate.metric_key: ",
        "add a `reward`",
    ),
    ({"gate": [{"name": "n", "op": "gte", "value": 1}, {"name": "n", "op": "lte", "value": 1}]}, "gate: ", "named `n`"),
]


@pytest.mark.parametrize(("fields", "place", "message"), WRONG, ids=[f"{p}{m}"[:50] for _, p, m in WRONG])
def test_what_a_suite_names_and_is_not_there_is_said_with_its_place(project, fields, place, message):
    text = problems_of(project, **fields)
    assert place in text
    assert message in text
    assert "suite.yaml:" in text
    assert len(text.splitlines()) == 1


def test_all_of_it_is_said_at_once(project):
    text = problems_of(
        project,
        dataset="nosuch.jsonl",
        target=PYTHON | {"factory": "agent.py:mak", "model_handles": ["a", "b"]},
        graders={"a": TOOL | {"function": "x"}, "b": TOOL | {"extractor": "y"}},
        reward={"kind": "metric", "metric_key": "c"},
        gate={"metric_key": "d", "op": "gte", "value": 1},
        setup_script="nosuch.py:f",
    )
    assert len(text.splitlines()) == 7


def test_a_file_that_cannot_be_loaded_is_named_once_with_its_line(project):
    project.write("broken.py", "x = 1\nraise RuntimeError('not today')\n")
    text = problems_of(project, graders={key: TOOL | {"function": "broken.py:f"} for key in "ab"})
    assert len(text.splitlines()) == 1
    assert "broken.py:2: loading it raised RuntimeError: not today (named by " in text
    assert "suite.yaml:" in text


ROWS = [
    ([], "the dataset", "no rows"),
    ([{"input": "a", "ground_truth": "b"}, {"input": "a"}], "samples.jsonl:2", "ground_truth"),
    ([{"id": 1, "input": "a", "ground_truth": "b"}, {"id": "1", "input": "a", "ground_truth": "b"}], "2", "the id `1`"),
    (
        [{"input": {"simulate": {"goal": "x"}}, "ground_truth": "b"}],
        "samples.jsonl:1",
        "a simulated user is not in this",
    ),
    (
        [{"input": [{"user": "a", "ground_truth": "b", "graders": ["qality"]}]}],
        "samples.jsonl:1",
        "asks for the grader `qality`; did you mean `quality`?",
    ),
]


@pytest.mark.parametrize(("rows", "place", "message"), ROWS, ids=[message for _, _, message in ROWS])
def test_rows_that_cannot_be_graded_are_refused_before_anything_runs(project, rows, place, message):
    plan = plan_of(project, rows)
    with pytest.raises(DatasetError) as caught:
        check_plan(plan)
    assert place in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"sample_tags": ["nosuch"]}, id="fault-49-tags"),
        pytest.param({"exclude_tags": ["all"]}, id="fault-49-exclude"),
        pytest.param({"split": {"holdout": 0.999999, "use": "dev"}}, id="fault-49-split"),
    ],
)
def test_a_selection_that_matches_nothing_is_an_error(project, fields):
    rows = [{"id": "a", "input": "a", "ground_truth": "a", "tags": ["all"]}]
    with pytest.raises(DatasetError, match="there is none"):
        check_plan(plan_of(project, rows, **fields))


def test_tags_and_the_number_of_samples_select(project):
    rows = [{"input": "a", "ground_truth": "a", "tags": ["even" if n % 2 == 0 else "odd"]} for n in range(10)]
    plan = plan_of(project, rows, sample_tags=["odd"], max_samples=2)
    assert [sample.key for sample in plan.dataset] == ["1", "3"]
    assert check_plan(plan).count == 2


@pytest.mark.parametrize(
    "working_directory", [pytest.param(".", id="fault-20-own"), pytest.param("/", id="fault-20-root")]
)
def test_code_and_data_are_found_beside_the_suite_file(project, monkeypatch, working_directory):
    path = project.write_suite(graders={"q": TOOL | {"function": "code.py:polite"}})
    monkeypatch.chdir(working_directory)
    assert check_plan(build_plan(load_suite(path))).count == 2


def test_what_could_be_made_is_kept_beside_the_problems(project):
    built = build(load_suite(project.write_suite(graders={"a": TOOL, "b": TOOL | {"function": "x"}})))
    assert built.plan is None
    assert [binding.key for binding in built.bindings] == ["a"]
    assert built.dataset is not None
