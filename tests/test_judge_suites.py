"""Judges in suite files, through the command: what may be said of them, what a run does with them, what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stateval import AgentEvalTarget, EvalGate, EvalSuite, graders
from stateval.errors import ExitStatus, SuiteError, UsageError
from stateval.graders.judging import JudgeModel, ModelJudge
from stateval.records.grade import GradeResult
from stateval.records.protocols import GradeRequest, Needs, Spent
from stateval.records.sample import Sample
from stateval.records.usage import Usage
from stateval.results.run_record import read_run_record
from stateval.suite.build import build_plan
from stateval.suite.load import load_suite
from tests.support.evaltester import EvalTester
from tests.support.judge_prompts import Prompt
from tests.support.model_server import ModelServer, Reply, refused
from tests.support.scripted_judge import answer_of, judge_environment, judge_server

JUDGE = {"kind": "model_judge", "prompt": "Is it polite?", "max_retries": 0}
CRITERIA = {
    "clear": {"weight": 0.75, "description": "It is clear."},
    "short": {"weight": 0.25, "description": "Short."},
}
ROWS = [{"id": f"row-{number}", "input": f"say {number}"} for number in range(1, 6)]

COUNTING_AGENT = """
from pathlib import Path

class Agent:
    def send(self, message):
        with Path(__file__).with_name("calls.txt").open("a") as calls:
            calls.write(message + "\\n")
        return "You said " + message

def make(sample):
    return Agent()
"""


class Echo:
    def send(self, message: str) -> str:
        return message


class Free(Echo):
    def usage(self) -> dict[str, Any]:
        return {"prompt_tokens": 1, "cost": 0.0}


class Priced:
    """A judge of which each grade costs 40 cents."""

    kind = "priced"
    needs = Needs.NOTHING
    fingerprint = "priced"
    models = ("expensive",)
    unpriced_models = ()

    def __init__(self) -> None:
        self.spent = Spent()

    def check(self, sample: Sample) -> str | None:
        return None

    async def grade(self, request: GradeRequest) -> GradeResult:
        self.spent = Spent(self.spent.calls + 1, 0, self.spent.usage + Usage(cost=0.4))
        return GradeResult(score=1.0)

    async def close(self) -> None:
        """Holds nothing."""


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which OpenAI's models can be opened, and nothing else."""
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234567890")


def judges_of(project: EvalTester, grader: dict[str, Any], **fields: Any) -> tuple[JudgeModel, ...]:
    suite = project.write_suite(ROWS, graders={"quality": grader}, **fields)
    [binding] = build_plan(load_suite(suite)).graders
    assert isinstance(binding.grader, ModelJudge)
    return binding.grader.judges


def calls_of(project: EvalTester) -> list[str]:
    path = project.path / "calls.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


# What a suite file may say.


def test_a_judge_grades_and_its_reasons_and_costs_are_shown(evaltester: EvalTester) -> None:
    def opinion(shown: Prompt, name: str) -> float:
        return 1.0 if name == "clear" else 0.5

    suite = evaltester.write_suite(ROWS[:2], graders={"quality": JUDGE | {"prompt": None, "criteria": CRITERIA}})
    with judge_server(opinion, model="gpt-4o-mini-2024-07-18") as server:
        finished = evaltester.run(suite, env=judge_environment(server))
        assert finished.status == ExitStatus.PASSED, finished.output
    grade = evaltester.results()["row-1"].grades["quality"]
    assert grade.score == pytest.approx(0.875)
    assert grade.metadata["criteria"]["short"] == {"score": 0.5, "weight": 0.25, "rationale": "short because"}
    judging = evaltester.summary().judging
    assert judging is not None
    assert (judging["quality"].models, judging["quality"].calls, judging["quality"].cached) == (["gpt-4o-mini"], 2, 0)
    assert "judging quality (gpt-4o-mini): 2 calls; tokens: " in finished.stdout
    assert "price not known" in finished.stdout
    shown = evaltester.command("report", evaltester.results_path, "--sample", "row-1").stdout
    for said in ("clear 1 (weight 0.75): clear because", "short 0.5 (weight 0.25)", "gpt-4o-mini-2024-07-18"):
        assert said in shown
    assert grade.judging is not None
    assert grade.judging.prompt in shown
    whole = evaltester.command("report", evaltester.results_path).stdout
    assert "Judge of quality: answered as gpt-4o-mini-2024-07-18" in whole
    assert "judging quality (gpt-4o-mini): 2 calls" in whole


