"""File names for models."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator

_LONGEST = 120
_TAKEN = {"history", "suite", "summary", "header", "results"}
_DEVICES = {"con", "prn", "aux", "nul"} | {f"{device}{n}" for device in ("com", "lpt") for n in range(1, 10)}
_UNSAFE = re.compile(r'[/\\:\x00-\x1f\x7f<>"|?*\ud800-\udfff]')


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """A distinct file name (without ending) for each label, the same on every machine.

    `/`, `\\` and `:` become `-`. Names that would collide (also where a file system ignores case), that a system
    reserves, or that are too long get a piece of the label's hash.

    >>> file_names(["openai/gpt-4.1", "a/b", "a:b"])
    {'openai/gpt-4.1': 'openai-gpt-4.1', 'a/b': 'a-b', 'a:b': 'a-b-6783a31e'}
    """
    names: dict[str, str] = {}
    used: set[str] = set()
    for label in labels:
        name = next(name for name in _candidates(label) if name.casefold() not in used)
        used.add(name.casefold())
        names[label] = name
    return names


def _candidates(label: str) -> Iterator[str]:
    """The plain name, where it says all that the label says, then names with ever more of the label's hash."""
    name = _safe(label)
    if name == _UNSAFE.sub("-", label) and not _is_reserved(name):
        yield name
    digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(8, len(digest) + 1):
        yield f"{name}-{digest[:length]}"


def _safe(label: str) -> str:
    name = _UNSAFE.sub("-", label)[:_LONGEST].rstrip(". ")
    name = name.encode("utf-8")[:200].decode("utf-8", "ignore")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        name = name.encode("ascii", "replace").decode("ascii").replace("?", "-")
    return f"-{name[1:]}" if name.startswith(".") else name or "model"


def _is_reserved(name: str) -> bool:
    return name.casefold() in _TAKEN or name.split(".")[0].casefold() in _DEVICES
