"""Users' Python files, loaded as modules that only the suite they belong to can see.

A file `graders.py` of a suite becomes a module with a private name below a private package, and gets an `__import__`
of its own: one that looks for `import helper` beside the file and in the suite's directory before it asks the
interpreter. It is found through the module's builtins, so it also serves imports inside functions that run later, in
any thread. `sys.path` is never touched, and no name that another part of the process could import is ever taken.
"""

from __future__ import annotations

import builtins
import difflib
import importlib
import itertools
import pkgutil
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from stateval.errors import StatevalError, UserCodeError
from stateval.loading.calling import message_of
from stateval.loading.fingerprint import digest_of_files
from stateval.loading.siblings import Siblings
from stateval.records.marks import Mark, mark_of
from stateval.records.source import Problem, Source

_PACKAGE = "_stateval_user_code_"
_REFERENCE = re.compile(r"(?P<path>.+\.py):(?P<name>\w+)\Z", re.DOTALL)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class LoadedFunction:
    """A function of a user's file, or what an entry point names.

    `reference` is what the suite says (`graders.py:polite`); `fingerprint` changes when the file, or a sibling file
    that it imports, changes. `imports` are the top-level names of the packages that these files import.
    """

    function: Callable[..., Any]
    reference: str
    mark: Mark | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()


def is_reference(text: str) -> bool:
    """Whether the text names a function in a file, as `file.py:function` does."""
    return _REFERENCE.match(text) is not None


class UserCode:
    """The Python files of one suite.

    Each file is loaded once. Files that lie beside a loaded file, or in the suite's directory, can be imported by
    it. Two objects of this class share nothing, whatever their files are called.

    Args:
        base_directory: the directory that references are relative to, which is the suite file's.
        served: top-level names that the files import, and the modules that they get for them; nobody else in the
            process does. They come before what is installed or lies beside a file.
    """

    def __init__(self, base_directory: Path, served: Mapping[str, str] = {}) -> None:
        self._base = base_directory.resolve()
        self._names = _Names(f"{_PACKAGE}{next(_numbers)}", self._base, served)

    def load(self, reference: str, mark: Mark | None = None) -> LoadedFunction:
        """The function that `file.py:function` names.

        Raises UserCodeError where the file is missing, raises on import, has no such function, or where the function
        lacks the wanted mark.
        """
        matched = _REFERENCE.match(reference)
        if matched is None:
            raise _error(f"`{reference}` does not name a function", advice="write `file.py:function`")
        path = self._existing_file(matched["path"], reference)
        function = _named(self._module(path), matched["name"], path, mark)
        siblings = Siblings(self._base)
        fingerprint = {"reference": reference, "sha256": digest_of_files(siblings.files_of(path))}
        return LoadedFunction(function, reference, mark_of(function), fingerprint, siblings.packages_of(path))

    @contextmanager
    def running_script(self, path: Path) -> Iterator[dict[str, Any]]:
        """Runs a file as Python runs a script, with what its siblings and the served names are; its global names.

        Until the context ends the script is the process's `__main__`, where what it made may be looked for.

        Raises UserCodeError where it cannot be compiled or raises; errors of stateval and `sys.exit` go through.
        """
        path = path.resolve()
        script, before = ModuleType("__main__"), sys.modules["__main__"]
        vars(script).update(__file__=str(path), __builtins__=self._names.builtins)
        sys.modules["__main__"] = script
        try:
            self._run(path, vars(script))
            yield vars(script)
        finally:
            sys.modules["__main__"] = before

    def _run(self, path: Path, names: dict[str, Any]) -> None:
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), names)
        except (StatevalError, SystemExit, KeyboardInterrupt):
            raise
        except OSError as error:
            if error.filename == str(path):
                raise _error(f"the file cannot be read: {error.strerror}", Source(path=str(path))) from error
            raise _import_error(error, path) from error
        except BaseException as error:
            raise _import_error(error, path) from error

    def _existing_file(self, written: str, reference: str) -> Path:
        try:
            path = (self._base / Path(written).expanduser()).resolve()
            if path.is_file():
                return path
        except (OSError, ValueError, RuntimeError) as error:
            raise _error(f"`{reference}` names no file that can be read ({message_of(error)})") from error
        neighbours = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise _error(f"there is no file {path}, which `{reference}` names", advice=_nearest(path.name, neighbours))

    def _module(self, path: Path) -> ModuleType:
        if "." in path.stem:
            raise _error("a file that is loaded must have no dot in its name before `.py`", Source(path=str(path)))
        try:
            return importlib.import_module(self._names.module_name(path))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _import_error(error, path) from error