def test_the_old_spelling_is_read_and_noted(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE | {"kind": "rubric"}})
    finished = evaltester.command("validate", suite, env={"OPENAI_API_KEY": "sk-test-1234567890"})
    assert finished.status == ExitStatus.PASSED, finished.output
    assert "`graders.quality.kind: rubric` read as `kind: model_judge`" in finished.stdout


@pytest.mark.usefixtures("keyed")
def test_a_prompt_file_is_relative_to_the_suite_and_nothing_in_it_is_expanded(evaltester, monkeypatch) -> None:
    monkeypatch.setenv("SECRET", "expanded")
    evaltester.write("deep/rubric.txt", "\ufeffIs ${SECRET} polite?")
    suite = evaltester.write_suite(
        ROWS,
        name="deep/suite.yaml",
        dataset="../samples.jsonl",
        target={"kind": "python", "factory": "../agent.py:make"},
        graders={
            "file": JUDGE | {"prompt": None, "prompt_path": "rubric.txt"},
            "text": JUDGE | {"prompt": "Is ${SECRET} kind?", "system_prompt": "${SECRET}"},
            "parts": JUDGE | {"prompt": None, "criteria": {"kind": "Is ${SECRET} kind?"}},
        },
    )
    file, text, parts = (binding.grader.settings for binding in build_plan(load_suite(suite)).graders)
    assert file.prompt == "Is ${SECRET} polite?"
    assert (text.prompt, text.system_prompt) == ("Is ${SECRET} kind?", "${SECRET}")
    assert parts.criteria["kind"].description == "Is ${SECRET} kind?"


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(
    ("default", "own", "expected"),
    [
        ({}, {}, JudgeModel(max_retries=0)),
        ({"model": "openai/a", "temperature": 1}, {}, JudgeModel("openai/a", temperature=1.0, max_retries=0)),
        ({"model": "openai/a", "timeout": 9}, {"model": "b"}, JudgeModel("b", timeout=9.0, max_retries=0)),
        ({"temperature": 1}, {"temperature": None}, JudgeModel(temperature=None, max_retries=0)),
        (
            {"base_url": "http://localhost:1/v1", "api_key": "sk-theirs"},
            {"model": "openai/b"},
            JudgeModel("openai/b", base_url="http://localhost:1/v1", api_key="sk-theirs", max_retries=0),
        ),
        (
            {"base_url": "http://localhost:1/v1", "api_key": "sk-theirs"},
            {"base_url": "http://localhost:2/v1"},
            JudgeModel(base_url="http://localhost:2/v1", max_retries=0),
        ),
        (
            {"provider": "anthropic", "model": "a", "api_key": "sk-theirs"},
            {"model": "openai/b"},
            JudgeModel("openai/b", max_retries=0),
        ),
    ],
)
def test_a_grader_s_own_word_wins_and_a_key_goes_to_no_other_endpoint(evaltester, default, own, expected) -> None:
    assert judges_of(evaltester, JUDGE | own, judge=default) == (expected,)


@pytest.mark.usefixtures("keyed")
def test_several_judges_are_names_or_mappings(evaltester: EvalTester) -> None:
    several = ["openai/a", {"model": "b", "temperature": 0.5}]
    judges = judges_of(evaltester, JUDGE | {"judges": several, "temperature": 1}, judge={"model": "c", "timeout": 9})
    assert judges == (
        JudgeModel("openai/a", temperature=1.0, timeout=9.0, max_retries=0),
        JudgeModel("b", temperature=0.5, timeout=9.0, max_retries=0),
    )


