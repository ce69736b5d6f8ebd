"""Known secrets: what is taken out of files and off the screen, and what stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.records.message import _TYPES
from stateval.records.result import ErrorCategory, SampleResult
from stateval.records.state import ChangeKind
from stateval.records.usage import Timing
from stateval.records.verdict import Outcome
from stateval.redaction import (
    WORDS_OF_RECORDS,
    Redaction,
    secrets_of_configuration,
    secrets_of_environment,
    without_secrets,
)
from tests.support.evaltester import EvalTester
from tests.support.model_server import ModelServer, refused

SECRET = "hunter2-hunter2"

TELLING_AGENT = """
import os

class Telling:
    def send(self, message):
        if message == "raise":
            raise RuntimeError(f"refused: {os.environ['MY_SECRET']}")
        return f"{message} {os.environ['MY_SECRET']}"

    def state(self):
        return {"memory": os.environ["MY_SECRET"]}

def make(sample):
    return Telling()
"""

ODD_GRADER = """
from stateval import GradeResult, grader

@grader
def odd(sample, submission):
    return GradeResult(score=0.30000000000000004, rationale=submission)
"""


def files_of(evaltester: EvalTester) -> dict[Path, str]:
    files = [path for path in evaltester.results_path.rglob("*") if path.is_file()]
    return {path: path.read_text(encoding="utf-8") for path in files}


@pytest.mark.parametrize(
    "secret",
    [
        *("00000000", "30000000", "sample_id", "message_type", "assistant", "assistant_message", "extraction"),
        *("grade_errors", "12345678", "default.jsonl", "test-suite", "contains", "inconclusive", "2026-12-"),
    ],
)
def test_a_secret_is_never_taken_out_of_numbers_and_names(evaltester: EvalTester, secret: str) -> None:
    rows = [{"id": 12345678, "input": "red", "ground_truth": "red"}, {"id": "b", "input": "raise", "ground_truth": "x"}]
    evaltester.write("odd.py", ODD_GRADER)
    graders = {"quality": {"kind": "tool", "function": "odd.py:odd"}}
    evaltester.write_suite(rows, agent=TELLING_AGENT, graders=graders)
    done = evaltester.run(env={"MY_SECRET": secret})
    assert done.status == 0, done.output
    results = evaltester.results()
    assert set(results) == {"12345678", "b"}
    assert results["12345678"].grades["quality"].score == 0.30000000000000004
    assert results["12345678"].submissions["quality"] == "red [redacted]"
    assert results["b"].error is not None
    assert "refused: [redacted]" in results["b"].error.message
    assert {seen.sample_id for seen in evaltester.directory.observations("default")} == {"12345678", "b"}
    assert evaltester.summary().models[0].metrics["quality"].mean_scored == 0.30000000000000004
    assert len(json.loads((evaltester.results_path / "suite.json").read_bytes())["samples"]) == 2


def test_a_model_that_is_called_like_a_secret_keeps_its_file(evaltester: EvalTester) -> None:
    target = {"kind": "python", "factory": "agent.py:make", "model_handles": ["a-model-of-mine"]}
    evaltester.write_suite(target=target)
    assert evaltester.run(env={"MODEL_KEY": "a-model-of-mine"}).status == 0
    assert len(evaltester.results("a-model-of-mine")) == 2
    assert evaltester.summary().models[0].model == "a-model-of-mine"


def test_a_secret_in_an_id_is_taken_out_of_all_files_alike(evaltester: EvalTester) -> None:
    evaltester.write_suite([{"id": f"{SECRET}-{n}", "input": "red", "ground_truth": "red"} for n in range(2)])
    done = evaltester.run(env={"MY_SECRET": SECRET}, timeout=60)
    assert done.status == 0, done.output
    ids = {"[redacted]-0", "[redacted]-1"}
    assert set(evaltester.results()) == ids
    assert {seen.sample_id for seen in evaltester.directory.observations("default")} == ids
    samples = json.loads((evaltester.results_path / "suite.json").read_bytes())["samples"]
    assert {sample["id"] for sample in samples} == ids
    assert [path for path, text in files_of(evaltester).items() if SECRET in text] == []
    assert SECRET not in done.output


@pytest.mark.parametrize("password", ["pw", "a-long-password", "p%40ss"])
def test_a_password_in_an_address_reaches_neither_screen_nor_file(evaltester: EvalTester, password: str) -> None:
    with ModelServer(refused(404, "no such model")) as server:
        address = server.base_url.replace("http://", f"http://user:{password}@")
        target = {"kind": "local_agent", "agent": {}, "model_handles": ["mine"], "base_url": address}
        evaltester.write_suite(target=target)
        done = evaltester.run("suite.yaml", "--debug")
    assert done.status in (2, 4), done.output
    assert f":{password}@" not in done.output
    assert [path for path, text in files_of(evaltester).items() if f":{password}@" in text] == []
    config = json.loads((evaltester.results_path / "suite.json").read_bytes())["config"]
    assert config["target"]["base_url"] == server.base_url.replace("http://", "http://user:[redacted]@")


def test_configurations_are_shown_without_keys_and_passwords() -> None:
    config = {"target": {"api_key": "short", "base_url": "https://me:pw@host/v1"}, "list": ["see http://host:80/x@y"]}
    assert set(secrets_of_configuration(config)) == {"short", "//me:pw@", "pw"}
    shown = {"target": {"api_key": "[redacted]", "base_url": "https://me:[redacted]@host/v1"}, "list": config["list"]}
    assert without_secrets(config) == shown
    assert Redaction(secrets_of_configuration(config)).scrub("at https://me:pw@host, pw") == (
        "at https://[redacted]@host, pw"
    )


def test_passwords_of_proxies_are_secrets() -> None:
    assert secrets_of_environment({"HTTPS_PROXY": "http://me:pw@proxy:80"}) == {"//me:pw@"}


def test_a_secret_that_was_cut_off_is_taken_out() -> None:
    redaction = Redaction(["sk-0123456789abcdefghijklmnop"])
    assert redaction.scrub("got 'sk-0123456789abcdefghi...'") == "got '[redacted]...'"
    assert redaction.scrub("a sk-0123456789abc is another") == "a sk-0123456789abc is another"


def test_words_of_records_stay() -> None:
    words = [*_TYPES, *ErrorCategory, *Outcome, *ChangeKind]
    assert {str(word) for word in words if len(str(word)) >= 8} <= WORDS_OF_RECORDS


def test_a_line_without_a_secret_is_the_same_object() -> None:
    line = SampleResult(sample_id="a", timing=Timing(total=1.0, target=1.0)).to_json()
    assert Redaction([SECRET]).scrub_json(line) is line
    assert Redaction().scrub_json(line) is line


texts = st.text(max_size=20) | st.sampled_from([SECRET, f"x{SECRET}y", f'{{"key": "{SECRET}"}}'])
values = st.recursive(
    texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(value=values, secret=st.sampled_from([SECRET, "00000000", 'a"quoted\\one', "\U0001f600" * 8]))
def test_json_stays_json_and_only_texts_change(value: object, secret: str) -> None:
    def expected(item: object) -> object:
        match item:
            case dict():
                return {name: expected(one) for name, one in item.items()}
            case list():
                return [expected(one) for one in item]
            case str():
                return Redaction([secret]).scrub(item)
        return item

    for ascii_only in (True, False):
        encoded = json.dumps([value, secret, json.dumps(secret)], ensure_ascii=ascii_only)
        scrubbed = Redaction([secret]).scrub_json(encoded.encode("utf-8", "surrogatepass"))
        assert json.loads(scrubbed) == expected([value, secret, json.dumps(secret)])