class _Names:
    """The private packages of one UserCode: one for the suite's directory, one for each other directory of a file."""

    def __init__(self, root: str, base: Path, served: Mapping[str, str]) -> None:
        self._root = root
        self._base = base
        self._served = served
        self._packages: dict[Path, str] = {}
        self.builtins: dict[str, Any] = {**vars(builtins), "__import__": self._import}
        self._importlib = _Importlib(self._import_module)
        self._targets: dict[tuple[str, str], str | None] = {}
        self._lock = threading.Lock()
        self._package(base)

    def module_name(self, path: Path) -> str:
        """The private name of a file, which is the same whoever asks for it."""
        if path.is_relative_to(self._base):
            folders = path.relative_to(self._base).parents[:-1]
            if all(_can_be_package(self._base / folder) for folder in folders):
                return ".".join((self._package(self._base), *path.relative_to(self._base).with_suffix("").parts))
        return f"{self._package(path.parent)}.{path.stem}"

    def _package(self, directory: Path) -> str:
        with self._lock:
            if directory not in self._packages:
                name = f"{self._root}_{len(self._packages)}"
                package = ModuleType(name)
                package.__path__ = [str(directory)]
                _finder.register(name, self.builtins)
                sys.modules[name] = package
                self._packages[directory] = name
            return self._packages[directory]

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the names that `__import__` has
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What `import` does in the user's files: `name` is first looked for beside the importing file."""
        if level == 0 and name.partition(".")[0] in self._served:
            return self._import_served(name, fromlist or ())
        package = self._package_with(name.partition(".")[0], globals) if level == 0 else None
        if package is None:
            found = builtins.__import__(name, globals, locals, fromlist or (), level)
            return self._importlib if found is importlib else found
        if fromlist:
            return builtins.__import__(f"{package}.{name}", globals, locals, fromlist, 0)
        importlib.import_module(f"{package}.{name}")
        return sys.modules[f"{package}.{name.partition('.')[0]}"]

    def _import_module(self, name: str, package: str | None = None) -> ModuleType:
        """What `importlib.import_module` does in the user's files."""
        top_level = name.partition(".")[0]
        if top_level in self._served:
            return self._import_served(name, ("*",))
        private = self._package_with(top_level, sys._getframe(1).f_globals) if top_level else None
        return importlib.import_module(f"{private}.{name}" if private else name, package)

    def _import_served(self, name: str, fromlist: Sequence[str]) -> ModuleType:
        top_level, dot, rest = name.partition(".")
        served = self._served[top_level]
        try:
            module = importlib.import_module(f"{served}{dot}{rest}")
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith(served):
                raise
            told = f"stateval serves no `{name}` to files that were written for `{top_level}`"
            parts = [part.name for part in pkgutil.iter_modules(importlib.import_module(served).__path__)]
            raise ModuleNotFoundError(f"{told}; {_nearest(rest, parts)}", name=name) from None
        for wanted in fromlist:
            if not hasattr(module, wanted) and wanted != "*":
                self._import_served_part(name, wanted, module)
        return module if fromlist else importlib.import_module(served)

    def _import_served_part(self, name: str, wanted: str, module: ModuleType) -> None:
        """A part of a package that is a module, or the error that says what there is."""
        try:
            importlib.import_module(f"{module.__name__}.{wanted}")
        except ModuleNotFoundError:
            close = _nearest(wanted, getattr(module, "__all__", ()))
            advice = f"; {close}" if close else ""
            raise ImportError(f"`{name}` has no `{wanted}` here{advice}", name=name) from None

    def _package_with(self, top_level: str, importer: Mapping[str, Any] | None) -> str | None:
        """The private package in which a top-level name is found, or None where it is not the user's."""
        file = str((importer or {}).get("__file__", ""))
        key = (file, top_level)
        if key not in self._targets:
            path = Siblings(self._base).find(top_level, Path(file).resolve() if file else None)
            self._targets[key] = self.module_name(path).rpartition(".")[0] if path else None
        return self._targets[key]