WRONG = [
    ({"prompt": None}, "`prompt` is required (or `prompt_path` or `criteria`)"),
    ({"prompt_path": "a.txt"}, "stands beside `prompt`; give one of them"),
    ({"criteria": {"a": "b"}}, "stands beside `prompt`; give one of them"),
    ({"prompt": "  "}, "is empty; write what is asked of the submission"),
    ({"prompt": None, "criteria": {}}, "must not be empty"),
    ({"prompt": None, "criteria": {"a": {"weight": 0}}}, "all weights are 0; at least one criterion must count"),
    ({"prompt": None, "criteria": {"a": {"wieght": 1}}}, "did you mean `weight`?"),
    ({"prompt": None, "criteria": {"a": {"weight": -1}}}, "must be at least 0"),
    ({"prompt": None, "prompt_path": "nowhere.txt"}, "nowhere.txt; a path is relative to the suite file"),
    ({"prompt": None, "prompt_path": "empty.txt"}, "empty.txt is empty"),
    ({"scale": [5, 1]}, "must be the worst and then a greater, best score, got [5, 1]"),
    ({"scale": [1, 1]}, "must be the worst and then a greater, best score, got [1, 1]"),
    ({"rubric_vars": ["input"]}, "`input` is filled in from the sample itself; choose another name"),
    ({"votes": 0}, "must be at least 1"),
    ({"provider": "opneai"}, "did you mean `openai`?"),
    ({"model": "opneai/gpt"}, "no provider is known for model `opneai/gpt`"),
    ({"model": "a", "judges": ["b"]}, "stands beside `model`; give one of them"),
    ({"judges": []}, "must not be empty"),
    ({"judges": [{"temperature": 1}]}, "is required"),
    ({"judges": ["openai/a", "openai/a"]}, "twice"),
    ({"function": "contains"}, "`function` belongs to graders of `kind: tool`"),
    ({"agent_file": "a.af"}, "belongs to graders of `kind: letta_judge`"),
]


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(("change", "said"), WRONG)
def test_what_is_wrong_is_said_with_its_place(evaltester: EvalTester, change: dict[str, Any], said: str) -> None:
    evaltester.write("empty.txt", "\n")
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE | change})
    with pytest.raises(SuiteError) as caught:
        build_plan(load_suite(suite))
    assert said in str(caught.value)
    [problem, *_] = caught.value.problems
    assert problem.source.path == str(suite)
    assert problem.source.line is not None
    assert str(problem.source.field).startswith("graders.quality")


@pytest.mark.usefixtures("keyed")
def test_everything_that_is_wrong_is_said_at_once(evaltester: EvalTester) -> None:
    wrong = {"scale": [2, 1], "rubric_vars": ["submission"], "votes": 0, "criteria": {"a": "b"}}
    suite = evaltester.write_suite(ROWS, graders={"one": JUDGE | wrong, "two": JUDGE | {"kind": "tool"}})
    finished = evaltester.command("validate", suite)
    assert finished.status == ExitStatus.INPUT_WRONG
    for said in ("graders.one.scale", "graders.one.rubric_vars", "graders.one.votes", "graders.one.criteria"):
        assert said in finished.stdout
    assert "`prompt` belongs to graders of `kind: model_judge`; this one is of `kind: tool`" in finished.stdout


