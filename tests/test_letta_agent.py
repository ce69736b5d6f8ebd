"""What the target `letta_agent` makes of a server's answers, where only a scripted server gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stateval import AgentEvalTarget, EvalGate, EvalSuite, graders
from stateval.errors import ExitStatus, UsageError
from tests.support.evaltester import EvalTester
from tests.support.letta_api import LettaApi, said, stop, usage

FILE = json.dumps({"agents": [{"llm_config": {"handle": "openai/scripted"}}]})
TOKENS = {"role": "assistant", "content": "Hello.", "output_ids": [1, 2], "output_token_logprobs": [[-0.1, 1, None]]}


def run(tester: EvalTester, api: LettaApi, rows: list[dict[str, Any]] | None = None, **fields: Any) -> Any:
    """The results by sample id, and how the command ended."""
    tester.write("a.af", FILE)
    target = {"kind": "letta_agent", "agent_file": "a.af", "base_url": api.base_url, **fields.pop("target", {})}
    suite = tester.write_suite(rows or [{"input": "Hi", "ground_truth": "Hello."}], target=target, **fields)
    finished = tester.run(suite)
    return tester.results(), finished


def whole(text: str, turns: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    """An answer that comes at once."""
    return {"messages": [said(text)], "stop_reason": stop(), "usage": usage(), "turns": turns, **fields}


def test_a_turn_is_read_from_the_stream_with_its_usage(evaltester: EvalTester) -> None:
    ping = {"message_type": "ping", "id": "p", "date": "2026-01-01T00:00:00+00:00"}
    later = {"id": "m", "message_type": "a_message_of_later", "date": "2026-01-01T00:00:00+00:00", "extra": {"kept": 1}}
    with LettaApi([[ping, later, said("Hello."), stop("max_steps"), usage(7)]]) as api:
        results, finished = run(evaltester, api, [{"input": ["Hi", "Hi"], "ground_truth": "Hello."}], cleanup=True)
    assert finished.status == ExitStatus.PASSED, finished.output
    result = results["0"]
    assert [[message.message_type for message in turn] for turn in result.trajectory] == [
        ["a_message_of_later", "assistant_message"]
    ] * 2
    assert result.trajectory[0][0].extra == {"kept": 1}
    assert (result.usage.prompt_tokens, len(result.agent_usage)) == (14, 2)
    assert result.model_handle == "openai/scripted"
    assert api.agents == set()


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ({}, 0),
        ({"graders": {"m": {"kind": "tool", "function": "contains", "extractor": "memory_diff"}}}, 2),
        ({"graders": {key: {"kind": "tool", "function": "contains", "extractor": "STATE"} for key in ("a", "b")}}, 1),
        ({"snapshots": "every_turn"}, 3),
    ],
    ids=["not needed", "the ends", "two that look at the end", "every turn"],
)
def test_the_state_is_asked_for_as_often_as_it_is_needed(evaltester: EvalTester, fields: Any, times: int) -> None:
    source = "from stateval import extractor\n\n@extractor\ndef state(trajectory, config, agent_state):\n"
    evaltester.write("state.py", f"{source}    return agent_state.id\n")
    fields = json.loads(json.dumps(fields).replace("STATE", "state.py:state"))
    with LettaApi([[said("Hello."), stop()]]) as api:
        results, finished = run(evaltester, api, [{"input": ["Hi", "Hi"], "ground_truth": "Hello."}], **fields)
    assert results["0"].error is None, finished.output
    assert api.looked_at[results["0"].agent_id] == times


ENDED_EARLY = [
    ([said("Hel")], "stopped sending before the turn was finished"),
    ([], "stopped sending before the turn was finished"),
    ([said("Hel"), stop("llm_api_error")], "`llm_api_error`"),
    (
        [
            {**said(""), "message_type": "approval_request_message", "tool_call": {"name": "pay"}},
            stop("requires_approval"),
        ],
        "`pay`",
    ),
    (
        [said("Hel"), {"message_type": "error_message", "error_type": "llm_error", "message": "no", "detail": "why"}],
        "turn 1: the server says that it failed: llm_error: no: why",
    ),
    ([said("Hel"), b'event: error\ndata: {"error": {"type": "overloaded", "message": "too busy"}}\n\n'], "too busy"),
    ([b"data: [1]\n\n", stop()], "instead of a message"),
    ([b"data: {not json\n\n", stop()], "turn 1: "),
    ({"status": 500, "detail": "the database is gone"}, "HTTP 500: the database is gone"),
    ({"status": 422, "detail": [{"loc": ["body"], "msg": "bad"}]}, "HTTP 422"),
]


@pytest.mark.parametrize(("turn", "words"), ENDED_EARLY, ids=[words for _, words in ENDED_EARLY])
def test_a_turn_that_was_not_finished_is_an_error_and_its_clone_is_deleted(
    evaltester: EvalTester, turn: Any, words: str
) -> None:
    with LettaApi([[said("Hello."), stop()], turn]) as api:
        results, finished = run(evaltester, api, [{"input": ["Hi", "Hi"], "ground_truth": "Hello."}])
    assert finished.status == ExitStatus.UNFINISHED, finished.output
    assert "Traceback" not in finished.output
    error = results["0"].error
    assert error.category == "target"
    assert words in error.message
    assert len(results["0"].trajectory) == 1
    assert api.agents == set()


def test_token_data_of_all_turns_are_kept_as_they_came(evaltester: EvalTester) -> None:
    tool = {"role": "tool", "content": "42", "tool_name": "sum"}
    with LettaApi([whole("Hello.", [TOKENS, tool, TOKENS])]) as api:
        rows = [{"input": ["Hi", "Hi"], "ground_truth": "Hello."}]
        results, finished = run(evaltester, api, rows, token_data=True)
    assert finished.status == ExitStatus.PASSED, finished.output
    data = results["0"].token_data
    assert [one.role for one in data] == ["assistant", "tool", "assistant"] * 2
    assert (data[0].output_ids, data[0].output_token_logprobs) == ([1, 2], [[-0.1, 1, None]])
    assert all(body["return_token_ids"] and body["return_logprobs"] for body in api.asked)


@pytest.mark.parametrize(
    "second", [None, [], [{**TOKENS, "output_ids": None}], [TOKENS, {**TOKENS, "output_token_logprobs": None}]]
)
def test_token_data_are_kept_whole_or_not_at_all(evaltester: EvalTester, second: Any) -> None:
    with LettaApi([whole("Hello.", [TOKENS]), whole("Hello.", second)]) as api:
        rows = [{"input": ["Hi", "Hi"], "ground_truth": "Hello."}]
        results, finished = run(evaltester, api, rows, token_data=True)
    assert finished.status == ExitStatus.PASSED, finished.output
    assert results["0"].token_data is None
    assert "sent no whole token data" in finished.output


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"agent_id": "agent-1"}, "stands beside `agent_file`; give one of them"),
        ({"agent_file": None}, "`agent_file` is required (or `agent_id` or `agent_script`)"),
        (
            {"agent_file": None, "agent_id": "agent-1", "model_handles": ["x/y"]},
            "would change the model of the live agent",
        ),
        ({"model_configs": ["x"]}, "names models in `model_handles`"),
    ],
)
def test_fields_that_do_not_go_together_are_said(evaltester: EvalTester, target: dict[str, Any], words: str) -> None:
    evaltester.write("a.af", FILE)
    fields = {"kind": "letta_agent", "agent_file": "a.af", **target}
    suite = evaltester.write_suite(target={name: value for name, value in fields.items() if value is not None})
    finished = evaltester.command("validate", suite)
    assert finished.status == ExitStatus.INPUT_WRONG
    assert words in finished.output


def test_the_old_name_of_the_target_is_read_and_said(evaltester: EvalTester) -> None:
    evaltester.write("a.af", FILE)
    finished = evaltester.command("validate", evaltester.write_suite(target={"kind": "agent", "agent_file": "a.af"}))
    assert finished.status == ExitStatus.PASSED, finished.output
    assert "read as `kind: letta_agent`" in finished.output


FACTORIES = [
    ("def make(sample): ...", "takes (sample)"),
    ("def make(): ...", "takes ()"),
    ("make = 3", "not a function"),
]


@pytest.mark.parametrize(("source", "words"), FACTORIES)
def test_a_factory_of_other_parameters_is_said_before_anything_runs(
    evaltester: EvalTester, source: str, words: str
) -> None:
    mark = "@agent_factory\n" if source.startswith("def") else ""
    evaltester.write("agents.py", f"from stateval import agent_factory\n{mark}{source}\n")
    suite = evaltester.write_suite(target={"kind": "letta_agent", "agent_script": "agents.py:make"})
    finished = evaltester.command("validate", suite)
    assert finished.status == ExitStatus.INPUT_WRONG
    assert words in finished.output


def test_a_context_that_is_no_json_is_an_error(evaltester: EvalTester) -> None:
    with LettaApi([[said("Hello."), stop()]]) as api:
        agent_id = api.new_agent()
        evaltester.write(
            "agents.py",
            f"""
            from stateval import agent_factory

            @agent_factory
            def make(client, sample):
                return "{agent_id}", {{"handle": object()}}
            """,
        )
        target = {"kind": "letta_agent", "base_url": api.base_url, "agent_script": "agents.py:make"}
        evaltester.run(evaltester.write_suite([{"input": "Hi", "ground_truth": "x"}], target=target))
        assert api.agents == set()
    (result,) = evaltester.results().values()
    assert "is no JSON" in result.error.message


def test_a_python_suite_runs_agents_of_all_three_kinds(tmp_path: Path) -> None:
    (tmp_path / "a.af").write_text(FILE, encoding="utf-8")
    rows = [{"input": "Hi", "ground_truth": "Hello."}] * 2
    heard = []

    async def make(client: Any, sample: Any) -> Any:
        return api.new_agent(), {"for": sample.id}

    async def set_up(client: Any, model_handle: str | None) -> None:
        heard.append((str(client.base_url).rstrip("/"), model_handle))

    with LettaApi([[said("Hello."), stop(), usage()]]) as api:
        for source in ({"agent_file": tmp_path / "a.af"}, {"agent_id": api.new_agent()}, {"agent_factory": make}):
            target = AgentEvalTarget(**source, base_url=api.base_url)
            output = tmp_path / next(iter(source))
            suite = EvalSuite(
                dataset=rows,
                target=target,
                grader=graders.contains(),
                gate=EvalGate(min_score=1.0),
                output=output,
                setup=set_up,
                cleanup=True,
            )
            results = suite.run()
            assert [observation.score for observation in results] == [1.0, 1.0]
        assert heard == [(api.base_url, None)] * 3
        assert len(api.agents) == 1, "the live agent stays"


def test_token_data_are_asked_for_from_python(tmp_path: Path) -> None:
    with LettaApi([whole("Hello.", [TOKENS])]) as api:
        target = AgentEvalTarget(agent_id=api.new_agent(), base_url=api.base_url, return_token_data=True)
        rows = [{"input": "Hi", "ground_truth": "Hello."}]
        suite = EvalSuite(dataset=rows, target=target, grader="contains", output=tmp_path / "results")
        (observation,) = suite.run()
        assert observation.result.token_data[0].output_ids == [1, 2]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "exactly one of"),
        ({"agent_file": "a.af", "agent_id": "agent-1"}, "exactly one of"),
        ({"agent_file": "no.af"}, "cannot be read"),
        ({"agent_id": "agent-1", "model_handles": ["x/y"]}, "live agent"),
        ({"agent_factory": lambda client: None}, "takes (client)"),
        ({"agent_factory": 3}, "not a function"),
    ],
)
def test_what_is_wrong_with_a_target_is_said_when_it_is_made(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        EvalSuite(dataset=[{"input": "a"}], target=AgentEvalTarget(**fields), grader="contains")
    assert words in str(caught.value)
