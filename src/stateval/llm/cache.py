"""Answers of models, kept between runs by a digest of all that was asked.

One SQLite file in write-ahead mode, which several processes use at once: readers wait for nobody, and writes happen in
a thread, one after the other. Losing it costs money and no results, so it never ends a run: a cache that cannot be
read or written says so once, and is silent from then on.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from stateval.errors import UsageError
from stateval.llm.catalogue import cache_directory
from stateval.threads import in_thread

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_MARK = 0x53744A61  # SQLite's `application_id`, by which our files are told from others
_FORM = 1
_SECONDS_FOR_A_LOCK = 20.0
_MEGABYTE = 1_000_000
_USUAL_MEGABYTES = 1024
_LEFT_OF_FULL = 0.8
_SECONDS_BETWEEN_USES = 3600  # a use is written down this seldom, so that reading is mostly no writing
_MOST_USES = 500
_TABLES = (
    "create table answers (key blob primary key, value blob not null, used integer not null)",
    "create index by_use on answers (used)",
    "create table total (bytes integer not null)",
    "insert into total values (0)",
)


class AnswerCache:
    """Answers by key, in one file.

    Args:
        path: the file; it and its directory are made when they are first needed, for their owner alone.
        most_bytes: the size of all keys and values above which those unused for longest are dropped.
    """

    def __init__(self, path: Path, most_bytes: int = _USUAL_MEGABYTES * _MEGABYTE) -> None:
        self.path = path
        self.most_bytes = most_bytes
        self._writing = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._is_broken = False
        self._uses: dict[bytes, int] = {}

    def get(self, key: bytes) -> bytes | None:
        """The value that was kept under a key, or None. Called on the event loop: it waits for no other process."""
        if self._is_broken:
            return None
        with self._said_once():
            if self._reader is None:
                self._reader = self._opened(check_same_thread=False)
            row = self._reader.execute("select value, used from answers where key = ?", (key,)).fetchone()
            if row is not None:
                now = int(time.time())
                if now - row[1] > _SECONDS_BETWEEN_USES and len(self._uses) < _MOST_USES:
                    self._uses[key] = now
                return bytes(row[0])
        return None

    async def put(self, key: bytes, value: bytes) -> None:
        """Keeps a value. Never raises: where it cannot be kept there is one warning."""
        if not self._is_broken:
            await in_thread(self._put, key, value)

    @property
    def size(self) -> tuple[int, int]:
        """(answers, bytes of keys and values). (0, 0) where there is no file."""
        if not self.path.exists():
            return 0, 0
        return self._by_hand(
            lambda file: (
                file.execute("select count(*) from answers").fetchone()[0],
                file.execute("select bytes from total").fetchone()[0],
            )
        )

    def clear(self) -> int:
        """Drops every answer; says how many there were. Raises UsageError where the file cannot be written."""
        if not self.path.exists():
            return 0

        def drop(file: sqlite3.Connection) -> int:
            with file:
                file.execute("begin immediate")
                dropped = file.execute("delete from answers").rowcount
                file.execute("update total set bytes = 0")
            file.execute("vacuum")
            return dropped

        return self._by_hand(drop)

    def close(self) -> None:
        """Lets go of the file; the next call opens it again."""
        with self._writing:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    def _put(self, key: bytes, value: bytes) -> None:
        with self._writing, self._said_once():
            if self._is_broken:
                return
            if self._writer is None:
                self._writer = self._opened(check_same_thread=False)
            uses, self._uses = self._uses, {}
            with self._writer as file:
                file.execute("begin immediate")
                file.executemany("update answers set used = ? where key = ?", [(at, used) for used, at in uses.items()])
                self._add(file, key, value)

    def _add(self, file: sqlite3.Connection, key: bytes, value: bytes) -> None:
        before = file.execute("select length(value) from answers where key = ?", (key,)).fetchone()
        grown = len(value) - before[0] if before else len(key) + len(value)
        file.execute("insert or replace into answers values (?, ?, ?)", (key, value, int(time.time())))
        file.execute("update total set bytes = bytes + ?", (grown,))
        (total,) = file.execute("select bytes from total").fetchone()
        if total > self.most_bytes:
            self._drop_unused(file, total)

    def _drop_unused(self, file: sqlite3.Connection, total: int) -> None:
        """Drops those unused for longest until there is some room again."""
        wanted = _LEFT_OF_FULL * self.most_bytes
        drop = []
        for row, size in file.execute("select rowid, length(key) + length(value) from answers order by used, rowid"):
            if total <= wanted:
                break
            drop.append((row,))
            total -= size
        file.executemany("delete from answers where rowid = ?", drop)
        file.execute("update total set bytes = ?", (total,))

    @contextmanager
    def _said_once(self) -> Iterator[None]:
        """Whatever fails inside is said, and the cache is left alone from then on."""
        try:
            yield
        except (sqlite3.Error, OSError, UsageError) as error:
            if self._is_broken:
                return
            self._is_broken = True
            logger.warning("answers of judges are not kept: %s: %s", self.path, error)

    def _by_hand(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """What `work` makes of the file. Raises UsageError that says what is wrong with it."""
        try:
            with closing(self._opened()) as file:
                return work(file)
        except (sqlite3.Error, OSError) as error:
            raise UsageError(
                f"{self.path}: {error}; delete the file, or name another with STATEVAL_JUDGE_CACHE"
            ) from None

    def _opened(self, *, check_same_thread: bool = True) -> sqlite3.Connection:
        """The file, made where there is none. Raises sqlite3.Error, OSError; UsageError for a file that is not ours."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        file = sqlite3.connect(
            self.path, timeout=_SECONDS_FOR_A_LOCK, isolation_level=None, check_same_thread=check_same_thread
        )
        try:
            self._prepare(file)
        except BaseException:
            file.close()
            raise
        return file

    def _prepare(self, file: sqlite3.Connection) -> None:
        if not _is_ours(file):
            with file:
                file.execute("begin immediate")
                if not _is_ours(file):  # nobody else has made it meanwhile
                    _make(file)
        if file.execute("pragma journal_mode").fetchone()[0] != "wal":
            with suppress(sqlite3.OperationalError):  # somebody works in it just now; the next one to open it does it
                file.execute("pragma journal_mode = wal")
        file.execute("pragma synchronous = normal")