def test_a_missing_key_is_a_warning_of_validate_and_ends_a_run_before_anything_is_called(evaltester) -> None:
    without = {"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None}
    suite = evaltester.write_suite(ROWS, agent=COUNTING_AGENT, graders={"quality": JUDGE})
    seen = evaltester.command("validate", suite, env=without)
    assert seen.status == ExitStatus.PASSED
    assert "needs a key: set `OPENAI_API_KEY`" in seen.stdout
    finished = evaltester.run(suite, env=without)
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "needs a key: set `OPENAI_API_KEY`" in finished.stderr
    assert calls_of(evaltester) == []


def test_rows_are_looked_at_also_where_the_judge_cannot_be_had(evaltester: EvalTester) -> None:
    rows = [{"input": [{"user": "a", "graders": ["quality"]}], "rubric_vars": {"tone": "kind"}}, {"input": "b"}]
    suite = evaltester.write_suite(rows, graders={"quality": JUDGE | {"prompt": "Is {submission} {tone}?"}})
    seen = evaltester.command("validate", suite, env={"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None})
    assert seen.status == ExitStatus.INPUT_WRONG
    assert "`{tone}`" in seen.stdout
    assert "samples.jsonl:2" in seen.stdout
    assert "samples.jsonl:1" not in seen.stdout


def test_keys_of_judges_reach_no_file_and_no_screen(evaltester: EvalTester) -> None:
    keys = ["sk-of-the-suite-1234", "sk-of-the-grader-1234", "sk-of-one-judge-1234"]
    suite = evaltester.write_suite(
        ROWS[:1],
        judge={"api_key": keys[0]},
        graders={
            "default": JUDGE,
            "own": JUDGE | {"api_key": keys[1]},
            "several": JUDGE | {"judges": [{"model": "openai/a", "api_key": keys[2]}]},
        },
    )
    with ModelServer(lambda request: refused(401, f"wrong key {request.headers['authorization']}")) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
        assert {request.headers["authorization"].removeprefix("Bearer ") for request in server.requests} == set(keys)
    files = [path.read_text(encoding="utf-8") for path in evaltester.results_path.rglob("*.json*") if path.is_file()]
    assert len(files) > 2
    for key in keys:
        assert key not in finished.output
        assert not any(key in text for text in files)


@pytest.mark.parametrize(
    ("change", "fields", "said"),
    [
        ({"votes": 3}, {}, "3 votes of `gpt-4o-mini` at `temperature: 0`"),
        ({"prompt": None, "criteria": {"a": {"weight": 2}, "b": "B."}}, {}, "`a` without a `description`"),
        ({}, {"gate": {"op": "gte", "value": 0.5}}, "with `stateval judge check`"),
        (
            {"model": "openai/gpt-4o"},
            {"target": {"kind": "local_agent", "agent": {}, "model_handles": ["openai/gpt-4o"]}},
            "`openai/gpt-4o` judges its own answers",
        ),
    ],
)
def test_validate_advises(evaltester: EvalTester, change: dict[str, Any], fields: dict[str, Any], said: str) -> None:
    environment = {"OPENAI_API_KEY": "sk-test-1234567890"}
    plain = evaltester.command("validate", evaltester.write_suite(ROWS, graders={"quality": JUDGE}), env=environment)
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE | change}, **fields)
    advised = evaltester.command("validate", suite, env=environment)
    assert advised.status == ExitStatus.PASSED, advised.output
    assert said in advised.stdout
    assert said not in plain.stdout


# What a run does with them.


def test_known_answers_are_used_unless_no_cache_is_said(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE})
    with judge_server(0.5) as server:
        environment = judge_environment(server, STATEVAL_JUDGE_CACHE=str(evaltester.path / "cache.sqlite3"))
        asked = []
        for arguments in ((), ("--fresh",), ("--fresh", "--no-cache")):
            finished = evaltester.run(suite, *arguments, env=environment)
            assert finished.status == ExitStatus.PASSED, finished.output
            asked.append(len(server.requests))
            if arguments == ("--fresh",):
                assert "5 calls; 5 of them answered from the cache" in finished.stdout
                assert "cost: 0.0000 USD" in finished.stdout
    assert asked == [5, 5, 10]


def test_no_cache_does_not_write_either(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE})
    with judge_server(0.5) as server:
        environment = judge_environment(server, STATEVAL_JUDGE_CACHE=str(evaltester.path / "cache.sqlite3"))
        evaltester.run(suite, "--no-cache", env=environment)
        evaltester.run(suite, env=environment)
    assert len(server.requests) == 10


def test_what_judges_take_counts_in_the_limits(evaltester: EvalTester) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    suite = evaltester.write_suite(
        ROWS,
        agent=COUNTING_AGENT.replace(
            "def make(", "    def usage(self):\n        return {'prompt_tokens': 1}\n\ndef make("
        ),
        graders={"quality": JUDGE},
        limits={"tokens": 150},
        max_concurrent=1,
    )
    with ModelServer(lambda request: Reply(answer_of(request, lambda shown, name: 1.0), usage=usage)) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
    assert finished.status == ExitStatus.UNFINISHED
    assert "the limit of 150 tokens is reached (202 were used)" in finished.output
    assert len(evaltester.results()) == 2


def test_a_limit_in_dollars_is_refused_where_a_judge_has_no_price(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, agent=COUNTING_AGENT, graders={"quality": JUDGE}, limits={"cost_usd": 1})
    with judge_server() as server:
        finished = evaltester.run(suite, env=judge_environment(server))
        assert server.requests == []
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "model `gpt-4o-mini`, which judges metric `quality`, has no known price" in finished.stderr
    assert calls_of(evaltester) == []


