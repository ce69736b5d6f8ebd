"""JUnit XML: every planned sample once, counted as the ledger counts it, well-formed whatever is in it."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stateval.errors import ExitStatus
from stateval.records.grade import GradeResult
from stateval.records.result import ErrorCategory, SampleError
from stateval.records.verdict import GateVerdict, Outcome
from stateval.reports.junit import write_junit
from stateval.reports.standing import Rule
from stateval.results.directory import ResultsDirectory
from stateval.results.opening import open_results
from stateval.results.reading import Results
from stateval.running.stored import summary_of
from tests.support.stored_results import result, stored

ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
}
"""What there is of elements and attributes in every flavour of the schema that Jenkins and Surefire publish."""

CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "error", "skipped"},
}
SECONDS = re.compile(r"\d+\.\d{3}\Z")


def parsed(document: bytes) -> ElementTree.Element:
    """The document, after it has been held against the schema and its own counts."""
    root = ElementTree.fromstring(document)
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag], element.tag
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
        assert SECONDS.match(element.get("time", "0.000"))
    totals: Counter[str] = Counter()
    for suite in root:
        counts = counted(suite)
        for name in ("tests", "failures", "errors", "skipped"):
            assert suite.get(name) == str(counts[name]), name
        totals += counts
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        name: str(totals[name]) for name in ("tests", "failures", "errors")
    }
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names)
    assert all(len(case) <= 1 for case in root.iter("testcase"))
    return root


def counted(suite: ElementTree.Element) -> Counter[str]:
    cases = suite.findall("testcase")
    kinds = Counter(child.tag for case in cases for child in case)
    return Counter(tests=len(cases), failures=kinds["failure"], errors=kinds["error"], skipped=kinds["skipped"])


def junit(directory: Results) -> ElementTree.Element:
    summary = summary_of(directory)
    file = io.BytesIO()
    write_junit(file, directory, summary, Rule.of(directory, summary))
    return parsed(file.getvalue())


def cases(root: ElementTree.Element) -> dict[str, ElementTree.Element | None]:
    """What stands in each case, by its name."""
    return {str(case.get("name")): next(iter(case), None) for case in root.iter("testcase")}


def kinds(root: ElementTree.Element) -> dict[str, str]:
    return {name: "passed" if child is None else child.tag for name, child in cases(root).items()}


AGENT = """
def make(sample):
    def answer(message):
        if message == "break":
            raise LookupError("no such drawer")
        return message
    return answer
