"""Reading a suite file: what it may say, what is said of what it may not, variables, overrides, places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stateval.errors import SuiteError, UsageError
from stateval.suite.load import LoadedSuite, load_suite
from stateval.suite.overrides import Override, parse_set
from stateval.suite.spec import LocalAgentTargetSpec, PythonTargetSpec, SuiteSpec

ROOT = Path(__file__).parent.parent
MINIMAL: dict[str, Any] = {
    "name": "s",
    "dataset": "rows.jsonl",
    "target": {"kind": "python", "factory": "agent.py:make"},
    "graders": {"quality": {"kind": "tool", "function": "contains"}},
}


def written(directory: Path, data: dict[str, Any] | str, name: str = "suite.yaml") -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def suite_with(directory: Path, /, **fields: Any) -> Path:
    """A suite file; `...` as a value leaves a field of the minimal suite out."""
    data = {key: value for key, value in (MINIMAL | fields).items() if value is not ...}
    return written(directory, data)


def loaded(directory: Path, /, *overrides: Override, **fields: Any) -> LoadedSuite:
    return load_suite(suite_with(directory, **fields), overrides)


def complaint(directory: Path, /, *overrides: Override, **fields: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        loaded(directory, *overrides, **fields)
    return str(caught.value)


def test_a_minimal_suite_has_the_documented_defaults(tmp_path):
    spec = loaded(tmp_path).spec
    assert (spec.runs, spec.max_samples, spec.max_concurrent, spec.pass_threshold) == (1, None, None, 1.0)
    assert (spec.on_error, spec.snapshots, spec.cleanup, spec.gate) == ("fail", "none", False, None)
    assert spec.all_graders["quality"].extractor == "last_assistant"
    assert isinstance(spec.target, PythonTargetSpec)
    assert (spec.target.timeout, spec.target.max_retries, spec.target.model_handles) == (300.0, 0, None)


BAD = [
    ({"nmae": 1, "max_sample": 3}, "max_sample: there is no field `max_sample`; did you mean `max_samples`?"),
    ({"name": 3}, 'name: expected text, got 3; put it in quotes: "3"'),
    ({"name": ...}, "name: is required"),
    ({"dataset": ...}, "dataset: is required"),
    ({"dataset": ["a.jsonl"]}, "dataset.0: expected a mapping (`key: value` lines), got 'a.jsonl'"),
    ({"dataset": {"path": []}}, "dataset.path: must not be empty"),
    ({"dataset": {"path": "a", "inputt": "q"}}, "there is no field `inputt`; did you mean `input`?"),
    ({"target": ...}, "`target` is required (or `targets`)"),
    ({"target": "agent.py"}, "target: expected a mapping"),
    ({"target": {"factory": "a.py:b"}}, "target: `kind` is required"),
    (
        {"target": {"kind": "pyton"}},
        "must be `python`, `local_agent`, `letta_agent` or `agent`, got 'pyton'; did you mean `python`?",
    ),
    ({"target": {"kind": "python"}}, "target.factory: is required"),
    (
        {"target": {"kind": "python", "factory": "a.py:b", "timeout": 0}},
        "target.timeout: must be greater than 0, got 0",
    ),
    ({"target": {"kind": "python", "factory": "a.py:b", "timeout": float("inf")}}, "must be a finite number, got inf"),
    ({"target": {"kind": "python", "factory": "a.py:b", "timeout": True}}, "timeout: expected a number, got true"),
    ({"target": {"kind": "python", "factory": "a.py:b", "model_handles": ["m", "m"]}}, "`m` is named twice"),
    ({"target": {"kind": "local_agent"}}, "target: `agent` is required (or `agent_file`)"),
    (
        {"target": {"kind": "local_agent", "agent": {}, "agent_file": "a.af"}},
        "target.agent_file: stands beside `agent`; give one of them",
    ),
    (
        {"target": {"kind": "local_agent", "agent": {"blocks": {"user": {"value": "", "limt": 1}}}}},
        "target.agent.blocks.user.limt: there is no field `limt`; did you mean `limit`?",
    ),
    ({"targets": [MINIMAL["target"]]}, "targets: stands beside `target`; give one of them"),
    ({"target": ..., "targets": [MINIMAL["target"]]}, "targets: each of several targets needs a `name`"),
    ({"graders": ...}, "`graders` is required (or `grader`)"),
    ({"graders": {}}, "graders: must not be empty"),
    ({"graders": {"q": {"function": "contains"}}}, "graders.q: `kind` is required"),
    ({"graders": {"q": {"kind": "tool"}}}, "graders.q.function: is required"),
    ({"graders": {"q": {"kind": "tool", "function": "contains", "extractr": "x"}}}, "did you mean `extractor`?"),
    ({"reward": {"kind": "custm"}}, "reward: `kind` must be `metric` or `custom`, got 'custm'; did you mean `custom`?"),
    ({"gate": {"op": "ge", "value": 1}}, "gate.op: expected `gt`, `gte`, `lt`, `lte` or `eq`, got 'ge'"),
    ({"gate": {"op": "gte", "value": "high"}}, "gate.value: expected a number, got 'high'"),
    ({"gate": {"op": "gte", "value": 1, "pas_threshold": 1}}, "did you mean `pass_threshold`?"),
    ({"gate": [{"op": "gte"}]}, "gate.0.value: is required"),
    ({"gate": {"kind": "logical", "operator": "and", "conditions": []}}, "gate.conditions: must not be empty"),
    ({"on_error": "fial"}, "on_error: expected `fail`, `exclude` or `stop`, got 'fial'; did you mean `fail`?"),
    ({"split": {"holdout": 1.5}}, "split.holdout: must be less than 1, got 1.5"),
    ({"split": {"holdout": 0.2, "sed": 1}}, "split.sed: there is no field `sed`; did you mean `seed`?"),
    ({"sample_tags": "safety"}, "sample_tags: expected a list, got 'safety'"),
    ({"version": 1.10}, "version: expected text, got 1.1; put it in quotes"),
    ({"num_runs": "abc"}, "num_runs: expected a whole number, got 'abc'"),
    ({"num_runs": 1.5}, "num_runs: expected a whole number, got 1.5"),
    ({"num_runs": 0}, "num_runs: must be at least 1, got 0"),
    ({"num_runs": 2, "epochs": 2}, "epochs: stands beside `num_runs`; give one of them"),
    ({"pass_threshold": float("nan")}, "pass_threshold: must be"),
    ({"cleanup": "maybe"}, "cleanup: expected true or false, got 'maybe'"),
    ({"generation": {"temperature": -1}}, "generation.temperature: must be at least 0, got -1"),
]


@pytest.mark.parametrize(("fields", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_is_wrong_is_said_with_file_line_and_field(tmp_path, fields, message):
    text = complaint(tmp_path, **fields)
    assert message in text
    assert re.match(rf"{re.escape(str(tmp_path))}/suite\.yaml:\d+: ", text)


@pytest.mark.parametrize("value", [0, -1, True, "many", 1.5])
@pytest.mark.parametrize(
    "field", [pytest.param("max_samples", id="fault-14"), pytest.param("max_concurrent", id="fault-67")]
)
def test_a_count_is_a_whole_number_of_at_least_one(tmp_path, field, value):
    assert f"suite.yaml:10: {field}: " in complaint(tmp_path, **{field: value})


@pytest.mark.parametrize("value", [None, 1, 10**6, "7"])
def test_other_counts_are_taken_as_they_are(tmp_path, value):
    assert loaded(tmp_path, max_concurrent=value).spec.max_concurrent == (None if value is None else int(value))


def test_all_problems_are_said_at_once_in_the_order_of_the_file(tmp_path):
    text = complaint(tmp_path, name=1, max_samples=0, nosuch=1, gate={"op": "x"})
    assert [line.split(": ")[1] for line in text.splitlines()] == [
        "name",
        "max_samples",
        "nosuch",
        "gate.value",
        "gate.op",
    ]


LATER = [
    *[{word: {}} for word in ("sandbox", "controls")],
    *[{"backend": "local"}],
    *[{"target": {"kind": kind}} for kind in ("letta_code",)],
    *[{"target": MINIMAL["target"] | {word: "x"}} for word in ("model_configs", "memory_dir", "use_agent_model")],
    *[
        {"graders": {"q": {"kind": kind, "prompt": "Judge {submission}", "model": "m"}}}
        for kind in ("state", "trajectory")
    ],
    {"graders": {"q": MINIMAL["graders"]["quality"] | {"policy": "x"}}},
]


@pytest.mark.parametrize("fields", LATER, ids=str)
def test_words_of_later_releases_are_refused_with_one_sentence(tmp_path, fields):
    text = complaint(tmp_path, **fields)
    assert len(text.splitlines()) == 1
    assert "not in this release" in text
    assert "there is no field" not in text


def test_what_a_list_is_too_short_for_is_said_with_its_place(tmp_path):
    judge = {"kind": "model_judge", "prompt": "Judge {submission}", "model": "m", "scale": [1]}
    assert "graders.q.scale.1" in complaint(tmp_path, graders={"q": judge})


def test_numbers_in_quotes_and_words_for_booleans_are_read_as_older_files_mean_them(tmp_path):
    text = "name: s\ndataset: d.csv\ntarget: {kind: python, factory: 'a.py:f', timeout: '5'}\n"
    text += "grader: {kind: tool, function: contains}\ncleanup: yes\nnum_runs: null\n"
    spec = load_suite(written(tmp_path, text)).spec
    assert (spec.all_targets[0].timeout, spec.cleanup, spec.runs) == (5.0, True, 1)


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, "grader"),
        ({"reward": {"kind": "metric", "metric_key": "memory"}}, "memory"),
        ({"gate": {"metric_key": "memory", "op": "gte", "value": 1}}, "memory"),
        ({"gate": {"metric_key": "latency", "op": "lte", "value": 1}}, "grader"),
        ({"gate": [{"op": "gte", "value": 1}]}, "grader"),
    ],
)
def test_a_single_grader_takes_its_key_from_the_reward_or_the_gate(tmp_path, fields, key):
    spec = loaded(tmp_path, graders=..., grader=MINIMAL["graders"]["quality"], **fields).spec
    assert list(spec.all_graders) == [key]


def test_columns_of_a_dataset_are_mapped(tmp_path):
    spec = loaded(tmp_path, dataset={"path": ["a.csv", "b.csv"], "input": "question", "id": "qid"}).spec
    assert spec.dataset.columns == {"input": "question", "id": "qid"}


# --- variables


def test_variables_are_expanded_in_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("STATEVAL_TEST_DATA", "rows")
    monkeypatch.delenv("STATEVAL_TEST_NONE", raising=False)
    monkeypatch.setenv("STATEVAL_TEST_EMPTY", "")
    spec = loaded(
        tmp_path,
        dataset="${STATEVAL_TEST_DATA}.jsonl",
        num_runs="${STATEVAL_TEST_NONE:-3}",
        cleanup="${STATEVAL_TEST_EMPTY:-true}",
        description="costs $5, not $${STATEVAL_TEST_DATA}; ${STATEVAL_TEST_EMPTY}.",
        graders={"q": MINIMAL["graders"]["quality"] | {"grader_config": {"words": ["${STATEVAL_TEST_DATA}"]}}},
    ).spec
    assert (spec.dataset, spec.num_runs, spec.cleanup) == ("rows.jsonl", 3, True)
    assert spec.description == "costs $5, not ${STATEVAL_TEST_DATA}; ."
    assert spec.all_graders["q"].grader_config == {"words": ["rows"]}


def test_prompts_rows_and_truths_are_never_expanded(tmp_path):
    text = "Say ${NO_SUCH_VARIABLE} and $${X}"
    spec = loaded(
        tmp_path,
        dataset=[{"input": text, "ground_truth": "${Y}"}],
        target={"kind": "local_agent", "agent": {"system": text, "blocks": {"a": text, "b": {"value": text}}}},
        graders={"q": MINIMAL["graders"]["quality"] | {"grader_config": {"expected": [text]}}},
    ).spec
    assert spec.dataset == [{"input": text, "ground_truth": "${Y}"}]
    assert isinstance(spec.target, LocalAgentTargetSpec)
    assert spec.target.agent is not None
    assert (spec.target.agent.system, spec.target.agent.blocks["a"]) == (text, text)
    assert spec.all_graders["q"].grader_config == {"expected": [text]}


def test_a_missing_variable_is_named_with_its_place(tmp_path):
    text = complaint(tmp_path, output="${NO_SUCH_VARIABLE}/x", num_runs="${NO_SUCH_NUMBER}", max_samples=0)
    assert "suite.yaml:10: output: the environment variable `NO_SUCH_VARIABLE` is not set" in text
    assert "suite.yaml:11: num_runs: the environment variable `NO_SUCH_NUMBER` is not set" in text
    assert "suite.yaml:12: max_samples: must be at least 1" in text
    assert len(text.splitlines()) == 3


def test_a_dollar_brace_that_is_no_variable_is_an_error(tmp_path):
    assert "`${` begins a variable" in complaint(tmp_path, output="${}")


def test_a_dotenv_file_of_the_current_directory_is_loaded_and_exported_variables_win(tmp_path, monkeypatch):
    for name in ("STATEVAL_TEST_FROM_FILE", "STATEVAL_TEST_EXPORTED"):
        monkeypatch.setenv(name, "exported")
    monkeypatch.delenv("STATEVAL_TEST_FROM_FILE")
    (tmp_path / ".env").write_text("STATEVAL_TEST_FROM_FILE=file\nSTATEVAL_TEST_EXPORTED=file\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    fields = {"output": "${STATEVAL_TEST_FROM_FILE}-${STATEVAL_TEST_EXPORTED}"}
    assert loaded(tmp_path, **fields).spec.output == "file-exported"


def test_a_dotenv_file_that_is_no_text_is_an_error(tmp_path, monkeypatch):
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe\n")
    monkeypatch.chdir(tmp_path)
    assert complaint(tmp_path) == ".env: the text is not UTF-8"


# --- overrides


def test_values_of_the_command_line_come_before_those_of_the_file(tmp_path):
    overrides = [parse_set("target.timeout=7"), parse_set("gate.value=0.5"), Override.of("num_runs", 4, "--num-runs")]
    overrides += [parse_set("graders.quality.extractor_config={separator: x}"), parse_set("version='2'")]
    spec = loaded(tmp_path, *overrides, epochs=2, gate={"op": "gte", "value": 1}).spec
    assert (spec.all_targets[0].timeout, spec.gate.value, spec.runs, spec.version) == (7.0, 0.5, 4, "2")
    assert spec.all_graders["quality"].extractor_config == {"separator": "x"}


@pytest.mark.parametrize("said", ["num_runs", "epochs"])
@pytest.mark.parametrize("set_", ["num_runs", "epochs"])
def test_the_number_of_runs_is_overridden_by_either_name(tmp_path, said, set_):
    assert loaded(tmp_path, parse_set(f"{set_}=4"), **{said: 2}).spec.runs == 4


def test_an_override_of_the_target_counts_for_each_of_several(tmp_path):
    targets = [MINIMAL["target"] | {"name": name} for name in ("a", "b")]
    spec = loaded(
        tmp_path, parse_set("target.timeout=7"), parse_set("targets.1.max_retries=2"), target=..., targets=targets
    )
    assert [target.timeout for target in spec.spec.all_targets] == [7.0, 7.0]
    assert [target.max_retries for target in spec.spec.all_targets] == [0, 2]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("max_samples=0", "--set max_samples: max_samples: must be at least 1, got 0"),
        ("max_sample=1", "--set max_sample: max_sample: there is no field `max_sample`; did you mean `max_samples`?"),
        ("target.base_url=http://x", "--set target.base_url: target.base_url: there is no field `base_url`"),
    ],
)
def test_a_wrong_override_is_said_to_come_from_the_command_line(tmp_path, override, message):
    assert message in complaint(tmp_path, parse_set(override))


@pytest.mark.parametrize("text", ["max_samples", "=3", "a..b=1", "a=[1"])
def test_what_is_no_override_is_refused(text):
    with pytest.raises(UsageError, match="--set"):
        parse_set(text)


@pytest.mark.parametrize("text", ["name.first=x", "gate.5.value=1", "gate.x.value=1"])
def test_an_override_that_fits_nowhere_is_refused(tmp_path, text):
    with pytest.raises(UsageError, match="--set"):
        loaded(tmp_path, parse_set(text), gate=[{"op": "gte", "value": 1}])


# --- files


WAYS = ("elsewhere", "symlinked-directory", "dots", "directory")


@pytest.mark.parametrize("way", [pytest.param(way, id=f"fault-20-{way}") for way in WAYS])
def test_paths_are_relative_to_the_suite_file(tmp_path, monkeypatch, way):
    project = tmp_path / "project"
    path = suite_with(project, output="out")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(project, target_is_directory=True)
    monkeypatch.chdir(elsewhere)
    named = {
        "elsewhere": path,
        "symlinked-directory": tmp_path / "link" / "suite.yaml",
        "dots": Path("..") / "elsewhere" / ".." / "project" / "suite.yaml",
        "directory": project,
    }[way]
    suite = load_suite(named)
    assert suite.path.is_absolute()
    assert suite.directory.samefile(project)
    assert suite.output is not None
    assert suite.output.parent.samefile(project)


def test_a_missing_file_names_what_is_near(tmp_path):
    suite_with(tmp_path)
    with pytest.raises(SuiteError, match=r"there is no such file \(did you mean `.*suite\.yaml`\?\)"):
        load_suite(tmp_path / "suit.yaml")
    with pytest.raises(SuiteError, match=r"there is no such file \(there is: suite\.yaml\)"):
        load_suite(tmp_path / "quite-different.json")
    with pytest.raises(SuiteError, match=r"there is no directory .*nowhere either"):
        load_suite(tmp_path / "nowhere" / "suite.yaml")


def test_a_directory_without_a_suite_says_so(tmp_path):
    with pytest.raises(SuiteError, match=r"this directory has no suite\.yaml"):
        load_suite(tmp_path)


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text", "3"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path, text):
    with pytest.raises(SuiteError, match="a suite file is a mapping"):
        load_suite(written(tmp_path, text))


# --- old spellings


def test_old_spellings_of_gates_are_accepted_and_noted(tmp_path):
    suite = loaded(tmp_path, gate={"metric": "accuracy", "op": "gte", "value": 50, "pass_op": "gt", "pass_value": 0.5})
    assert suite.spec.gate.aggregation == "accuracy"
    assert suite.spec.gate.pass_threshold == 0.5
    assert [note.split(": ", 1)[1] for note in suite.notes] == [
        "`gate.metric` read as `aggregation`",
        "`gate.pass_value` read as `pass_threshold`: passed is gt 0.5",
        "`gate` without `metric_key` read as `metric_key: quality`, the only grader",
    ]
    assert all(note.startswith(f"{suite.path}:") for note in suite.notes)


def test_a_suite_in_today_s_words_has_no_notes(tmp_path):
    assert loaded(tmp_path, gate={"metric_key": "quality", "op": "gte", "value": 1}).notes == ()


# --- the page that documents it all


def test_every_field_is_documented_and_no_other():
    page = (ROOT / "docs" / "suite-file.md").read_text(encoding="utf-8")
    fields = re.findall(r"^\| `([a-z_]+)`", page.partition("## Dataset")[0], re.MULTILINE)
    assert sorted(fields) == sorted(SuiteSpec.model_fields)


@pytest.mark.parametrize("field", ["num_runs", "epochs", "max_samples", "max_concurrent", "seed"])
def test_whole_numbers_have_limits_that_are_named(tmp_path, field):
    assert f"{field}: must be at most" in complaint(tmp_path, **{field: 99999999999999999999})
    assert f"--set {field}: {field}: must be at most" in complaint(tmp_path, parse_set(f"{field}={2**63}"))


def test_the_greatest_whole_numbers_are_taken(tmp_path):
    spec = loaded(tmp_path, num_runs=1_000_000, max_samples=2**63 - 1, seed=-(2**63) + 1).spec
    assert (spec.runs, spec.max_samples, spec.seed) == (1_000_000, 2**63 - 1, -(2**63) + 1)
    assert "num_runs: must be at most 1e+06" in complaint(tmp_path, num_runs=1_000_001)
    assert "split.seed: must be at most" in complaint(tmp_path, split={"holdout": 0.5, "seed": 2**64})


def test_half_an_emoji_in_a_key_of_a_row_is_kept(tmp_path):
    text = 'name: s\ndataset: [{input: a, "\\ud800": {"é\\ud800": 1}}]\ntarget: {kind: python, factory: "a.py:f"}\n'
    spec = load_suite(written(tmp_path, text + "graders: {q: {kind: tool, function: contains}}")).spec
    assert spec.dataset == [{"input": "a", "\ud800": {"é\ud800": 1}}]