def test_a_judge_that_cannot_be_reached_loses_no_conversation(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, agent=COUNTING_AGENT, graders={"quality": JUDGE}, max_concurrent=1)
    with judge_server() as gone:
        address = gone.base_url
    environment = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-test-1234567890", "STATEVAL_JUDGE_CACHE": "off"}
    stopped = evaltester.run(suite, env=environment)
    assert stopped.status == ExitStatus.UNFINISHED, stopped.output
    assert "a judge cannot be had" in stopped.output
    [result] = evaltester.results().values()
    assert result.trajectory
    assert result.error is not None
    assert result.error.category == "grading"
    with judge_server(0.5) as server:
        finished = evaltester.run(suite, "--retry-errors", env=judge_environment(server))
    assert finished.status == ExitStatus.PASSED, finished.output
    assert [result.grades["quality"].score for result in evaltester.results().values()] == [0.5] * 5
    assert sorted(calls_of(evaltester)) == sorted(row["input"] for row in ROWS)


def test_all_conversations_in_flight_are_kept_when_the_judge_is_gone(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, agent=COUNTING_AGENT, graders={"quality": JUDGE}, max_concurrent=5)
    with judge_server() as gone:
        environment = judge_environment(gone)
    stopped = evaltester.run(suite, env=environment)
    assert stopped.status == ExitStatus.UNFINISHED, stopped.output
    kept = evaltester.results()
    assert set(calls_of(evaltester)) == {f"say {key.removeprefix('row-')}" for key in kept}
    with judge_server(0.5) as server:
        finished = evaltester.run(
            suite, "--resume", evaltester.results_path, "--retry-errors", env=judge_environment(server)
        )
    assert finished.status == ExitStatus.PASSED, finished.output
    assert len(calls_of(evaltester)) == 5


def test_a_limit_in_dollars_counts_what_judges_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suite = EvalSuite(
        dataset=ROWS,
        target=AgentEvalTarget(agent_factory=lambda sample: Free()),
        grader=Priced(),
        limits={"cost_usd": 1},
        max_concurrent=1,
        output="results",
    )
    found = suite.run(check=False)
    assert found.summary.stopped_because == "the limit of 1 USD is reached (1.2000 USD were used)"
    assert found.summary.judging is not None
    assert found.summary.judging["grader"].usage.cost == pytest.approx(1.2)


def test_votes_are_shown_with_their_spread(evaltester: EvalTester) -> None:
    grader = JUDGE | {"votes": 2, "temperature": 1, "scale": [1, 5]}
    suite = evaltester.write_suite(ROWS[:1], graders={"quality": grader})
    with ModelServer(lambda request: answer_of(request, lambda shown, name: 1.0 + 4 * request.number)) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
    assert finished.status == ExitStatus.PASSED, finished.output
    shown = evaltester.command("report", evaltester.results_path, "--sample", "row-1").stdout
    assert "gpt-4o-mini, vote 1: " in shown
    assert "spread 1; a tie" in shown
    assert '{"raw_score":3.0}' in shown.replace(" ", "")


def test_who_judged_is_known_over_all_starts_of_a_run(evaltester: EvalTester) -> None:
    fields: dict[str, Any] = {"agent": COUNTING_AGENT, "max_concurrent": 1, "gate": None}
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE}, limits={"errors": 1}, **fields)

    name = "then"

    def answer(request: Any) -> Reply:
        if request.number == 2:
            return refused(400, "not now")
        return Reply(answer_of(request, lambda shown, criterion: 0.5), model=name)

    with ModelServer(answer) as server:
        environment = judge_environment(server)
        assert evaltester.run(suite, env=environment).status == ExitStatus.UNFINISHED
        assert evaltester.directory.judges == {"quality": ["then"]}
        name = "now"
        assert evaltester.run(suite, "--retry-errors", env=environment).status == ExitStatus.PASSED
        assert evaltester.directory.judges == {"quality": ["now", "then"]}
        conversations = calls_of(evaltester)
        suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE | {"prompt": "Is it true?"}}, **fields)
        changed = evaltester.run(suite, "--resume", evaltester.results_path, env=environment)
        assert changed.status == ExitStatus.PASSED, changed.output
        assert evaltester.directory.judges == {"quality": ["now"]}
    assert len(set(conversations)) == 5
    assert calls_of(evaltester) == conversations, "a changed judge has no agent run again"


# Results that were graded differently are never compared silently.