"""


def test_a_run_as_ci_reads_it(evaltester):
    evaltester.write_suite(
        [
            {"id": "good", "input": "red", "ground_truth": "red"},
            {"id": "bad", "input": "blue", "ground_truth": "green"},
            {"id": "broken", "input": "break", "ground_truth": "x"},
        ],
        agent=AGENT,
        gate={"name": "most", "metric_key": "quality", "op": "gte", "value": 0.9},
    )
    assert evaltester.run().status == ExitStatus.GATE_FAILED
    finished = evaltester.command("export", evaltester.results_path, "--junit", "junit.xml")
    assert (finished.status, finished.stdout) == (0, f"wrote {evaltester.path / 'junit.xml'}\n")

    root = parsed((evaltester.path / "junit.xml").read_bytes())
    assert kinds(root) == {"good": "passed", "bad": "failure", "broken": "error", "most": "failure"}
    found = cases(root)
    assert found["bad"].attrib == {"type": "failed", "message": "reward 0, quality 0; passes from 1 on"}
    assert "submission: blue" in found["bad"].text
    assert found["broken"].get("type") == "LookupError"
    assert "no such drawer" in found["broken"].get("message")
    assert found["most"].get("type") == "fail"
    assert "measured 0.333333" in found["most"].text
    samples, gate = root
    assert (samples.get("name"), gate.get("name")) == ("test-suite", "gate")
    assert {p.get("name"): p.get("value") for p in samples.iter("property")} == {
        f"{metric}.{name}": value
        for metric in ("reward", "quality")
        for name, value in {
            "mean": "0.5",
            "n": "2",
            "counted.mean": "0.333333",
            "counted.n": "3",
            "ledger": "3 planned = 1 passed + 1 failed + 0 unscored + 1 errored (target 1) + 0 timed out + 0 skipped + "
            "0 not reached",
        }.items()
    }


def test_every_model_and_run_is_a_suite_of_its_own(tmp_path):
    several = {
        label: [result("a", {"quality": score}, run=run) for run in (1, 2)]
        for label, score in [("x/good", 1.0), ("x/bad", 0.5)]
    }
    root = junit(stored(tmp_path, several, num_runs=2))
    assert [suite.get("name") for suite in root] == [
        "stored [x/good] (run 1)",
        "stored [x/good] (run 2)",
        "stored [x/bad] (run 1)",
        "stored [x/bad] (run 2)",
    ]
    assert [counted(suite)["failures"] for suite in root] == [0, 0, 1, 1]
    assert [case.get("name") for case in root.iter("testcase")] == ["a (run 1)", "a (run 2)"] * 2


def test_a_reward_decides_where_one_is_composed(tmp_path):
    results = [result("a", {"quality": 0.0}, reward=1.0), result("b", {"quality": 1.0}, reward=0.5)]
    assert kinds(junit(stored(tmp_path, results, with_reward=True))) == {"a": "passed", "b": "failure"}


def test_several_metrics_must_all_pass(tmp_path):
    results = [result("a", {"x": 1.0, "y": 1.0}), result("b", {"x": 1.0, "y": 0.9})]
    root = junit(stored(tmp_path, results, metrics=["x", "y"]))
    assert kinds(root) == {"a": "passed", "b": "failure"}
    assert cases(root)["b"].get("message") == "x 1, y 0.9; passes from 1 on"


def test_a_metric_without_a_grade_is_an_error_that_names_it(tmp_path):
    error = SampleError(category=ErrorCategory.GRADING, exception_type="KeyError", message="no judge today")
    results = [result("a", {"x": 1.0}, grade_errors={"y": error})]
    found = cases(junit(stored(tmp_path, results, metrics=["x", "y"])))["a"]
    assert (found.tag, found.get("type"), found.get("message")) == ("error", "KeyError", "grading: no judge today")
    assert "y: grading: no judge today" in found.text


@pytest.mark.parametrize("finished", [True, False], ids=["fault-61-ended-early", "fault-61-still-running"])
def test_samples_that_were_not_reached_are_skipped_and_the_run_is_not_green(tmp_path, finished):
    directory = stored(tmp_path, [result("a"), result("c")], planned=["a", "b", "c"], finished=finished)
    root = junit(directory)
    assert kinds(root) == {"a": "passed", "c": "passed", "b": "skipped", "the run finished": "error"}
    assert cases(root)["b"].get("message") == "not reached"


def test_an_unscored_sample_is_skipped(tmp_path):
    assert kinds(junit(stored(tmp_path, [result("a"), result("b", {})]))) == {"a": "passed", "b": "skipped"}


@pytest.mark.parametrize(
    ("outcome", "on_fail", "kind"),
    [
        (Outcome.PASS, None, "passed"),
        (Outcome.FAIL, None, "failure"),
        (Outcome.INCONCLUSIVE, None, "failure"),
        (Outcome.FAIL, "warn", "skipped"),
    ],
)
def test_a_gate_is_green_only_where_it_passed_or_only_warns(tmp_path, outcome, on_fail, kind):
    verdict = GateVerdict(condition="avg_score(quality) >= 1", outcome=outcome, name="g", on_fail=on_fail, measured=1.0)
    root = junit(stored(tmp_path, [result("a")], gates=[verdict]))
    assert kinds(root) == {"a": "passed", "g": kind}
    if kind == "failure":
        assert cases(root)["g"].get("type") == outcome.value


def test_gates_without_names_are_told_apart(tmp_path):
    verdicts = [GateVerdict(condition="same", outcome=Outcome.PASS) for _ in range(2)]
    assert set(kinds(junit(stored(tmp_path, [result("a")], gates=verdicts)))) == {"a", "gate 1", "gate 2"}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        pytest.param({"reward": 1.0, "error": "late", "timed_out": True}, "passed", id="fault-65-time-out-and-reward"),
        pytest.param({"error": "late", "timed_out": True}, "error", id="fault-65-time-out-without-reward"),
        pytest.param({"error": "judge gone", "category": ErrorCategory.GRADING}, "error", id="fault-65-grader-failed"),
        pytest.param({"reward": 0.5, "error": "odd"}, "failure", id="fault-53-graded-and-errored"),
        pytest.param({"reward": 1.0, "submission": "Error: no"}, "passed", id="fault-64-an-answer-that-says-error"),
        pytest.param({"error": "Error: no"}, "error", id="fault-64-an-error-is-no-answer"),
    ],
)
def test_each_fact_is_counted_once_as_in_the_ledger(tmp_path, fields, kind):
    directory = stored(tmp_path, [result("a", **fields)], with_reward=True)
    assert kinds(junit(directory)) == {"a": kind}
    agree_with_the_ledger(directory)


def agree_with_the_ledger(directory: ResultsDirectory) -> None:
    (model,) = summary_of(directory).models
    ledger = model.ledgers["reward"]
    found = Counter(kinds(junit(directory)).values())
    assert found["passed"] == ledger.passed
    assert found["failure"] == ledger.failed
    assert found["error"] == sum(ledger.errored.values()) + ledger.timed_out + (ledger.not_reached > 0)
    assert found["skipped"] == ledger.unscored + ledger.not_reached


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"reward": st.none() | st.sampled_from([0.0, 0.5, 1.0]), "error": st.none() | st.just("e")},
            optional={"timed_out": st.just(True)},
        ),
        max_size=6,
    ),
    st.integers(0, 2),
)
def test_the_counts_are_those_of_the_ledger(tmp_path_factory, observed, missing):
    results = [
        result(number, {}, **{key: value for key, value in fields.items() if key != "timed_out" or fields["error"]})
        for number, fields in enumerate(observed)
    ]
    ids = range(len(results) + missing)
    directory = stored(tmp_path_factory.mktemp("run"), results, with_reward=True, planned=ids)
    agree_with_the_ledger(directory)


anything = st.text(st.characters(exclude_categories=()), max_size=60)
NASTY = [
    *("]]>", "<![CDATA[", "&amp;", "<!DOCTYPE a [<!ENTITY b 'c'>]>&b;", "</testcase>", '"', "'", "\r\n\t"),
    *("\x00\x0b\x1f", "\ud83d", "\ufffe\uffff", "😀", "::error::x", "a\n::add-mask::b", "##[error]x"),
]
nasty = anything | st.sampled_from(NASTY)


@settings(deadline=None, max_examples=60)
@given(nasty, nasty, nasty, nasty)
def test_any_text_is_well_formed_xml_and_no_command(tmp_path_factory, name, rationale, submission, message):
    """fault-10, fault-11: NUL and half an emoji; a runner of GitHub reads what is printed line by line."""
    results = [
        result(f"1{name}", {"quality": 0.0}, rationale=rationale, submission=submission),
        result(f"2{name}", {}, error=message, exception_type=name),
    ]
    directory = stored(tmp_path_factory.mktemp("run"), results, suite=name or "s")
    summary = summary_of(directory)
    file = io.BytesIO()
    write_junit(file, directory, summary, Rule.of(directory, summary))
    root = parsed(file.getvalue())
    (samples,) = root
    assert counted(samples) == Counter(tests=2, failures=1, errors=1)
    lines = re.split(r"[\r\n\x85\u2028\u2029]", file.getvalue().decode("utf-8"))
    assert [line for line in lines if line.lstrip().startswith("::") or "##[" in line] == []
    if re.fullmatch("[ -~\n]+", rationale):  # as XML reads it back
        assert f"quality 0: {rationale}\n" in next(iter(samples.iter("failure"))).text


@pytest.mark.parametrize("kind", ["rationale", "submission", "error"])
def test_fault_125_a_text_of_5_mb_is_shortened(tmp_path, kind):
    big = "<&\x00😀" * 1_000_000
    scores: dict[str, Any] = {} if kind == "error" else {"quality": 0.0}
    directory = stored(tmp_path, [result("a", scores, **{kind: big})])
    summary = summary_of(directory)
    file = io.BytesIO()
    write_junit(file, directory, summary, Rule.of(directory, summary))
    assert len(file.getvalue()) < 100_000
    parsed(file.getvalue())


def test_seconds_that_another_tool_did_not_take_are_left_out(tmp_path):
    line = {"type": "result", "result": {"sample": {"id": 0, "input": "a"}, "grade": {"score": 1.0}}}
    (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (case,) = junit(open_results(tmp_path / "results.jsonl")).iter("testcase")
    assert (case.get("name"), case.get("time")) == ("0", None)


def test_a_grade_that_is_no_number_of_the_run_is_not_looked_at(tmp_path: Path) -> None:
    one = result("a").model_copy(update={"grades": {"quality": GradeResult(score=1.0), "old": GradeResult(score=0.0)}})
    assert kinds(junit(stored(tmp_path, [one]))) == {"a": "passed"}
