"""`stateval export`: what machines read of a run, and what they must never obey in it."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from stateval.errors import ExitStatus
from stateval.records.summary import Ledger, MetricSummary, ModelSummary, Summary
from stateval.records.verdict import GateVerdict, Outcome
from stateval.reports import github
from stateval.reports.github import Annotation, Level, Spot, command, commands
from stateval.reports.markdown import LONGEST_COMMENT, code, comment, marker_line
from stateval.reports.printable import printable, shortened
from stateval.reports.samples import noteworthy
from stateval.reports.standing import Rule
from stateval.results.directory import ResultsDirectory
from stateval.running.stored import summary_of
from stateval.suite.places import lines_of
from tests.support.stored_results import LABEL, result, stored

HOSTILE = [
    *("::error::pwned", "a\n::add-mask::secret", "  ::set-output name=a::b", "##[add-mask]x", "x ##[group]y"),
    *("@octocat #12 GH-1 https://example.org ![a](b) [c](d) <img src=x onerror=y> <!-- z -->", "| a | b |", "`x`"),
    *("```\n# heading\n```", "=cmd()", 'a,b"c\r\nd', "\x1b[31m\x00", "half \ud83d", "-->", "😀 \u202e"),
]


@pytest.fixture
def exported(evaltester):
    """Runs `stateval export` on the results with these arguments."""

    def export(*arguments: Any, status: int = ExitStatus.PASSED, **options: Any):
        finished = evaltester.command("export", evaltester.results_path, *arguments, **options)
        assert finished.status == status, finished.output
        return finished

    return export


def ran(evaltester, status: int = ExitStatus.PASSED, **fields: Any) -> None:
    evaltester.write_suite(**fields)
    finished = evaltester.run()
    assert finished.status == status, finished.output


def kept(evaltester) -> None:
    """The same as a run of the suite that echoes, without the run."""
    results = [result(1, submission="red"), result(2, {"quality": 0.0}, submission="blue")]
    stored(evaltester.results_path, results, suite="test-suite")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


# What is written, and where


def test_without_a_format_all_are_named(evaltester, exported):
    kept(evaltester)
    told = exported(status=ExitStatus.INPUT_WRONG).stderr
    assert all(option in told for option in ("--csv", "--junit", "--markdown", "--parquet", "--github"))


@pytest.mark.parametrize("arguments", [["--csv"], ["--csv", "-"], ["--csv="], ["--csv=-"]])
def test_one_format_goes_to_the_standard_output(evaltester, exported, arguments):
    kept(evaltester)
    finished = exported(*arguments)
    assert [row["submission"] for row in rows_of(finished.stdout)] == ["red", "blue"]
    assert not list(evaltester.path.glob("stateval.*"))


def test_a_file_is_named_and_directories_to_it_are_made(evaltester, exported):
    kept(evaltester)
    assert exported("--csv", "out/table.csv", "--markdown=out/comment.md").stdout.count("wrote ") == 2
    assert len(rows_of((evaltester.path / "out/table.csv").read_text(encoding="utf-8"))) == 2
    assert (evaltester.path / "out/comment.md").read_text(encoding="utf-8").startswith("<!-- stateval: test-suite -->")
    assert [path.name for path in (evaltester.path / "out").iterdir() if path.suffix == ".partial"] == []


def test_several_formats_without_files_have_names_of_their_own(evaltester, exported):
    kept(evaltester)
    exported("--csv", "--junit", "--github", "--markdown", "--parquet")
    names = sorted(path.name for path in evaltester.path.glob("stateval.*"))
    assert names == ["stateval.csv", "stateval.md", "stateval.parquet", "stateval.xml"]


def test_a_directory_after_an_option_is_the_results(evaltester):
    kept(evaltester)
    finished = evaltester.command("export", "--junit", evaltester.results_path)
    assert finished.status == ExitStatus.PASSED
    assert finished.stdout.startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--csv", "-", "--junit", "-"], "cannot go to the standard output"),
        (["--csv", "-", "--github"], "--github prints there"),
        (["--csv", "a", "--junit", "a"], "one file"),
        (["--csv", "results/suite.json/x"], "cannot be written"),
        (["--github", "--suite", "missing.yaml"], "no suite file"),
    ],
)
def test_what_cannot_be_is_told(evaltester, exported, arguments, told):
    kept(evaltester)
    assert told in exported(*arguments, status=ExitStatus.INPUT_WRONG).stderr


def test_no_results_are_told(evaltester):
    finished = evaltester.command("export", "nowhere", "--csv")
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "nowhere does not exist" in finished.stderr


def test_a_file_that_cannot_be_completed_is_not_begun(evaltester, exported):
    kept(evaltester)
    exported("--csv", "table.csv")
    before = (evaltester.path / "table.csv").read_bytes()
    with (evaltester.results_path / "default.jsonl").open("ab") as journal:
        journal.write(b"no json\n")
    finished = exported("--csv", "table.csv", status=ExitStatus.UNFINISHED)
    assert "no sample result" in finished.stderr
    assert (evaltester.path / "table.csv").read_bytes() == before
    assert not (evaltester.path / "table.csv.partial").exists()


def test_an_unfinished_run_is_exported_as_far_as_it_came(evaltester, exported):
    stored(evaltester.results_path, [result("b")], planned=["a", "b"], finished=False)
    (row,) = rows_of(exported("--csv").stdout)
    assert (row["id"], row["input"]) == ("b", "asked of b")
    assert "did not finish" in exported("--markdown").stdout
    assert "::error title=the run did not finish::" in exported("--github").stdout


def test_a_run_stopped_before_its_samples_were_written_is_exported_with_a_note(evaltester, exported):
    kept(evaltester)
    (evaltester.results_path / "suite.json").unlink()
    finished = exported("--csv", "-")
    assert [(row["input"], row["submission"]) for row in rows_of(finished.stdout)] == [("", "red"), ("", "blue")]
    assert "has no suite.json, so what the samples asked is not known" in finished.stderr


def test_results_of_letta_evals_are_exported_too(evaltester):
    line = {
        "type": "result",
        "result": {"sample": {"id": 3, "input": "hi"}, "submission": "x", "grade": {"score": 0.5}},
    }
    evaltester.write("old/results.jsonl", json.dumps(line) + "\n")
    evaltester.write("old/header.json", json.dumps({"type": "header", "config": {"suite_name": "old"}}))
    finished = evaltester.command("export", "old", "--csv")
    (row,) = rows_of(finished.stdout)
    assert (row["id"], row["input"], row["submission"], row["seconds"]) == ("3", "hi", "x", "")
    assert "* sample `3` did not pass" in evaltester.command("export", "old", "--markdown").stdout
    assert '<failure type="failed"' in evaltester.command("export", "old", "--junit").stdout


# Tables


def test_a_row_has_all_that_is_known_of_an_observation(evaltester, exported):
    ran(
        evaltester,
        rows=[{"id": "a", "input": ["one", "two"], "ground_truth": "two", "tags": ["x", "y"], "cluster": "c"}],
        graders={key: {"kind": "tool", "function": "contains"} for key in ("first", "second")},
    )
    (row,) = rows_of(exported("--csv").stdout)
    assert list(row)[:11] == [
        *("id", "model", "run", "input", "submission"),
        *("first_score", "first_rationale", "first_submission"),
        *("second_score", "second_rationale", "second_submission"),
    ]
    assert json.loads(row["input"]) == ["one", "two"]
    assert json.loads(row["tags"]) == ["x", "y"]
    assert (row["model"], row["run"], row["cluster"], row["first_score"]) == ("default", "1", "c", "1.0")
    assert float(row["seconds"]) >= float(row["target_seconds"]) >= 0


def test_an_error_is_a_cell_and_no_score(evaltester, exported):
    agent = "def make(sample):\n    raise LookupError('no, \"such\" drawer')\n"
    ran(evaltester, status=ExitStatus.UNFINISHED, agent=agent)
    row, _ = rows_of(exported("--csv").stdout)
    assert (row["quality_score"], row["error_category"], row["error_type"]) == ("", "target", "LookupError")
    assert 'no, "such" drawer' in row["error"]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=()), max_size=40))
def test_every_cell_is_read_back_as_it_was(tmp_path_factory, text):
    from stateval.reports.rows import columns, rows
    from stateval.reports.tables import write_csv

    directory = stored(tmp_path_factory.mktemp("run"), [result("a", submission=text, rationale=text)])
    file = io.BytesIO()
    write_csv(file, rows(directory, ["quality"]), columns(["quality"]))
    (row,) = rows_of(file.getvalue().decode("utf-8"))
    assert row["submission"] == row["quality_rationale"] == text.encode("utf-8", "backslashreplace").decode("utf-8")


def test_parquet_has_types_and_row_groups(evaltester, exported):
    import pyarrow.parquet

    stored(
        evaltester.results_path,
        [result(number, submission=f"half \ud83d {number}", tags=("t",)) for number in range(3)] + [result("x", {})],
    )
    exported("--parquet", "table.parquet")
    table = pyarrow.parquet.read_table(evaltester.path / "table.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert types["id"] == types["submission"] == types["error"] == "string"
    assert types["quality_score"] == types["cost"] == types["seconds"] == "double"
    assert types["run"] == types["prompt_tokens"] == "int64"
    assert table.schema.field("tags").type.value_type == "string"
    first, *_, last = table.to_pylist()
    assert (first["id"], first["submission"], first["tags"]) == ("0", "half \\ud83d 0", ["t"])
    assert (last["quality_score"], last["tags"], last["cost"]) == (None, [], None)


def test_parquet_without_its_extra_says_what_to_install(evaltester, exported):
    kept(evaltester)
    evaltester.write("hidden/pyarrow.py", "raise ImportError('not installed')\n")
    finished = exported(
        "--parquet", "a.parquet", status=ExitStatus.INPUT_WRONG, env={"PYTHONPATH": str(evaltester.path / "hidden")}
    )
    assert "stateval[parquet]" in finished.stderr
    assert not list(evaltester.path.glob("a.parquet*"))


def test_secrets_known_now_are_not_exported(evaltester, exported):
    stored(evaltester.results_path, [result("a", {"quality": 0.0}, submission="the key is hunter2-hunter2")])
    for option in ("--csv", "--junit", "--markdown"):
        shown = exported(option, env={"SOME_TOKEN": "hunter2-hunter2"}).stdout
        assert "hunter2" not in shown
        assert "[redacted]" in shown


# Markdown


def in_markdown(text: str) -> Any:
    return MarkdownIt("commonmark").enable("table").parse(text)


def plain_parts(tokens: Any) -> str:
    """All that is not code."""
    children = [child for token in tokens for child in token.children or () if token.type == "inline"]
    return "\n".join(child.content for child in children if child.type != "code_inline")


@settings(deadline=None)
@given(st.sampled_from(HOSTILE) | st.text(max_size=300) | st.text("`| \\a", max_size=12))
def test_any_text_is_one_span_of_code(text):
    (_, inline, _) = in_markdown(f"a {code(text)} b")
    if not text.strip():
        return
    before, span, after = inline.children
    assert (before.content, span.type, after.content) == ("a ", "code_inline", " b")
    assert span.content == printable(shortened(text))


@settings(deadline=None)
@given(st.sampled_from(HOSTILE) | st.text("`|\\a ", min_size=1, max_size=12))
def test_a_name_never_breaks_the_table(name):
    models = [ModelSummary(model=name, n_total=1, n_attempted=1, metrics={"m": MetricSummary(n_scored=1, n_counted=1)})]
    text = comment(Summary(suite="s", models=models), {}, Rule(("m",), False, 1.0), marker=None)
    tokens = in_markdown(text)
    assert [token.type for token in tokens].count("td_open") == 7
    assert [token.type for token in tokens].count("tr_open") == 2


@pytest.fixture
def hostile(evaltester) -> None:
    """Results in which every text is one that a program might obey: of agents, graders, errors, models and gates."""
    results = {
        f"{n} {text}": [
            result(f"1 {text}", {"quality": 0.0}, rationale=text, submission=text),
            result(f"2 {text}", {}, error=text),
        ]
        for n, text in enumerate(HOSTILE)
    }
    gates = [GateVerdict(condition=f"c {text}", outcome=Outcome.FAIL, reason=text, name=text) for text in HOSTILE]
    stored(evaltester.results_path, results, suite=f"s {HOSTILE[0]}{HOSTILE[5]}", gates=gates)


@pytest.mark.usefixtures("hostile")
def test_what_agents_wrote_is_never_markup(exported):
    shown = exported("--markdown", env={"GITHUB_ACTIONS": "true"}).stdout
    assert shown.count("sample `") > len(HOSTILE)
    tokens = in_markdown(shown.split("\n", 1)[1])
    types = {token.type for token in tokens} | {c.type for token in tokens for c in token.children or ()}
    assert {re.sub("_(open|close)$", "", name) for name in types} == {
        *("heading", "inline", "paragraph", "fence", "text", "strong", "code_inline", "softbreak"),
        *("bullet_list", "list_item", "table", "thead", "tbody", "tr", "th", "td"),
    }
    assert not re.search(r"[@#<>!\[\]]|http|=cmd", plain_parts(tokens))
    assert not any(is_command(line) for line in shown.splitlines())


def test_the_comment_says_the_verdict_first_and_all_numbers_with_their_n(evaltester, exported):
    ran(
        evaltester,
        status=ExitStatus.GATE_FAILED,
        reward=None,
        gate={"metric_key": "quality", "op": "gte", "value": 0.9},
    )
    lines = exported("--markdown").stdout.splitlines()
    assert lines[:2] == ["<!-- stateval: test-suite -->", "## `test-suite`: gate FAILED"]
    text = "\n".join(lines)
    assert "| `default` | `quality` | 2 | 0.500 |" in text
    assert "2 planned = 1 passed + 1 failed" in text
    assert "measured 0.5; n = 2" in text
    assert "* sample `1` did not pass" in text


def test_a_comment_is_found_again_by_its_marker(evaltester, exported):
    kept(evaltester)
    assert exported("--markdown", "--marker", "nightly --> x").stdout.splitlines()[0] == marker_line("nightly --> x")
    assert exported("--markdown").stdout == exported("--markdown").stdout


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_no_name_ends_the_hidden_line(name):
    line = marker_line(name)
    assert re.fullmatch(r"<!-- stateval: [^\n<>]* -->", line)
    assert "--" not in line.removeprefix("<!--").removesuffix("-->")


@pytest.mark.parametrize("limit", [LONGEST_COMMENT, 3_000])
def test_a_comment_fits_and_says_what_is_missing(limit):
    ledgers = {"m": Ledger(planned=1, passed=1)}
    metrics = {"m": MetricSummary(n_scored=1, n_counted=1)}
    models = [
        ModelSummary(model=f"model-{n}-é`", n_total=1, n_attempted=1, metrics=metrics, ledgers=ledgers)
        for n in range(1_000)
    ]
    gate = GateVerdict(condition="c", outcome=Outcome.FAIL)
    text = comment(
        Summary(suite="s", models=models, gates=[gate]), {}, Rule(("m",), False, 1.0), marker="s", limit=limit
    )
    assert limit - 1_000 < len(text.encode("utf-8")) <= limit
    missing = re.search(r"(\d+) further lines do not fit here", text.splitlines()[-1])
    shown = sum(line.startswith(("| ", "* ")) for line in text.splitlines()) - 2
    assert shown + int(missing[1]) >= 2_000
    assert text.count("```") % 2 == 0


# GitHub

COMMANDS = {"error", "warning", "notice", "debug", "group", "endgroup", "add-mask", "set-output", "stop-commands"}


def parsed(line: str) -> tuple[str, dict[str, str], str] | None:
    """A line as GitHub's runner reads it, in either of its forms."""
    if line.lstrip().startswith("::"):
        head, separator, data = line.lstrip()[2:].partition("::")
        name, _, said = head.partition(" ")
        if separator and name in COMMANDS:
            pairs = [pair.partition("=") for pair in said.strip().split(",") if pair]
            return name, {key: unescaped(value, ":,") for key, _, value in pairs}, unescaped(data, "")
    found = re.search(r"##\[([^\]\s]*)[^\]]*\](.*)", line)
    return (found[1], {}, found[2]) if found and found[1] in COMMANDS else None