class _Importlib(ModuleType):
    """The interpreter's `importlib` for the user's files, with an `import_module` of theirs."""

    def __init__(self, import_module: Callable[..., ModuleType]) -> None:
        super().__init__("importlib", importlib.__doc__)
        self.import_module = import_module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)


class _Loader(SourceFileLoader):
    """Loads a user's file: always from its source, with the builtins that know its siblings."""

    def __init__(self, fullname: str, path: str, user_builtins: dict[str, Any]) -> None:
        super().__init__(fullname, path)
        self._builtins = user_builtins

    def get_code(self, fullname: str) -> CodeType:
        """The compiled source. No byte-code cache is read or written: an edited file is never taken for an old one."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        nul = source.find(b"\0")
        if nul >= 0:
            raise SyntaxError("the source has a NUL byte in it", (path, source.count(b"\n", 0, nul) + 1, None, None))
        return self.source_to_code(source, path)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the file."""
        module.__dict__["__builtins__"] = self._builtins
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds modules below the private packages, and nothing else."""

    def __init__(self) -> None:
        self._builtins: dict[str, dict[str, Any]] = {}

    def register(self, package: str, user_builtins: dict[str, Any]) -> None:
        """From now on modules below this package are found, and run with these builtins."""
        self._builtins[package] = user_builtins
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a user's module, or None for every other name."""
        if not fullname.startswith(_PACKAGE):
            return None
        importlib.invalidate_caches()
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            user_builtins = self._builtins[fullname.partition(".")[0]]
            spec.loader = _Loader(fullname, spec.loader.path, user_builtins)
            spec.cached = None
        return spec


_finder = _Finder()


def _can_be_package(folder: Path) -> bool:
    return "." not in folder.name and not folder.with_name(f"{folder.name}.py").exists()


def _named(module: ModuleType, name: str, path: Path, mark: Mark | None) -> Callable[..., Any]:
    source = Source(path=str(path))
    try:
        function = getattr(module, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _import_error(error, path) from error
    if function is None:
        known = [n for n, value in vars(module).items() if callable(value) and not n.startswith("__")]
        marked = [n for n in known if mark is None or mark_of(getattr(module, n)) == mark]
        raise _error(f"there is no `{name}` in it", source, _nearest(name, marked or known))
    if not callable(function):
        raise _error(f"`{name}` is a {type(function).__name__}, not a function", source)
    if mark is not None and mark_of(function) != mark:
        has = mark_of(function)
        lack = f"is marked `@{has}`, not `@{mark}`" if has else f"is not marked `@{mark}`"
        advice = f"write `from stateval import {mark}` and put `@{mark}` above `def {name}`"
        raise _error(f"`{name}` {lack}", source, advice)
    return function  # type: ignore[no-any-return]


def _import_error(error: BaseException, path: Path) -> UserCodeError:
    """Where in the user's own files an import failed, and why."""
    if isinstance(error, SyntaxError) and isinstance(error.filename, str) and Path(error.filename).is_file():
        said = " ".join(str(error.msg).split())
        line = error.lineno if isinstance(error.lineno, int) and error.lineno > 0 else None
        return _error(f"{type(error).__name__}: {said}", Source(path=error.filename, line=line))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(path.parent)] or frames
    place = inside[-1] if inside else None
    source = Source(path=place.filename if place else str(path), line=place.lineno if place else None)
    said = " ".join(message_of(error).split())
    return _error(f"loading it raised {type(error).__name__}" + (f": {said}" if said else ""), source)


def _is_users(filename: str) -> bool:
    return not filename.startswith("<") and filename != __file__ and "site-packages" not in filename


def _nearest(name: str, known: Sequence[str]) -> str | None:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"there is: {', '.join(sorted(known)[:10])}" if known else None


def _error(message: str, source: Source | None = None, advice: str | None = None) -> UserCodeError:
    return UserCodeError([Problem(message, source or Source(), advice)])
