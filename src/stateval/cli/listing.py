"""`stateval list-extractors` and `stateval list-graders`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

from stateval.cli.screen import screen

if TYPE_CHECKING:
    from stateval.extractors import BuiltinExtractor
    from stateval.graders import BuiltinGrader
    from stateval.loading.options import OptionDescription


def list_extractors() -> None:
    """List what can be taken out of a conversation, with the keys of `extractor_config`."""
    from stateval.extractors import BUILTIN

    _list("extractor", BUILTIN)


def list_graders() -> None:
    """List the graders of `kind: tool`, with what they compare with and the keys of `grader_config`."""
    from stateval.graders import BUILTIN

    _list("grader", BUILTIN)


def _list(kind: str, builtin: Mapping[str, BuiltinExtractor] | Mapping[str, BuiltinGrader]) -> None:
    from stateval.loading.registry import Registry

    for part in builtin.values():
        screen.say(part.name)
        screen.say(f"    {part.description}{_reads(part)}")
        for option in part.option_descriptions:
            screen.say(f"    {_option(option)}")
    points = Registry().entry_points(f"stateval.{kind}s")
    for name, point in sorted(points.items()):
        screen.say(f"{name}\n    of the package {_package(point)}: {point.value}")
    screen.say(f"\nYour own: `file.py:function`, marked `@{kind}`; the file is relative to the suite file.")


def _reads(part: BuiltinExtractor | BuiltinGrader) -> str:
    reads = getattr(part, "reads", None)
    return f" Compares with: {reads.value}." if reads is not None and reads.value != "nothing" else ""


def _option(option: OptionDescription) -> str:
    default = "required" if option.required else f"default {_shown(option.default)}"
    return f"{option.name} ({default}): {option.description}"


def _shown(value: object) -> str:
    """A default as a suite file says it."""
    if value is None or isinstance(value, bool):
        return "none" if value is None else str(value).lower()
    return repr(value)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "that it comes from"