def unescaped(text: str, more: str) -> str:
    for character in (*"\r\n", *more, "%"):
        text = text.replace(f"%{ord(character):02X}", character)
    return text


def is_command(line: str) -> bool:
    return parsed(line) is not None


texts = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=()), max_size=60)


@given(texts.filter(lambda text: text.strip()), texts.filter(lambda text: text.strip()))
@example("0\n", "::error::pwned")
def test_a_command_is_one_line_that_is_read_back_as_it_was(title, message):
    line = command("error", {"file": "a,b: 100%.yaml", "line": "3", "title": title}, message)
    assert line.splitlines() == [line]
    name, properties, data = parsed(line)
    safe = ["\n".join(printable(part) for part in text.split("\n")) for text in (title, message)]
    assert (name, data) == ("error", safe[1])
    # The runner takes white space off the end of what stands before the message; an escaped line end is none.
    assert properties == {"file": "a,b: 100%.yaml", "line": "3", "title": re.sub(r"[^\S\n]+\Z", "", safe[0])}


GATE_SUITE = """
    name: s
    dataset: samples.jsonl
    target: {kind: python, factory: agent.py:make}
    graders:
      quality: {kind: tool, function: contains}
      other:
        kind: tool
        function: exact_match
    gate:
      - name: small
        metric_key: quality
        op: gte
        value: 0.1
      - name: all of it
        kind: logical
        operator: and
        conditions:
          - {metric_key: quality, op: gte, value: 0.2}
          - {metric_key: other, op: gte, value: 0.9}
      - {name: only a warning, metric_key: other, op: gte, value: 0.8, on_fail: warn}
"""