def test_a_moved_alias_makes_runs_incomparable(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE})
    name = ""
    with ModelServer(lambda request: Reply(answer_of(request, lambda shown, criterion: 0.5), model=name)) as server:
        for name, output in (("gpt-2024-05", "then"), ("gpt-2024-08", "now"), ("gpt-2024-05", "again")):  # noqa: B007
            finished = evaltester.command("run", suite, "--output", output, env=judge_environment(server))
            assert finished.status == ExitStatus.PASSED, finished.output
    record = read_run_record(evaltester.path / "then")
    assert record is not None
    assert record.judges == {"quality": ["gpt-2024-05"]}
    refused_comparison = evaltester.command("compare", "then", "now")
    assert refused_comparison.status == ExitStatus.INPUT_WRONG
    said = "the judge of `quality` answered as `gpt-2024-05` in one run, as `gpt-2024-08` in the other"
    assert said in refused_comparison.stderr
    forced = evaltester.command("compare", "then", "now", "--force")
    assert forced.status == ExitStatus.PASSED, forced.output
    assert said in forced.stdout
    assert evaltester.command("compare", "then", "again").status == ExitStatus.PASSED


@pytest.mark.parametrize("force", [False, True])
def test_a_baseline_that_another_snapshot_judged_decides_nothing_unless_forced(evaltester, force: bool) -> None:
    rows = [{"id": str(number), "input": f"say {number}"} for number in range(8)]
    names = ["gpt-2024-05"]
    with ModelServer(lambda request: Reply(answer_of(request, lambda shown, name: 0.5), model=names[0])) as server:
        environment = judge_environment(server)
        suite = evaltester.write_suite(rows, graders={"quality": JUDGE})
        assert evaltester.command("run", suite, "--output", "then", env=environment).status == ExitStatus.PASSED
        gate = {"baseline": {"results": "then", "force": force}}
        suite = evaltester.write_suite(rows, graders={"quality": JUDGE}, gate=gate)
        same = evaltester.command("run", suite, "--output", "same", env=environment)
        assert same.status == ExitStatus.PASSED, same.output
        names = ["gpt-2024-08"]
        moved = evaltester.command("run", suite, "--output", "now", env=environment)
    assert moved.status == (ExitStatus.PASSED if force else ExitStatus.INCONCLUSIVE), moved.output
    said = "the judge of `quality` answered as `gpt-2024-05` in one run, as `gpt-2024-08` in the other"
    assert said in moved.stdout.replace("\n", " ")


def test_fault_38_results_of_two_prompts_do_not_compare(evaltester: EvalTester) -> None:
    with judge_server(0.5) as server:
        for prompt, output in (("Is it polite?", "one"), ("Is it true?", "two")):
            suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE | {"prompt": prompt}})
            evaltester.command("run", suite, "--output", output, env=judge_environment(server))
    compared = evaltester.command("compare", "one", "two")
    assert compared.status == ExitStatus.INPUT_WRONG
    assert "the grader of `quality` (its code, rubric, judge, settings or extractor) differs" in compared.stderr


def test_a_prompt_file_that_changed_is_another_grader(evaltester: EvalTester) -> None:
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE | {"prompt": None, "prompt_path": "rubric.txt"}})
    with judge_server(0.5) as server:
        for prompt, output in (("Is it polite?", "one"), ("Is it true?", "two")):
            evaltester.write("rubric.txt", prompt)
            evaltester.command("run", suite, "--output", output, env=judge_environment(server))
    assert evaltester.command("compare", "one", "two").status == ExitStatus.INPUT_WRONG


# Known faults.


def test_fault_22_each_judge_sees_what_its_own_extractor_took_out(evaltester: EvalTester) -> None:
    agent = COUNTING_AGENT.replace(
        "def make(", "    def state(self):\n        return {'notes': 'what is remembered'}\n\ndef make("
    )
    block = {"extractor": "memory_block", "extractor_config": {"block_label": "notes"}}
    suite = evaltester.write_suite(
        [{"id": "a", "input": "the question", "ground_truth": "the truth"}],
        agent=agent,
        graders={"reply": JUDGE | {"prompt": "Reply?"}, "memory": JUDGE | {"prompt": "Memory?"} | block},
    )
    seen: dict[str, dict[str, str]] = {}

    def opinion(shown: Prompt, name: str) -> float:
        seen["reply" if "Reply?" in shown.frame else "memory"] = shown.data
        return 1.0

    with judge_server(opinion) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
    assert finished.status == ExitStatus.PASSED, finished.output
    given = {"input": "the question", "ground_truth": "the truth"}
    assert seen == {
        "reply": {**given, "submission": "You said the question"},
        "memory": {**given, "submission": "what is remembered"},
    }


STRUCTURED = """
from stateval import extractor

@extractor
def structured(trajectory, config):
    return {"colour": "blue"}
"""