def _is_ours(file: sqlite3.Connection) -> bool:
    (mark,), (form,) = (file.execute(f"pragma {name}").fetchone() for name in ("application_id", "user_version"))
    return (mark, form) == (_MARK, _FORM)


def _make(file: sqlite3.Connection) -> None:
    if file.execute("select 1 from sqlite_master").fetchone():
        raise UsageError("this is no cache of this release; name another file with STATEVAL_JUDGE_CACHE")
    for statement in _TABLES:
        file.execute(statement)
    file.execute(f"pragma application_id = {_MARK}")
    file.execute(f"pragma user_version = {_FORM}")


def answer_cache() -> AnswerCache | None:
    """The cache of this process, or None where `STATEVAL_JUDGE_CACHE` is `off`.

    The file is that of `STATEVAL_JUDGE_CACHE`, else `judge-answers.sqlite3` in the directory of caches;
    `STATEVAL_JUDGE_CACHE_MB` bounds it (1,024 MB). Raises UsageError.
    """
    named = os.environ.get("STATEVAL_JUDGE_CACHE", "").strip()
    if named.lower() == "off":
        return None
    path = Path(named).expanduser() if named else cache_directory() / "judge-answers.sqlite3"
    return _cache_at(path.absolute(), _most_bytes())


def check_cache_settings() -> None:
    """Raises UsageError where the environment says something of the cache that cannot be understood."""
    if os.environ.get("STATEVAL_JUDGE_CACHE", "").strip().lower() != "off":
        _most_bytes()


@functools.cache
def _cache_at(path: Path, most_bytes: int) -> AnswerCache:
    return AnswerCache(path, most_bytes)


def _most_bytes() -> int:
    said = os.environ.get("STATEVAL_JUDGE_CACHE_MB", "").strip() or str(_USUAL_MEGABYTES)
    try:
        megabytes = float(said)
    except ValueError:
        megabytes = math.nan
    if not (math.isfinite(megabytes) and megabytes > 0):
        advice = "write a number of megabytes above 0, such as 1024, or keep nothing by STATEVAL_JUDGE_CACHE=off"
        raise UsageError(f"STATEVAL_JUDGE_CACHE_MB is {said!r}; {advice}")
    return int(megabytes * _MEGABYTE)