def annotations(finished: Any) -> list[tuple[str, dict[str, str], str]]:
    found = [parsed(line) for line in finished.stdout.splitlines()]
    assert None not in found, finished.stdout
    return [one for one in found if one]


def test_annotations_stand_on_the_suites_own_lines(evaltester, exported):
    evaltester.write_suite()
    evaltester.write("evals/suite.yaml", GATE_SUITE)
    for name in ("samples.jsonl", "agent.py"):
        (evaltester.path / name).rename(evaltester.path / "evals" / name)
    assert evaltester.run("evals/suite.yaml").status == ExitStatus.GATE_FAILED
    finished = exported("--github", "--suite", "evals", env={"GITHUB_WORKSPACE": str(evaltester.path)})
    found = annotations(finished)
    lines = (evaltester.path / "evals/suite.yaml").read_text(encoding="utf-8").splitlines()
    assert {said["file"] for _, said, _ in found} == {"evals/suite.yaml"}
    places = [(kind, said["title"], lines[int(said["line"]) - 1].strip()) for kind, said, _ in found]
    assert places == [
        ("error", "gate all of it failed", "- {metric_key: other, op: gte, value: 0.9}"),
        (
            "warning",
            "gate only a warning failed",
            "- {name: only a warning, metric_key: other, op: gte, value: 0.8, on_fail: warn}",
        ),
        ("warning", "quality failed samples", "quality: {kind: tool, function: contains}"),
        ("warning", "other failed samples", "other:"),
        ("notice", "gate small passed", "- name: small"),
    ]
    assert "measured 0.5; n = 2" in found[0][2]