@pytest.mark.parametrize(
    "value", [{"colour": "blue", "rim": None}, ["blue", 1]], ids=["fault-31-mapping", "fault-31-list"]
)
def test_structures_are_shown_as_json(evaltester: EvalTester, value: Any) -> None:
    rows = [{"id": "a", "input": "b", "expected": {"truth": value}, "rubric_vars": {"facts": value}}]
    prompt = "The facts: {facts}\nIs {submission} like {ground_truth}?"
    suite = evaltester.write_suite(
        rows, graders={"quality": JUDGE | {"prompt": prompt, "ground_truth_field": "expected"}}
    )
    seen: list[Prompt] = []

    def opinion(prompt: Prompt, name: str) -> float:
        seen.append(prompt)
        return 1.0

    with judge_server(opinion) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
    assert finished.status == ExitStatus.PASSED, finished.output
    [shown] = seen
    assert json.loads(shown.data["ground_truth"]) == {"truth": value}
    [facts] = [line for line in shown.frame.splitlines() if line.startswith("The facts: ")]
    assert json.loads(facts.removeprefix("The facts: ")) == value


def test_fault_31_a_structure_for_a_submission_is_an_error_and_no_judge_is_asked(evaltester: EvalTester) -> None:
    evaltester.write("own.py", STRUCTURED)
    suite = evaltester.write_suite(ROWS[:1], graders={"quality": JUDGE | {"extractor": "own.py:structured"}})
    with judge_server() as server:
        evaltester.run(suite, env=judge_environment(server))
        assert server.requests == []
    error = evaltester.results()["row-1"].error
    assert error is not None
    assert "returned a dict, not text" in error.message


@pytest.mark.parametrize("weight", [0, 0.0], ids=["fault-44-whole", "fault-44-decimal"])
def test_a_criterion_of_weight_0_is_scored_and_does_not_count(evaltester: EvalTester, weight: float) -> None:
    criteria = {"counts": "It counts.", "watched": {"weight": weight, "description": "It is watched."}}
    suite = evaltester.write_suite(ROWS[:1], graders={"quality": JUDGE | {"prompt": None, "criteria": criteria}})
    with judge_server(lambda shown, name: 1.0 if name == "counts" else 0.25) as server:
        evaltester.run(suite, env=judge_environment(server))
    grade = evaltester.results()["row-1"].grades["quality"]
    assert grade.score == 1.0
    assert grade.metadata["criteria"]["watched"]["score"] == 0.25


def test_fault_44_a_weight_in_quotes_is_refused_or_a_number(evaltester: EvalTester) -> None:
    criteria = {"counts": "It counts.", "watched": {"weight": "0", "description": "It is watched."}}
    suite = evaltester.write_suite(ROWS[:1], graders={"quality": JUDGE | {"prompt": None, "criteria": criteria}})
    with judge_server(lambda shown, name: 1.0 if name == "counts" else 0.25) as server:
        evaltester.run(suite, env=judge_environment(server))
    assert evaltester.results()["row-1"].grades["quality"].score == 1.0


def test_fault_47_a_judge_that_fails_on_one_row_is_an_error_of_that_grade_and_no_0(evaltester: EvalTester) -> None:
    tool = {"kind": "tool", "function": "ascii_printable_only"}
    suite = evaltester.write_suite(ROWS, agent=COUNTING_AGENT, graders={"quality": JUDGE, "plain": tool})

    def answer(request: Any) -> str | Reply:
        if "say 3" in request.last:
            return refused(400, "this cannot be judged")
        return answer_of(request, lambda shown, name: 0.75)

    with ModelServer(answer) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
    results = evaltester.results()
    failed = results.pop("row-3")
    assert failed.grades.keys() == {"plain"}
    assert failed.error is not None
    assert failed.error.category == "grading"
    assert "this cannot be judged" in failed.error.message
    assert [result.grades["quality"].score for result in results.values()] == [0.75] * 4
    metric = evaltester.summary().models[0].metrics["quality"]
    assert (metric.n_scored, metric.mean_scored, metric.n_errors) == (4, 0.75, 1)
    assert finished.status == ExitStatus.PASSED, finished.output


