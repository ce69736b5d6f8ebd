"""Grader `letta_judge` against real Letta servers of both generations."""

from __future__ import annotations

from typing import Any

import pytest

from stateval.errors import ExitStatus
from tests.integration.letta_servers import RunningServer, free_port
from tests.integration.test_letta_agent import left_on
from tests.support.evaltester import EvalTester
from tests.support.model_server import Reply, Request

ROWS = [{"id": "good", "input": "kind words"}, {"id": "bad", "input": "rude words"}]


def judges(request: Request) -> Reply:
    """Hands in 1 for what holds kind words, else 0.25."""
    shown = str([message.get("content") for message in request.messages if message["role"] == "user"])
    score = 1 if "kind words" in shown else 0.25
    return Reply(tool_calls=[("submit_grade", {"rationale": "as it is", "score": score, "thinking": "so"})])


def judge(server: RunningServer, **fields: Any) -> dict[str, Any]:
    own = {"model": server.handle("scripted")} if not fields.keys() & {"agent_file", "agent_id"} else {}
    return {"kind": "letta_judge", "prompt": "Is it kind?", "base_url": server.base_url, **own, **fields}


def test_a_bundled_judge_grades_and_leaves_nothing_behind(evaltester: EvalTester, server: RunningServer) -> None:
    server.model.answers = judges
    before = left_on(server)
    finished = evaltester.run(evaltester.write_suite(ROWS, graders={"kind": judge(server)}))
    assert finished.status == ExitStatus.PASSED, finished.output
    results = evaltester.results()
    assert {key: result.grades["kind"].score for key, result in results.items()} == {"good": 1.0, "bad": 0.25}
    assert results["good"].grades["kind"].rationale == "as it is"
    assert left_on(server) == before
    prompt = str(server.model.requests[0].messages)
    assert "Is it kind?" in prompt
    assert "<<<begin" in prompt


def test_a_live_judge_grades_every_submission_on_its_own(evaltester: EvalTester, server: RunningServer) -> None:
    server.model.answers = judges
    client = server.client
    tool = client.tools.upsert(
        source_code='def submit_grade(rationale: str, score: float) -> str:\n    """\n    Hands it in.\n\n    Args:\n'
        '        rationale (str): Why.\n        score (float): The score.\n\n    Returns:\n        str: ok\n    """\n'
        '    return "ok"\n'
    )
    agent = client.agents.create(
        name="own-judge",
        agent_type=server.agent_type,
        tool_ids=[str(tool.id)],
        tool_rules=[{"type": "exit_loop", "tool_name": "submit_grade"}],
        **server.model_settings,
    )
    finished = evaltester.run(
        evaltester.write_suite(ROWS, graders={"kind": judge(server, agent_id=agent.id)}, max_concurrent=2)
    )
    assert finished.status == ExitStatus.PASSED, finished.output
    scores = {key: result.grades["kind"].score for key, result in evaltester.results().items()}
    assert agent.id in left_on(server)[0]
    if not server.is_old:  # an older server has one conversation for all, whose first message this judge looks at
        assert scores == {"good": 1.0, "bad": 0.25}


def test_a_judge_that_hands_in_nothing_is_an_error_of_the_grade(evaltester: EvalTester, server: RunningServer) -> None:
    server.model.answers = lambda request: Reply(tool_calls=[("submit_grade", {"rationale": "so", "score": 7})])
    before = left_on(server)
    finished = evaltester.run(evaltester.write_suite(ROWS[:1], graders={"kind": judge(server)}))
    assert finished.status == ExitStatus.UNFINISHED, finished.output
    error = evaltester.results()["good"].error
    assert error.category == "grading"
    assert "no valid grade in 3 messages" in error.message
    assert len(server.model.requests) >= 3
    assert left_on(server) == before


def test_a_server_that_fails_is_an_error_of_the_grade(evaltester: EvalTester, server: RunningServer) -> None:
    before = left_on(server)
    suite = evaltester.write_suite(ROWS[:1], graders={"kind": judge(server, model="openai/no-such-model")})
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.UNFINISHED, finished.output
    assert "the judge cannot be made" in evaltester.results()["good"].error.message
    assert left_on(server) == before


def test_without_a_server_no_conversation_is_lost(evaltester: EvalTester) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    grader = {"kind": "letta_judge", "prompt": "Is it kind?", "base_url": address}
    finished = evaltester.run(evaltester.write_suite(ROWS, graders={"kind": grader}, max_concurrent=1))
    assert finished.status == ExitStatus.UNFINISHED, finished.output
    assert f"no Letta server answers at {address}" in " ".join(finished.output.split())
    kept = evaltester.results()
    assert kept
    assert all(result.trajectory for result in kept.values())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"judge_tool_name": "other"}, "needs an agent that has this tool"),
        ({"agent_file": "no.af"}, "cannot be read"),
        ({"prompt": None}, "`prompt` is required (or `prompt_path`)"),
        ({"prompt": " "}, "is empty"),
        ({"agent_id": "agent-1", "agent_file": "a.af"}, "give one of them"),
        ({"prompt": "Is {foo} in it?", "rubric_vars": ["foo"]}, "`{foo}`"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(evaltester: EvalTester, fields: dict[str, Any], words: str) -> None:
    grader = {"kind": "letta_judge", "prompt": "Is it kind?", **fields}
    graders = {"kind": {name: value for name, value in grader.items() if value is not None}}
    finished = evaltester.command("validate", evaltester.write_suite(ROWS, graders=graders))
    assert finished.status == ExitStatus.INPUT_WRONG, finished.output
    assert words in finished.output
