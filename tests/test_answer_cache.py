"""The cache of judges' answers: one file, several processes, and nothing that can end a run."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from stateval.errors import UsageError
from stateval.llm.cache import AnswerCache, answer_cache

WRITER = """
import sys
from pathlib import Path
import anyio
from stateval.llm.cache import AnswerCache

async def main():
    cache = AnswerCache(Path(sys.argv[1]))
    for number in range(int(sys.argv[3])):
        await cache.put(f"{sys.argv[2]}-{number}".encode(), sys.argv[2].encode() * 50)
        if number == 0:
            print("began", flush=True)
    print("done", flush=True)

anyio.run(main)
"""


def put(cache: AnswerCache, *pairs: tuple[bytes, bytes]) -> None:
    async def run() -> None:
        for key, value in pairs:
            await cache.put(key, value)

    anyio.run(run)


def writer(path: Path, name: str, answers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(answers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_an_answer_is_kept_for_the_next_process(tmp_path):
    path = tmp_path / "below" / "answers.sqlite3"
    put(AnswerCache(path), (b"a", b"one"), (b"b", b""), (b"a", b"two"))
    cache = AnswerCache(path)
    assert (cache.get(b"a"), cache.get(b"b"), cache.get(b"c")) == (b"two", b"", None)
    assert cache.size == (2, len(b"a" + b"two" + b"b"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_reading_and_asking_for_the_size_work_without_a_file(tmp_path):
    cache = AnswerCache(tmp_path / "answers.sqlite3")
    assert (cache.size, cache.clear(), cache.get(b"a")) == ((0, 0), 0, None)


def test_clearing_drops_every_answer_also_for_those_who_have_it_open(tmp_path):
    cache, other = AnswerCache(tmp_path / "a.sqlite3"), AnswerCache(tmp_path / "a.sqlite3")
    put(cache, *((bytes([number]), b"x") for number in range(9)))
    assert other.get(b"\x03") == b"x"
    assert cache.clear() == 9
    assert (cache.size, cache.get(b"\x03"), other.get(b"\x03")) == ((0, 0), None, None)


def test_the_longest_unused_go_first_when_it_is_full(tmp_path):
    path = tmp_path / "answers.sqlite3"
    cache = AnswerCache(path, most_bytes=1000)
    put(cache, *((b"k%d" % number, b"x" * 98) for number in range(9)))
    with sqlite3.connect(path) as file:  # so long ago that reading one of them is written down
        file.execute("update answers set used = used - 10000")
    assert cache.get(b"k0")
    put(cache, *((b"n%d" % number, b"x" * 98) for number in range(2)))
    kept = [name for name in (b"k0", b"k1", b"k2", b"k8", b"n0", b"n1") if cache.get(name)]
    assert kept == [b"k0", b"k8", b"n0", b"n1"]
    assert cache.size[1] <= 1000


def test_two_processes_write_at_once_and_every_answer_is_there(tmp_path):
    path = tmp_path / "answers.sqlite3"
    writers = [writer(path, name, 300) for name in ("one", "two", "three")]
    assert [process.communicate(timeout=120)[0] for process in writers] == ["began\ndone\n"] * 3
    cache = AnswerCache(path)
    assert cache.size[0] == 900
    assert all(cache.get(f"{name}-{n}".encode()) == name.encode() * 50 for name in ("one", "two") for n in range(300))


def test_fault_83_a_killed_process_leaves_a_file_that_others_go_on_with(tmp_path):
    path = tmp_path / "answers.sqlite3"
    killed, other = writer(path, "killed", 10**6), writer(path, "other", 200)
    assert killed.stdout
    assert killed.stdout.readline() == "began\n"
    time.sleep(0.1)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert other.communicate(timeout=120)[0] == "began\ndone\n"
    cache = AnswerCache(path)
    put(cache, (b"later", b"x"))
    assert (cache.get(b"killed-0"), cache.get(b"other-199"), cache.get(b"later")) == (
        b"killed" * 50,
        b"other" * 50,
        b"x",
    )


@pytest.mark.parametrize("content", [b"no database at all, but a text that is long enough" * 40, b"\x00" * 5000])
def test_a_damaged_file_is_said_once_and_ends_nothing(tmp_path, caplog, content):
    path = tmp_path / "answers.sqlite3"
    path.write_bytes(content)
    cache = AnswerCache(path)
    put(cache, (b"a", b"one"), (b"b", b"two"))
    assert cache.get(b"a") is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text
    assert path.read_bytes() == content
    with pytest.raises(UsageError, match="STATEVAL_JUDGE_CACHE"):
        cache.clear()


def test_another_programs_database_is_left_alone(tmp_path, caplog):
    path = tmp_path / "theirs.sqlite3"
    with sqlite3.connect(path) as file:
        file.execute("create table answers (mine)")
    before = path.read_bytes()
    cache = AnswerCache(path)
    put(cache, (b"a", b"one"))
    assert cache.get(b"a") is None
    assert "no cache of this release" in caplog.text
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_text("a file, no directory", encoding="utf-8")
    cache = AnswerCache(tmp_path / "file" / "answers.sqlite3")
    put(cache, (b"a", b"one"), (b"b", b"two"))
    assert cache.get(b"a") is None
    assert len(caplog.records) == 1


def test_a_full_disk_costs_answers_and_nothing_else(tmp_path, caplog):
    cache = AnswerCache(tmp_path / "answers.sqlite3")
    put(cache, (b"a", b"one"))
    cache.close()
    with sqlite3.connect(tmp_path / "answers.sqlite3") as file:
        (pages,) = file.execute("pragma page_count").fetchone()
    full = AnswerCache(tmp_path / "answers.sqlite3")
    assert full.get(b"a") == b"one"
    full._writer = full._opened(check_same_thread=False)
    full._writer.execute(f"pragma max_page_count = {pages}")
    put(full, (b"big", b"x" * 100_000))
    assert "full" in caplog.text
    assert AnswerCache(tmp_path / "answers.sqlite3").get(b"a") == b"one"


def test_the_environment_says_where_it_is_and_how_large(tmp_path, monkeypatch):
    monkeypatch.setenv("STATEVAL_JUDGE_CACHE", str(tmp_path / "here.sqlite3"))
    monkeypatch.setenv("STATEVAL_JUDGE_CACHE_MB", "2.5")
    cache = answer_cache()
    assert cache is not None
    assert (cache.path, cache.most_bytes) == (tmp_path / "here.sqlite3", 2_500_000)
    assert answer_cache() is cache
    monkeypatch.setenv("STATEVAL_JUDGE_CACHE", "OFF")
    assert answer_cache() is None
    monkeypatch.delenv("STATEVAL_JUDGE_CACHE")
    monkeypatch.setenv("STATEVAL_CACHE_DIR", str(tmp_path))
    usual = answer_cache()
    assert usual is not None
    assert usual.path == tmp_path / "judge-answers.sqlite3"


@pytest.mark.parametrize("megabytes", ["0", "-1", "nan", "inf", "much"])
def test_a_wrong_size_is_refused(monkeypatch, megabytes):
    monkeypatch.setenv("STATEVAL_JUDGE_CACHE_MB", megabytes)
    with pytest.raises(UsageError, match="STATEVAL_JUDGE_CACHE_MB"):
        answer_cache()
