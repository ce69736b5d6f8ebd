"""Users' files: loaded once, with their siblings, unseen by other suites."""

from __future__ import annotations

import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import anyio
import pytest

from stateval.errors import GradingError, UsageError, UserCodeError
from stateval.graders import make_tool_grader
from stateval.loading.calling import call_user, scored
from stateval.loading.fingerprint import fingerprint_of
from stateval.loading.registry import Registry
from stateval.loading.user_code import LoadedFunction, UserCode
from stateval.records.marks import Mark

GRADER = """
from stateval.records.marks import grader

@grader
def judge(sample, submission):
    return 1.0
"""


def write(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        path = directory / f"{name.replace('__', '/', 1)}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return directory


def test_a_marked_function_is_loaded_with_reference_and_fingerprint(tmp_path: Path) -> None:
    loaded = UserCode(write(tmp_path, graders=GRADER)).load("graders.py:judge", Mark.GRADER)
    assert (loaded.function(None, ""), loaded.reference, loaded.mark) == (1.0, "graders.py:judge", Mark.GRADER)
    assert loaded.fingerprint["reference"] == "graders.py:judge"


def test_a_file_is_loaded_once(tmp_path: Path) -> None:
    code = UserCode(write(tmp_path, counting="made = []\ndef a(): return made\ndef b(): return made\n"))
    assert code.load("counting.py:a").function() is code.load("counting.py:b").function()
    assert code.load("./counting.py:a").function is code.load("counting.py:a").function


@pytest.mark.parametrize(
    "statement, use",
    [
        ("import helper", "helper.NAME"),
        ("import helper as h", "h.NAME"),
        ("from helper import NAME", "NAME"),
        ("import folder.inner", "folder.inner.NAME"),
        ("import folder.inner as i", "i.NAME"),
        ("from folder import inner", "inner.NAME"),
        ("from folder.inner import NAME", "NAME"),
        ("from package import NAME", "NAME"),
    ],
)
@pytest.mark.parametrize("where", ["on import", "inside the function"])
def test_siblings_can_be_imported_and_two_suites_do_not_see_each_other(
    tmp_path: Path, statement: str, use: str, where: str
) -> None:
    before = list(sys.path)
    loaded = []
    for suite in ("one", "two"):
        name = f"NAME = {suite!r}\n"
        main = f"{statement}\ndef f():\n    return {use}\n"
        if where == "inside the function":
            main = f"def f():\n    {statement}\n    return {use}\n"
        directory = write(
            tmp_path / suite,
            main=main,
            helper=name,
            folder__inner=name,
            package____init__="from .core import NAME\n",
            package__core=name,
        )
        loaded.append(UserCode(directory).load("main.py:f"))
    assert [one.function() for one in loaded] == ["one", "two"]
    assert sys.path == before
    assert not {"main", "helper", "folder", "package"} & set(sys.modules)


def test_siblings_are_found_in_threads_and_beside_a_file_in_a_subdirectory(tmp_path: Path) -> None:
    write(
        tmp_path,
        shared="import deep\nVALUE = 'shared'\n",
        deep="",
        sub__main="def f():\n    import near, shared\n    return near.VALUE + shared.VALUE\n",
        sub__near="VALUE = 'near '\n",
    )
    function = UserCode(tmp_path).load("sub/main.py:f").function
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(function())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["near shared"] * 8


@pytest.mark.parametrize(
    "reference", ["../outside/main.py:f", "link.py:f", "v1.2/main.py:f"], ids=lambda text: f"fault-20-{text}"
)
def test_files_outside_or_behind_links_find_their_siblings(tmp_path: Path, reference: str) -> None:
    main, near = "def f():\n    import near\n    return near.VALUE\n", "VALUE = 1\n"
    write(tmp_path / "outside", main=main, near=near)
    write(tmp_path / "suite" / "v1.2", main=main, near=near)
    (tmp_path / "suite" / "link.py").symlink_to(tmp_path / "outside" / "main.py")
    assert UserCode(tmp_path / "suite").load(reference).function() == 1


def test_a_sibling_shadows_an_installed_package_but_never_stateval_or_a_built_in(tmp_path: Path) -> None:
    write(
        tmp_path,
        main="import stateval, sys, datasets\ndef f(): return stateval.__version__, sys.path, datasets.MINE\n",
        stateval="",
        sys="",
        datasets="MINE = True\n",
    )
    version, path, mine = UserCode(tmp_path).load("main.py:f").function()
    assert version and path is sys.path and mine is True


def test_dataclasses_and_annotations_of_user_modules_resolve(tmp_path: Path) -> None:
    text = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from pydantic import BaseModel

class Inner(BaseModel):
    n: int

class Outer(BaseModel):
    inner: Inner

@dataclass
class Plain:
    kind: ClassVar[str] = "x"

def f():
    return Outer(inner={"n": 1}).inner.n
"""
    assert UserCode(write(tmp_path, models=text)).load("models.py:f").function() == 1


def test_an_edited_file_is_read_anew_and_no_cache_is_left(tmp_path: Path) -> None:
    results = []
    for value in "12":
        write(tmp_path, main="from helper import V\ndef f(): return V\n", helper=f"V = {value}\n")
        results.append(UserCode(tmp_path).load("main.py:f").function())
    assert results == [1, 2]
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    "changed, differs", [("main", True), ("helper", True), ("lazy", True), ("further", True), ("unrelated", False)]
)
def test_the_fingerprint_covers_the_file_and_what_it_imports(tmp_path: Path, changed: str, differs: bool) -> None:
    files = {
        "main": "import helper\ndef f():\n    from lazy import x\n    return x\n",
        "helper": "import further.deep\n",
        "further__deep": "",
        "lazy": "x = 1\n",
        "unrelated": "",
    }
    write(tmp_path, **files)
    first = UserCode(tmp_path).load("main.py:f").fingerprint
    name = "further__deep" if changed == "further" else changed
    write(tmp_path, **{name: files[name] + "# changed\n"})
    assert (UserCode(tmp_path).load("main.py:f").fingerprint != first) is differs


@pytest.mark.parametrize(
    "text, reference, said",
    [
        (GRADER, "graders", "write `file.py:function`"),
        (GRADER, "grader.py:judge", "did you mean `graders.py`?"),
        (GRADER, "graders.py:juge", "did you mean `judge`?"),
        ("def judge(sample, submission): ...", "graders.py:judge", "put `@grader` above `def judge`"),
        (GRADER.replace("grader", "extractor"), "graders.py:judge", "is marked `@extractor`, not `@grader`"),
        ("judge = 3", "graders.py:judge", "is a int, not a function"),
        ("x = 1\n\nraise ValueError('broken')", "graders.py:judge", "graders.py:3: loading it raised ValueError"),
        ("x = 1\ndef f(:", "graders.py:judge", "graders.py:2: SyntaxError"),
        ("import nothing_of_that_name", "graders.py:judge", "graders.py:1: loading it raised ModuleNotFoundError"),
        ("import sys\nsys.exit(3)", "graders.py:judge", "graders.py:2: loading it raised SystemExit"),
        (GRADER.replace("sample, ", ""), "graders.py:judge", "it must take (sample, submission)"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, reference: str, said: str) -> None:
    with pytest.raises(UserCodeError) as caught:
        UserCode(write(tmp_path, graders=text)).load(reference, Mark.GRADER)
    assert said in str(caught.value)


def test_an_error_in_a_sibling_is_placed_there(tmp_path: Path) -> None:
    write(tmp_path, main="import helper\ndef f(): ...\n", helper="\n\n1 / 0\n")
    with pytest.raises(UserCodeError, match=r"helper\.py:3: loading it raised ZeroDivisionError"):
        UserCode(tmp_path).load("main.py:f")


class TestRegistry:
    def test_built_in_names_and_references(self, tmp_path: Path) -> None:
        registry = Registry(UserCode(write(tmp_path, graders=GRADER)))
        assert registry.find("grader", "contains", {"contains": 7}) == 7
        found = registry.find("grader", "graders.py:judge", {"contains": 7})
        assert isinstance(found, LoadedFunction) and found.mark is Mark.GRADER

    @pytest.mark.parametrize(
        "name, said",
        [
            ("contians", "did you mean `contains`?"),
            ("zzz", "known are `contains`"),
            ("graders.py", "`graders.py:function`"),
            ("graders.py:f", "no suite directory"),
        ],
    )
    def test_unknown_names(self, name: str, said: str) -> None:
        with pytest.raises(UsageError, match=said.replace("?", r"\?")):
            Registry().find("grader", name, {"contains": 7})

    def test_entry_points_are_listed_and_only_fail_when_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        points = [
            EntryPoint("good", "math:sqrt", "stateval.graders"),
            EntryPoint("broken", "no_such_module:f", "stateval.graders"),
            EntryPoint("odd", "math:pi", "stateval.graders"),
        ]
        monkeypatch.setattr("stateval.loading.registry.entry_points", lambda group: points)
        registry = Registry()
        assert list(registry.entry_points("stateval.graders")) == ["good", "broken", "odd"]
        found = registry.find("grader", "good", {})
        assert isinstance(found, LoadedFunction) and found.function(4) == 2
        with pytest.raises(UserCodeError, match="`broken` of an unknown package cannot be loaded: ModuleNotFoundError"):
            registry.find("grader", "broken", {})
        with pytest.raises(UserCodeError, match="is a float, not a function"):
            registry.find("grader", "odd", {})


@pytest.mark.parametrize(
    "source, told",
    [
        (
            "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
            "a.py:3: loading it raised E: its mess",
        ),
        (
            "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
            "a.py:3: loading it raised E: its mess",
        ),
        ("class E(BaseException): pass\nraise E('one\\ntwo')", "a.py:2: loading it raised E: one two"),
        ("import asyncio\nraise asyncio.CancelledError", "a.py:2: loading it raised CancelledError"),
        ("x = 1\n\0", "a.py:2: SyntaxError: the source has a NUL byte in it"),
        ("x = 1\ncompile('x y', '<string>', 'exec')", "a.py:2: loading it raised SyntaxError: invalid syntax"),
        ("# coding: no-such", "a.py: SyntaxError: unknown encoding"),
        ("x = 1\ndef __getattr__(name): raise RuntimeError('no')", "a.py:2: loading it raised RuntimeError: no"),
    ],
)
@pytest.mark.parametrize("name", ["a", "b"])
def test_whatever_an_import_raises_is_told_in_one_line_with_its_place(
    tmp_path: Path, source: str, told: str, name: str
) -> None:
    code = UserCode(write(tmp_path, a=source, b="from a import f"))
    with pytest.raises(UserCodeError) as caught:
        code.load(f"{name}.py:f")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reference", ["a\0b.py:f", "\ud800.py:f", "~no-such-user-here/a.py:f", f"{'a' * 5000}.py:f"])
def test_a_reference_that_no_file_can_have_is_an_error(tmp_path: Path, reference: str) -> None:
    with pytest.raises(UserCodeError, match="names"):
        UserCode(tmp_path).load(reference)


def test_a_setting_with_half_an_emoji_in_its_name_is_not_known() -> None:
    with pytest.raises(UsageError, match="there is no setting `\ud800`"):
        make_tool_grader("contains", {"\ud800": 1})
    with pytest.raises(UsageError, match="write a text"):
        make_tool_grader("contains_any", {"expected": {"\ud800": 1}})


class TestCalling:
    @pytest.mark.parametrize("raised", [ValueError("no"), StopIteration(), SystemExit(2), KeyError("k")])
    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_whatever_a_function_raises_is_kept_with_its_type(self, raised: BaseException, asynchronous: bool) -> None:
        def plain() -> None:
            raise raised

        async def awaited() -> None:
            raise raised

        with pytest.raises(GradingError, match="grader `g` raised") as caught:
            anyio.run(call_user, awaited if asynchronous else plain, GradingError, "grader `g`")
        assert caught.value.cause_type in (type(raised).__name__, "RuntimeError")

    def test_synchronous_functions_run_in_a_thread_and_asynchronous_ones_here(self) -> None:
        async def here() -> threading.Thread:
            return threading.current_thread()

        async def main() -> tuple[threading.Thread, threading.Thread, threading.Thread]:
            asked = [await call_user(f, GradingError, "g") for f in (threading.current_thread, here, lambda: here())]
            return asked[0], asked[1], asked[2]

        in_thread, awaited, lazily = anyio.run(main)
        assert in_thread is not threading.main_thread()
        assert awaited is lazily is threading.main_thread()

    def test_nothing_of_a_dict_is_lost(self) -> None:
        assert scored({"score": 1, "reason": "x", "metadata": {"a": 2}}) == {
            "score": 1,
            "metadata": {"reason": "x", "a": 2},
        }


def test_fingerprints_of_functions_differ_by_what_they_have_bound() -> None:
    def make(limit: int) -> object:
        return lambda sample, submission: len(submission) < limit

    one, same, other = make(1), make(1), make(2)
    assert fingerprint_of(one) == fingerprint_of(same) != fingerprint_of(other)  # type: ignore[arg-type]
