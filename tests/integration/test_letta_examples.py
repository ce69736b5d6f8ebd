"""The examples with Letta servers, run as a reader runs them, on servers of both generations."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from stateval.errors import ExitStatus
from tests.integration.letta_servers import RunningServer
from tests.integration.test_letta_agent import left_on
from tests.support.evaltester import EvalTester
from tests.support.model_server import Reply, Request

EXAMPLES = Path(__file__).parents[2] / "examples"


def keeps_notes(request: Request) -> Reply:
    """An agent that stores and corrects fruit, knows what its prompt says, and judges when it can."""
    last = request.messages[-1]
    text = str(last.get("content"))
    if "submit_grade" in request.tools:
        shown = str([message.get("content") for message in request.messages if message["role"] == "user"])
        score = 0.0 if "What do you do with these cups" in shown else 1.0
        return Reply(tool_calls=[("submit_grade", {"rationale": "as it is", "score": score})])
    if last["role"] == "tool" or "heartbeat" in text:
        return _said(request, "Noted.")
    suffix = "string" if "new_string" in str(request.body["tools"]) else "str"
    more = {"request_heartbeat": True} if "request_heartbeat" in str(request.body["tools"]) else {}
    if found := re.search(r"I like (\w+) now, no longer (\w+)", text):
        arguments = {"label": "fruit_preferences", f"old_{suffix}": found[2], f"new_{suffix}": found[1]}
        return Reply(tool_calls=[("memory_replace", arguments | more)])
    if found := re.search(r"I like (\w+)\.", text):
        arguments = {"label": "fruit_preferences", f"new_{suffix}": found[1]}
        return Reply(tool_calls=[("memory_insert", arguments | more)])
    known = re.findall(
        r"waits for the book (\w+)|<fruit_preferences>.*?<value>(.*?)</value>", request.system, re.DOTALL
    )
    return _said(request, " ".join(" ".join(part).strip() for part in known) or "I do not know.")


def _said(request: Request, text: str) -> Reply:
    if "send_message" not in request.tools:
        return Reply(text)
    more = {"request_heartbeat": False} if "request_heartbeat" in str(request.body["tools"]) else {}
    return Reply(tool_calls=[("send_message", {"message": text, **more})])


OPTIONS = {
    "letta-memory-block": ["--base-url", "{url}", "--model-handle", "{handle}"],
    "letta-factory": ["--base-url", "{url}", "--model-handle", "{handle}"],
    "letta-judge": ["--set", "graders.kind.base_url={url}", "--set", "graders.kind.model={handle}"],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_example_passes_and_leaves_nothing_behind(
    evaltester: EvalTester, server: RunningServer, tmp_path: Path, name: str
) -> None:
    server.model.answers = keeps_notes
    shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    options = [text.format(url=server.base_url, handle=server.handle("scripted")) for text in OPTIONS[name]]
    before = left_on(server)
    finished = evaltester.run(tmp_path / name / "suite.yaml", *options)
    assert finished.status == ExitStatus.PASSED, finished.output
    label = server.handle("scripted") if "--model-handle" in options else "default"
    results = evaltester.results(label)
    assert all(result.error is None for result in results.values())
    if name == "letta-judge":
        assert {key: result.grades["kind"].score for key, result in results.items()} == {
            "late": 1.0,
            "broken": 1.0,
            "again": 0.0,
        }
    else:
        assert all(grade.score == 1.0 for result in results.values() for grade in result.grades.values())
    assert left_on(server) == before