def test_the_suite_that_a_run_has_noted_is_found_again(evaltester, exported):
    ran(evaltester, status=ExitStatus.GATE_FAILED, gate={"metric_key": "quality", "op": "gte", "value": 0.9})
    assert evaltester.directory.record.suite_file == "suite.yaml"
    (gate,) = [said for kind, said, _ in annotations(exported("--github")) if kind == "error"]
    assert gate["file"] == "suite.yaml"
    line = (evaltester.path / "suite.yaml").read_text(encoding="utf-8").splitlines()[int(gate["line"]) - 1]
    assert line.startswith(("gate:", "  metric_key: quality"))


def test_without_the_suite_annotations_have_no_place_and_no_path_of_a_machine(evaltester, exported):
    ran(evaltester, status=ExitStatus.GATE_FAILED, gate={"metric_key": "quality", "op": "gte", "value": 0.9})
    finished = exported("--github", cwd=evaltester.results_path)
    assert all(set(said) == {"title"} for _, said, _ in annotations(finished))
    elsewhere = exported(
        "--github",
        "--suite",
        evaltester.path / "suite.yaml",
        env={"GITHUB_WORKSPACE": "/nowhere"},
        cwd=evaltester.results_path,
    )
    assert all(set(said) == {"title"} for _, said, _ in annotations(elsewhere))


