"""On which line of a suite something is said, when it is asked long after the suite was run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from stateval.errors import UsageError
from stateval.suite.yaml_text import Path as Field
from stateval.suite.yaml_text import YamlDocument, read_yaml

_NAMES = ("suite.yaml", "suite.yml")
_WORDS = {"gate": ("EvalGate", "gate"), "graders": ("graders", "grader"), "target": ("AgentEvalTarget", "target")}
"""How Python says it: the class that stands for a field, and keywords of `EvalSuite`."""


def suite_file(path: Path) -> Path:
    """The file of a suite: the path, or the `suite.yaml` in it. Raises UsageError where there is none."""
    found = next((path / name for name in _NAMES if (path / name).is_file()), path) if path.is_dir() else path
    if not found.is_file():
        raise UsageError(f"{path}: there is no suite file here; give the YAML file of the suite, or its Python file")
    return found


def lines_of(path: Path) -> Callable[[Field], int]:
    """A function from a field of a suite, such as `("gate", 0)`, to the line (from 1) on which it begins.

    The nearest field around it counts where it is not written itself. In Python the line is that of the keyword, or
    of the object that stands for the field, in the first suite of the file; 1 where nothing is found.

    Raises UsageError for a file that cannot be read, SuiteError for one that is no YAML.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if path.suffix == ".py":
        return _in_python(text, path)
    document = read_yaml(text, str(path))
    return lambda field: document.source(_as_written(field, document)).line or 1


def _as_written(field: Field, document: YamlDocument) -> Field:
    """The field in this file: a list of gates may be one gate, a mapping of graders one grader."""
    said = document.value if isinstance(document.value, dict) else {}
    match field:
        case ("gate", int(), *rest) if not isinstance(said.get("gate"), list):
            return ("gate", *rest)
        case ("graders", *_) if "graders" not in said:
            return ("grader",)
    return field


def _in_python(text: bytes, path: Path) -> Callable[[Field], int]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path}: is no Python: {error}") from None
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg=str(name), value=value):
                found.setdefault(name, value.lineno)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                found.setdefault(name, node.lineno)
    return lambda field: _line_in_python(field, found)


def _line_in_python(field: Field, found: Mapping[str, int]) -> int:
    words = (*_WORDS.get(str(field[0]), ()), "EvalSuite")
    return next((found[word] for word in words if word in found), 1)


def portable_path(file: Path) -> str | None:
    """The path of a file as it means the same on other machines, with `/` between its parts.

    It is relative to the root of the repository that the file lies in, else to the current directory; None where it
    lies below neither.
    """
    file = file.absolute()
    root = repository_of(file) or Path.cwd()
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else None


def repository_of(path: Path) -> Path | None:
    """The root of the repository that an absolute path lies in, or is; None where it lies in none."""
    return next((place for place in (path, *path.parents) if (place / ".git").exists()), None)
