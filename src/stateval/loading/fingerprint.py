"""What tells one state of a piece of code from another, so that grades are computed anew when it changed."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stateval.records.encoding import dump_json, plain


def digest_of_files(paths: Iterable[Path]) -> str:
    """The SHA-256 over the contents of several files; where they lie does not count."""
    whole = hashlib.sha256()
    for path in paths:
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


@functools.cache
def digest_of_module(name: str) -> str:
    """The SHA-256 of a loaded module's source file, computed once in a process."""
    file = sys.modules[name].__file__
    if file is None:
        raise ValueError(f"the module {name} has no file")
    return digest_of_files([Path(file)])


def fingerprint_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The fingerprint of a function that was handed over in Python: its name, its source, and what it has bound.

    What cannot be told by value (an object in a closure) counts by its `str` or by where it lies, which may differ from
    run to run: then grades are computed anew rather than reused wrongly.
    """
    bound: list[Any] = []
    while isinstance(function, functools.partial):
        bound += [function.args, function.keywords]
        function = function.func
    kind = function if inspect.isroutine(function) or isinstance(function, type) else type(function)
    bound += _bound_to(function)
    digest = hashlib.sha256(_source_of(kind) + dump_json([_by_value(item) for item in bound])).hexdigest()
    return {"reference": f"{kind.__module__}:{kind.__qualname__}", "sha256": digest}


def _bound_to(function: Any) -> list[Any]:
    if inspect.ismethod(function):
        return [vars(function.__self__) if hasattr(function.__self__, "__dict__") else str(function.__self__)]
    if inspect.isfunction(function):
        closure = [_named_or_value(cell.cell_contents) for cell in function.__closure__ or ()]
        return [closure, function.__defaults__, function.__kwdefaults__]
    return [vars(function)] if hasattr(function, "__dict__") and not isinstance(function, type) else []


def _by_value(value: Any) -> Any:
    try:
        return plain(value)
    except Exception:  # noqa: BLE001 - what a function has bound may be anything, itself included
        return f"{type(value).__qualname__} at {id(value)}"


def _named_or_value(value: Any) -> Any:
    return f"{value.__module__}:{value.__qualname__}" if hasattr(value, "__qualname__") else value


def _source_of(kind: Any) -> bytes:
    try:
        return inspect.getsource(kind).encode("utf-8", "surrogatepass")
    except (OSError, TypeError):
        code = getattr(kind, "__code__", None)
        return code.co_code + str(code.co_consts).encode("utf-8", "replace") if code else str(kind).encode("utf-8")
