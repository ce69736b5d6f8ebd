"""What goes wrong with a Letta server is said with the sample, and the others go on."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from stateval.errors import ExitStatus
from tests.integration.letta_servers import RunningServer, free_port, letta_server
from tests.integration.scripted_agent import speaks
from tests.integration.test_letta_agent import agent_file, left_on, new_agent, write
from tests.support.evaltester import EvalTester
from tests.support.model_server import ModelServer, Reply

GHOST = "agent-00000000-0000-4000-8000-000000000000"


def test_a_failing_model_is_an_error_of_its_sample_and_its_clone_is_deleted(
    evaltester: EvalTester, server: RunningServer
) -> None:
    rows = [
        {"id": "fails", "input": ["remember likes tea", "fail"], "ground_truth": "x"},
        {"id": "works", "input": "Hi", "ground_truth": "Hello."},
    ]
    suite = write(evaltester, server, rows, target={"max_retries": 1})
    before = left_on(server)
    finished = evaltester.run(suite)
    results = evaltester.results()
    error = results["fails"].error
    assert error is not None
    assert error.category == "target"
    assert "turn" in error.message
    assert results["fails"].reward is None
    assert len(results["fails"].trajectory) == 1, "the turn that was finished is kept"
    assert results["works"].error is None
    agents, _ = left_on(server)
    assert agents - before[0] == {results["works"].agent_id}
    assert "Traceback" not in finished.output
    if not server.is_old:
        assert "the scripted model refuses" in error.message


def test_a_reply_that_never_ends_runs_out_of_time_and_leaves_nothing(
    evaltester: EvalTester, server: RunningServer
) -> None:
    goes_on = threading.Event()

    def waits(request: Any) -> Reply:
        if "wait" in request.last:
            goes_on.wait(60)
        return speaks(request)

    server.model.answers = waits
    rows = [
        {"id": "slow", "input": "wait", "ground_truth": "x"},
        {"id": "quick", "input": "Hi", "ground_truth": "Hello."},
    ]
    suite = write(evaltester, server, rows, target={"timeout": 6}, cleanup=True)
    before = left_on(server)
    try:
        evaltester.run(suite)
    finally:
        goes_on.set()
    results = evaltester.results()
    assert results["slow"].error is not None
    assert results["slow"].error.timed_out
    assert results["quick"].error is None
    assert left_on(server) == before


def test_an_agent_that_does_not_exist_is_said(evaltester: EvalTester, server: RunningServer) -> None:
    evaltester.write(
        "agents.py",
        f"""
        from stateval import agent_factory

        @agent_factory
        def ghost(client, sample):
            return "{GHOST}"

        @agent_factory
        def nothing(client, sample):
            return None

        @agent_factory
        async def breaks(client, sample):
            raise RuntimeError("no agents today")
        """,
    )
    said = {"ghost": GHOST, "nothing": "returned None", "breaks": "no agents today"}
    for name, words in said.items():
        suite = write(
            evaltester, server, [{"input": "Hi", "ground_truth": "x"}], target={"agent_script": f"agents.py:{name}"}
        )
        finished = evaltester.run(suite, "--fresh")
        assert finished.status == ExitStatus.UNFINISHED, finished.output
        (result,) = evaltester.results().values()
        assert result.error is not None
        assert words in result.error.message
    suite = write(evaltester, server, [{"input": "Hi", "ground_truth": "x"}], target={"agent_id": GHOST})
    finished = evaltester.run(suite, "--fresh")
    assert finished.status == ExitStatus.INPUT_WRONG
    assert f"has no agent `{GHOST}`" in " ".join(finished.output.split())


def test_a_model_that_the_server_does_not_know_is_said_and_no_clone_stays(
    evaltester: EvalTester, server: RunningServer
) -> None:
    suite = write(
        evaltester, server, [{"input": "Hi", "ground_truth": "x"}], target={"model_handles": ["openai/no-such"]}
    )
    before = left_on(server)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.UNFINISHED, finished.output
    (result,) = evaltester.results("openai/no-such").values()
    assert result.error is not None
    assert "does not take the model `openai/no-such`" in result.error.message
    assert left_on(server) == before


def test_an_agent_file_that_the_server_refuses_is_an_error_of_every_sample(
    evaltester: EvalTester, server: RunningServer
) -> None:
    path = evaltester.path / agent_file(server, evaltester.path)
    content = json.loads(path.read_text("utf-8"))
    content["agents"][0]["agent_type"] = "no_such_type"
    path.write_text(json.dumps(content), "utf-8")
    suite = write(evaltester, server, [{"input": "Hi", "ground_truth": "x"}], target={"agent_file": "ada.af"})
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.UNFINISHED
    (result,) = evaltester.results().values()
    assert result.error is not None
    assert "the server does not take the agent file" in result.error.message


def test_a_server_that_is_killed_fails_what_is_left(evaltester: EvalTester) -> None:
    with ModelServer(speaks) as model, letta_server("0.11.7", model) as own:

        def kills(request: Any) -> Reply:
            if "kill" in request.last:
                own.kill()
            return speaks(request)

        model.answers = kills
        inputs = ["Hi", "Hi", "kill", "Hi", "Hi"]
        rows = [{"input": text, "ground_truth": "Hello."} for text in inputs]
        suite = write(evaltester, own, rows, max_concurrent=1, on_error="exclude")
        finished = evaltester.run(suite)
    results = evaltester.results()
    assert [results[str(number)].error is None for number in range(5)] == [True, True, False, False, False]
    for number in (2, 3, 4):
        assert results[str(number)].error.category == "target"
        assert "onnection" in results[str(number)].error.message
    assert "Traceback" not in finished.output


def test_without_a_server_nothing_runs(evaltester: EvalTester, server: RunningServer) -> None:
    name = agent_file(server, evaltester.path)
    address = f"http://127.0.0.1:{free_port()}"
    target = {"kind": "letta_agent", "agent_file": name, "base_url": address}
    suite = evaltester.write_suite(target=target)
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.INPUT_WRONG
    assert f"no Letta server answers at {address}" in " ".join(finished.output.split())
    environment = {"LETTA_BASE_URL": server.base_url}
    target.pop("base_url")
    evaltester.write_suite([{"input": "Hi", "ground_truth": "Hello."}], target=target)
    assert evaltester.run(suite, "--fresh", env=environment).status == ExitStatus.PASSED


def test_a_wrong_key_is_said_before_anything_runs(evaltester: EvalTester) -> None:
    with ModelServer(speaks) as model, letta_server("0.11.7", model, password="right-password") as secured:
        agent_id = GHOST
        for key, words in ((None, "set `LETTA_API_KEY`"), ("wrong-password", "refuses the key")):
            target = {"kind": "letta_agent", "agent_id": agent_id, "base_url": secured.base_url}
            suite = evaltester.write_suite(target=target)
            finished = evaltester.run(suite, env={"LETTA_API_KEY": key})
            assert finished.status == ExitStatus.INPUT_WRONG
            assert words in " ".join(finished.output.split())
            assert "wrong-password" not in finished.output
        finished = evaltester.run(suite, "--fresh", env={"LETTA_API_KEY": "right-password"})
        assert "has no agent" in " ".join(finished.output.split())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("not json", "is not JSON"),
        ("[]", "no list `agents`"),
        ('{"agents": []}', "holds 0 agents"),
        ('{"agents": [{}, {}]}', "holds 2 agents"),
        (None, "cannot be read"),
    ],
)
def test_an_agent_file_that_is_none_is_said_before_anything_runs(
    evaltester: EvalTester, content: str | None, words: str
) -> None:
    if content is not None:
        evaltester.write("a.af", content)
    suite = evaltester.write_suite(target={"kind": "letta_agent", "agent_file": "a.af"})
    finished = evaltester.command("validate", suite)
    assert finished.status == ExitStatus.INPUT_WRONG
    assert words in finished.output
    assert "target.agent_file" in finished.output


def test_a_live_agent_and_its_model_stay_as_they_are(evaltester: EvalTester, server: RunningServer) -> None:
    agent_id = new_agent(server)
    suite = write(evaltester, server, [{"input": "Hi", "ground_truth": "Hello."}], target={"agent_id": agent_id})
    refused = evaltester.run(suite, "--model-handle", "openai/other")
    assert refused.status == ExitStatus.INPUT_WRONG
    assert "would change the model of the live agent" in refused.output