def test_fault_71_votes_and_graders_do_not_multiply_calls_beyond_the_endpoint_s_limit(evaltester: EvalTester) -> None:
    rows = [{"id": str(number), "input": f"say {number}"} for number in range(12)]
    voting = JUDGE | {"votes": 4, "temperature": 1, "max_concurrent": 3}
    suite = evaltester.write_suite(rows, graders={"one": voting, "two": voting}, max_concurrent=12)

    def answer(request: Any) -> Reply:
        return Reply(answer_of(request, lambda shown, name: 0.5), delay=0.02)

    with ModelServer(answer) as server:
        finished = evaltester.run(suite, env=judge_environment(server))
        assert finished.status == ExitStatus.PASSED, finished.output
        assert len(server.requests) == 12 * 4 * 2
        assert 1 < server.peak <= 3


# The Python face.


def test_a_rubric_in_a_python_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STATEVAL_JUDGE_CACHE", "off")
    with judge_server(lambda shown, name: 1.0 if "2" in shown.data["submission"] else 0.5) as server:
        suite = EvalSuite(
            dataset=ROWS,
            target=AgentEvalTarget(agent_factory=lambda sample: Echo()),
            grader=graders.rubric(
                criteria={"clear": 0.7, "short": "It is short."},
                model="gpt",
                base_url=server.base_url,
                api_key="sk-own-1",
            ),
            gate=EvalGate(min_score=0.6),
            output="results",
        )
        first = suite.run(save=True)
        again = suite.run(save=True)
    assert first.average_score == again.average_score == pytest.approx(0.6)
    scores = {observation.id: observation.score for observation in again}
    assert scores == {"row-1": 0.5, "row-2": 1.0, "row-3": 0.5, "row-4": 0.5, "row-5": 0.5}
    assert first.summary.judging is not None
    assert (first.summary.judging["grader"].calls, again.summary.judging["grader"].calls) == (5, 5)
    assert "sk-own-1" not in (tmp_path / "results" / "suite.json").read_text(encoding="utf-8")


def test_a_python_suite_with_a_limit_in_dollars_wants_prices(tmp_path: Path) -> None:
    judge = graders.model_judge("Is it polite?", model="gpt", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match=r"model `gpt`, which judges metric `grader`, has no known price"):
        EvalSuite(
            dataset=ROWS,
            target=AgentEvalTarget(agent_factory=lambda sample: Echo()),
            grader=judge,
            limits={"cost_usd": 1},
        )


# Gates that ask how good a judge is.


def test_a_check_of_a_judge_that_is_not_there_is_a_warning_of_validate_and_ends_a_run(evaltester: EvalTester) -> None:
    gate = {"op": "gte", "value": 0.5, "judge_check": "check.json"}
    suite = evaltester.write_suite(ROWS, agent=COUNTING_AGENT, graders={"quality": JUDGE}, gate=gate)
    with judge_server() as server:
        environment = judge_environment(server)
        seen = evaltester.command("validate", suite, env=environment)
        finished = evaltester.run(suite, env=environment)
        assert server.requests == []
    assert seen.status == ExitStatus.PASSED, seen.output
    assert f"the check of the judge {evaltester.path / 'check.json'} does not exist" in seen.stdout
    assert "with `stateval judge check`, and name" not in seen.stdout
    assert finished.status == ExitStatus.INPUT_WRONG
    assert "does not exist" in finished.stderr
    assert calls_of(evaltester) == []


def test_a_check_of_a_judge_that_is_asked_for_where_no_model_judges_is_an_error_of_the_suite(evaltester) -> None:
    gate = {"op": "gte", "value": 0.5, "judge_check": "check.json"}
    seen = evaltester.command("validate", evaltester.write_suite(ROWS, gate=gate))
    assert seen.status == ExitStatus.INPUT_WRONG
    assert "suite.yaml:" in seen.stdout
    assert "`judge_check` is asked for of `quality`, which no model judges" in seen.stdout


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_size_of_the_cache_that_is_none_is_said_before_anything_runs(evaltester: EvalTester, command: str) -> None:
    suite = evaltester.write_suite(ROWS, graders={"quality": JUDGE})
    with ModelServer("never asked") as server:
        environment = judge_environment(server, STATEVAL_JUDGE_CACHE=None, STATEVAL_JUDGE_CACHE_MB="much")
        finished = evaltester.command(command, suite, env=environment)
        assert not server.requests
    assert finished.status == ExitStatus.INPUT_WRONG, finished.output
    assert "STATEVAL_JUDGE_CACHE_MB is 'much'" in finished.output