def test_the_summary_of_a_step_is_added_to(evaltester, exported):
    kept(evaltester)
    summary = evaltester.write("summary.md", "an earlier step\n")
    exported("--github", env={"GITHUB_STEP_SUMMARY": str(summary)})
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("an earlier step\n\n## `test-suite`: no gate\n")
    assert "<!--" not in text


@pytest.mark.parametrize("room", [100, 1_200])
def test_the_summary_of_a_step_never_grows_beyond_what_github_takes(evaltester, exported, room):
    results = [result(n, {"quality": 0.0}, submission="word " * 40) for n in range(5)]
    stored(evaltester.results_path, results)
    summary = evaltester.write("summary.md", b"x" * (github.LONGEST_SUMMARY - room))
    finished = exported("--github", env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert summary.stat().st_size <= github.LONGEST_SUMMARY
    assert ("summary of this step is full" in finished.stderr) is (room == 100)
    assert (b"do not fit here" in summary.read_bytes()) is (room == 1_200)


def test_ten_annotations_of_a_kind_are_shown_and_the_rest_counted():
    found = [Annotation(Level.ERROR, f"t{n}", "m", ("gate",)) for n in range(25)]
    found += [Annotation(Level.NOTICE, f"t{n}", "m", ("gate",)) for n in range(10)]
    lines = [parsed(line) for line in commands(found, lambda field: Spot())]
    errors = [said["title"] for name, said, _ in lines if name == "error"]
    assert errors == [*(f"t{n}" for n in range(9)), "16 more"]
    assert sum(name == "notice" for name, _, _ in lines) == 10


@pytest.mark.usefixtures("hostile")
def test_what_agents_wrote_is_never_a_command(evaltester, exported):
    finished = exported("--github")
    assert [name for name, _, _ in annotations(finished)] == [*["error"] * 10, *["warning"] * 10]
    assert not any(is_command(line) for line in finished.stderr.splitlines())
    assert not any(is_command(line) for line in exported("--junit").stdout.splitlines())
    summary = summary_of(evaltester.directory)
    found = {label: noteworthy(evaltester.directory, label) for label in evaltester.directory.labels}
    remarks = list(github.remarks(summary, found, Rule.of(evaltester.directory, summary)))
    assert len(remarks) == 1 + 3 * len(HOSTILE)  # no model has the samples of the others
    for one in remarks:
        (line,) = commands([one], lambda field: Spot())
        assert line.splitlines() == [line]
        assert parsed(line)[0] == one.level


@pytest.mark.parametrize("option", ["--csv", "--parquet"])
def test_tables_are_not_printed_into_the_log_of_a_workflow(evaltester, exported, option):
    stored(evaltester.results_path, [result("1", submission="a\n::error::x")])
    finished = exported(option, "-", status=ExitStatus.INPUT_WRONG, env={"GITHUB_ACTIONS": "true"})
    assert (finished.stdout, "give it a file" in finished.stderr) == ("", True)


def test_a_python_suite_has_lines_too(evaltester):
    path = evaltester.write(
        "evals.py",
        """
        from stateval import AgentEvalTarget, EvalGate, EvalSuite, graders

        suite = EvalSuite(
            dataset="rows.jsonl",
            target=AgentEvalTarget(agent_factory=print),
            graders={"quality": graders.contains()},
            gate=EvalGate(min_score=1),
        )
        """,
    )
    line_of = lines_of(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    for field, said in {
        ("gate", 0): "gate=",
        ("graders", "quality"): "graders=",
        ("target",): "target=",
        ("name",): "suite =",
    }.items():
        assert lines[line_of(field) - 1].strip().startswith(said)


def test_the_worst_samples_are_those_that_did_not_pass(tmp_path):
    directory: ResultsDirectory = stored(tmp_path, [result("good"), result("bad", {"quality": 0.2})])
    summary = summary_of(directory)
    text = comment(summary, {LABEL: noteworthy(directory, LABEL)}, Rule.of(directory, summary), marker=None)
    assert "sample `bad` did not pass" in text
    assert "`good`" not in text


def test_what_a_run_shows_of_an_agent_is_no_command_either(evaltester):
    rows = [{"input": text, "ground_truth": "nothing like it"} for text in HOSTILE if "\ud83d" not in text]
    evaltester.write_suite(rows)
    finished = evaltester.run()
    assert "add-mask" in finished.stdout
    assert not any(is_command(line) for line in finished.output.splitlines())


def test_what_is_complained_of_is_no_command_either(evaltester):
    finished = evaltester.command("export", "no\n::error::such ##[error]directory", "--csv")
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "such" in finished.stderr
    assert not any(is_command(line) for line in finished.stderr.splitlines())
