"""From a suite file to a checked `SuiteSpec`: everything that is wrong is said at once, with file, line and field."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dotenv import load_dotenv
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stateval.errors import SuiteError
from stateval.records.source import Problem, Source
from stateval.suite.old_spellings import notes_on_old_spellings
from stateval.suite.overrides import Override, apply_overrides
from stateval.suite.plain_words import sentence, shown
from stateval.suite.spec import SuiteSpec
from stateval.suite.variables import Variables
from stateval.suite.yaml_text import Path as FieldPath
from stateval.suite.yaml_text import YamlDocument, dotted, read_yaml

_NAMES = ("suite.yaml", "suite.yml")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where each field of a suite was said: in the file, or on the command line."""

    document: YamlDocument
    origins: Mapping[FieldPath, str] = field(default_factory=dict)

    def of(self, *path: str | int) -> Source:
        """The place of a field, such as `sources.of("graders", "quality", "extractor")`."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return Source(path=self.origins[path[:length]], field=dotted(path))
        return self.document.source(path)


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite file that holds together in itself; what it names has not been looked at yet.

    `path` is absolute; `notes` say what old spellings were read as.
    """

    spec: SuiteSpec
    sources: Sources
    path: Path
    notes: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        """What all paths in the suite are relative to."""
        return self.path.parent

    @property
    def output(self) -> Path | None:
        """The results directory that the suite names."""
        return self.directory / Path(self.spec.output).expanduser() if self.spec.output else None


def load_suite(path: Path | str, overrides: Sequence[Override] = (), *, dotenv: bool = True) -> LoadedSuite:
    """Reads a suite file, or `suite.yaml` of a directory.

    Args:
        path: the file; what it names is relative to the directory in which this path puts it, also for a link.
        overrides: values of the command line.
        dotenv: whether a `.env` of the current directory is loaded first; variables that are set already win.

    Raises SuiteError with all problems, UsageError for an override that fits nowhere.
    """
    if dotenv:
        load_environment_file(Path(".env"))
    file = _existing_file(Path(path).expanduser())
    document = read_yaml(_bytes_of(file), str(file))
    if not isinstance(document.value, dict):
        raise SuiteError(
            [Problem(f"a suite file is a mapping (`name: ...`), not {shown(document.value)}", Source(document.path))]
        )
    sources = Sources(document, apply_overrides(document.value, overrides))
    variables = Variables(os.environ)
    data = variables.expand(document.value)
    spec = _validated(data, sources, variables.problems)
    notes = tuple(_with_line(sources.of(*place), note) for place, note in notes_on_old_spellings(data, spec))
    return LoadedSuite(spec, sources, file.absolute(), notes)


def load_environment_file(path: Path) -> None:
    """Puts the variables of a `.env` into the environment, where there is such a file; those set already stay.

    Raises SuiteError where it cannot be read.
    """
    try:
        load_dotenv(path.absolute(), override=False, encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SuiteError([Problem("the text is not UTF-8", Source(str(path)))]) from None
    except OSError as error:
        raise SuiteError([Problem(f"the file cannot be read: {error.strerror}", Source(str(path)))]) from None


def _validated(data: Mapping[str, Any], sources: Sources, unset: Mapping[FieldPath, Problem]) -> SuiteSpec:
    problems = [(place, problem) for place, problem in unset.items()]
    spec = None
    try:
        spec = SuiteSpec.model_validate(data)
    except ValidationError as error:
        found = [(_field_path(detail, data), sentence(detail)) for detail in error.errors(include_url=False)]
        problems += [(place, Problem(text)) for place, text in found if place not in unset]
    if problems or spec is None:
        placed = [Problem(p.message, sources.of(*place), p.advice) for place, p in problems]
        raise SuiteError(sorted(dict.fromkeys(placed), key=_in_file_order))
    return spec


def _field_path(error: ErrorDetails, data: Any) -> FieldPath:
    """The path in the file for the location that pydantic gives, which also holds names of variants."""
    path: list[str | int] = []
    here = data
    for position, part in enumerate(error["loc"]):
        is_last = position == len(error["loc"]) - 1
        if (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        ):
            here = here[part]  # type: ignore[index]
            path.append(part)
        elif is_last and error["type"] == "missing":
            path.append(part)
    return tuple(path)


def _in_file_order(problem: Problem) -> tuple[bool, int, int]:
    return problem.source.line is None, problem.source.line or 0, problem.source.column or 0


def _with_line(source: Source, note: str) -> str:
    return f"{source.path}:{source.line}: {note}" if source.line else f"{source.path}: {note}"


def _existing_file(path: Path) -> Path:
    if path.is_file():
        return path
    if path.is_dir():
        inside = [path / name for name in _NAMES if (path / name).is_file()]
        if inside:
            return inside[0]
        raise SuiteError([Problem("this directory has no suite.yaml", Source(str(path)), _suites_in(path))])
    if path.exists():
        return path
    raise SuiteError([Problem("there is no such file", Source(str(path)), _near(path))])


def _near(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"there is no directory {path.parent} either"
    close = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
    return f"did you mean `{path.parent / close[0]}`?" if close else _suites_in(path.parent)


def _suites_in(directory: Path) -> str | None:
    names = sorted(entry.name for entry in directory.iterdir() if entry.suffix in (".yaml", ".yml"))
    return f"there is: {', '.join(names[:10])}" if names else "`stateval init` writes one"


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SuiteError([Problem(f"the file cannot be read: {error.strerror}", Source(str(file)))]) from None
