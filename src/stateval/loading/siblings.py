"""Which files of a user a Python file imports."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class Siblings:
    """Finds the modules that a user's file means, beside itself and in the suite's directory.

    As for a script that Python runs, a file beside it comes before an installed package of the same name; the
    interpreter's own built-in modules and `stateval` come before it. A folder without `__init__.py` counts only where
    nothing of that name is installed.

    Args:
        base: the suite's directory.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def find(self, top_level: str, importer: Path | None) -> Path | None:
        """The file or folder that `import top_level` in that file means, or None where it is not the user's."""
        if not top_level or top_level == "stateval" or top_level in sys.builtin_module_names:
            return None
        directories = dict.fromkeys([importer.parent, self._base] if importer else [self._base])
        folders = [directory / top_level for directory in directories]
        for folder in folders:
            if (folder / "__init__.py").is_file():
                return folder
            if folder.with_name(f"{top_level}.py").is_file():
                return folder.with_name(f"{top_level}.py")
        plain_folder = next((folder for folder in folders if folder.is_dir()), None)
        return plain_folder if plain_folder and not _is_installed(top_level) else None

    def files_of(self, path: Path) -> list[Path]:
        """The file and all of the user's files that it imports, directly or through others, also inside functions."""
        found: dict[Path, None] = {}
        waiting = [path]
        while waiting:
            file = waiting.pop()
            if file not in found:
                found[file] = None
                waiting += self._imported_by(file)
        return sorted(found)

    def packages_of(self, path: Path) -> frozenset[str]:
        """The top-level names of all that the file and the user's files that it imports import, theirs included."""
        return frozenset(
            names[0]
            for file in self.files_of(path)
            for directory, names in _imports_of(file)
            if directory is None and names
        )

    def _imported_by(self, file: Path) -> Iterator[Path]:
        for directory, dotted in _imports_of(file):
            first, *rest = dotted
            top = self.find(first, file) if directory is None else _module_in(directory, first)
            if top is not None:
                yield from _files_along(top, rest)


def packages_imported_for(function: Callable[..., Any]) -> frozenset[str]:
    """The top-level names that the user's file with this function imports, and the user's files that it imports.

    None for functions of stateval, of installed packages, and of no file.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function if hasattr(function, "__code__") else type(function).__call__, "__code__", None)
    if code is None or str(getattr(function, "__module__", "")).partition(".")[0] == "stateval":
        return frozenset()
    return _packages_of(Path(code.co_filename))


@functools.cache
def _packages_of(file: Path) -> frozenset[str]:
    if "site-packages" in file.parts or not file.is_file():
        return frozenset()
    return Siblings(file.parent).packages_of(file)


def _is_installed(name: str) -> bool:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None


def _imports_of(file: Path) -> list[tuple[Path | None, list[str]]]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(_imports(tree, file))


def _imports(tree: ast.AST, file: Path) -> Iterator[tuple[Path | None, list[str]]]:
    """(the directory that a relative import starts from or None, the dotted name) for every import in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield None, alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if node.level else None
            module = node.module.split(".") if node.module else []
            for alias in node.names:
                yield start, [*module, alias.name]
        elif isinstance(node, ast.Call) and (name := _imported_by_call(node)):
            yield None, name.split(".")


def _imported_by_call(call: ast.Call) -> str | None:
    """The name in `import_module("name")`, which is written out and not relative."""
    function = call.func
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    wanted = called == "import_module" and isinstance(name, str) and name and not name.startswith(".")
    return str(name) if wanted else None


def _module_in(directory: Path, name: str) -> Path | None:
    file = directory / f"{name}.py"
    folder = directory / name
    return folder if folder.is_dir() else file if file.is_file() else None


def _files_along(module: Path, names: list[str]) -> Iterator[Path]:
    """The files that importing a dotted name runs: of each package its `__init__.py`, of the last its module."""
    for name in [*names, None]:
        if not module.is_dir():
            yield module
            return
        if (module / "__init__.py").is_file():
            yield module / "__init__.py"
        inner = _module_in(module, name) if name else None
        if inner is None:
            return
        module = inner
