"""`stateval export DIR`: what machines read of a run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from typer.core import TyperCommand

from stateval.cli.files import new_file, standard_output
from stateval.cli.optional import with_values
from stateval.cli.run import absolute
from stateval.cli.screen import screen
from stateval.errors import ResultsError, UsageError

if TYPE_CHECKING:
    from stateval.records.summary import Summary
    from stateval.reports.github import Field, Spot
    from stateval.reports.samples import Noteworthy
    from stateval.reports.standing import Rule
    from stateval.results.reading import Results

_STANDARD_OUTPUT = "-"
_MOST_SAMPLES = 5
_LEAST_ROOM = 1_000


class Format(StrEnum):
    """What results can be written as."""

    CSV = "csv"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    PARQUET = "parquet"

    @property
    def default_file(self) -> Path:
        """Where it goes that is asked for without a file, beside others."""
        return Path("stateval" + {"junit": ".xml", "markdown": ".md"}.get(self, f".{self}"))


_OPTIONS = {f"--{kind}" for kind in Format}


class ExportCommand(TyperCommand):
    """The command with options whose value may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What follows such an option is its file, unless it is a directory: that is the results."""
        return super().parse_args(ctx, list(with_values(args, _OPTIONS, lambda value: not Path(value).is_dir())))


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The results: a directory, or one results file.")],
    csv: Annotated[
        str | None, typer.Option("--csv", metavar="[FILE]", help="A table, one row a sample and run.")
    ] = None,
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="[FILE]", help="JUnit XML: a test a sample, and the gates.")
    ] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="[FILE]", help="The body of one comment on a pull request.")
    ] = None,
    parquet: Annotated[
        str | None, typer.Option("--parquet", metavar="[FILE]", help="The table as Parquet; needs the extra `parquet`.")
    ] = None,
    github: Annotated[
        bool,
        typer.Option("--github", help="Append to the step's summary ($GITHUB_STEP_SUMMARY) and print annotations."),
    ] = False,
    suite: Annotated[
        Path | None, typer.Option(help="The suite's file, on whose lines --github puts annotations.")
    ] = None,
    marker: Annotated[
        str | None, typer.Option(help="What the hidden first line of --markdown names. [default: the suite's name]")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")] = False,
) -> None:
    """Write what machines read of a run, finished or not: tables, JUnit XML, a comment, annotations.

    `-` as FILE is the standard output. Without FILE a format goes there too if it is the only one, else to
    `stateval.csv`, `stateval.xml`, `stateval.md` or `stateval.parquet` in the current directory. The exit status
    says whether that worked, not whether the gate passed.
    """
    said = {Format.CSV: csv, Format.JUNIT: junit, Format.MARKDOWN: markdown, Format.PARQUET: parquet}
    files = _destinations({kind: value for kind, value in said.items() if value is not None}, github)
    run = _opened(absolute(directory), marker)
    place = (_suite_file(suite) or _recorded(run.results)) if github else None
    for kind, file in files.items():
        with standard_output() if file is None else new_file(file) as stream:
            run.write(kind, stream)
        if file is not None:
            (screen.say if None not in files.values() else screen.complain)(f"wrote {file}")
    if github:
        _tell_github(run, place)


def _destinations(asked: Mapping[Format, str], github: bool) -> dict[Format, Path | None]:
    """Where each format goes; None is the standard output."""
    if not asked and not github:
        raise UsageError(
            "nothing to export: give one or several of --csv, --junit, --markdown, --parquet (each with a file, or `-` "
            "for the standard output) and --github"
        )
    alone = len(asked) == 1 and not github
    files = {kind: _destination(kind, value, alone) for kind, value in asked.items()}
    taken = [kind for kind, file in files.items() if file is None]
    if len(taken) + github > 1:
        others = "--github prints there" if github else f"--{taken[1]} goes there"
        raise UsageError(f"--{taken[0]} cannot go to the standard output, {others} too; give it a file")
    named = [file for file in files.values() if file is not None]
    if len(set(named)) < len(named):
        raise UsageError("two formats cannot go to one file; give each a file of its own")
    for kind in taken:
        _check_standard_output(kind)
    return files


def _destination(kind: Format, value: str, alone: bool) -> Path | None:
    if value == _STANDARD_OUTPUT or (not value and alone and kind is not Format.PARQUET):
        return None
    file = absolute(Path(value) if value else kind.default_file)
    if file.is_dir():
        raise UsageError(f"{file} is a directory; name a file in it")
    return file


def _check_standard_output(kind: Format) -> None:
    if kind is Format.PARQUET and screen.out.isatty():
        raise UsageError("Parquet is not for a terminal; give --parquet a file")
    # JUnit and Markdown can be spelt so that no line of theirs is a command to the runner, tables cannot.
    if kind in (Format.CSV, Format.PARQUET) and os.environ.get("GITHUB_ACTIONS") and not _goes_to_a_file():
        raise UsageError(
            f"--{kind} cannot be printed in a workflow of GitHub, which obeys lines that an agent may have written; "
            "give it a file"
        )


def _goes_to_a_file() -> bool:
    with suppress(OSError, ValueError):
        return stat.S_ISREG(os.fstat(screen.out.fileno()).st_mode)
    return False


@dataclass
class _Run:
    """An opened run and what the formats need of it, read when it is first needed."""

    results: Results
    summary: Summary
    rule: Rule
    marker: str
    clean: Callable[[str], str] = field(default_factory=lambda: screen.redaction.scrub)

    def write(self, kind: Format, file: BinaryIO) -> None:
        """Writes one format."""
        match kind:
            case Format.CSV:
                self._csv(file)
            case Format.JUNIT:
                self._junit(file)
            case Format.MARKDOWN:
                file.write(self.comment(marker=self.marker).encode("utf-8"))
            case Format.PARQUET:
                self._parquet(file)

    def comment(self, **options: Any) -> str:
        """The run in Markdown."""
        from stateval.reports.markdown import comment

        return comment(self.summary, self.noteworthy, self.rule, clean=self.clean, **options)

    @cached_property
    def noteworthy(self) -> dict[str, Noteworthy]:
        """The results to show, by model."""
        from stateval.reports.samples import noteworthy

        return {label: noteworthy(self.results, label, _MOST_SAMPLES) for label in self.results.labels}

    def _csv(self, file: BinaryIO) -> None:
        from stateval.reports.rows import columns, rows
        from stateval.reports.tables import write_csv

        metrics = self.rule.metrics
        write_csv(file, rows(self.results, metrics, clean=self.clean), columns(metrics))

    def _junit(self, file: BinaryIO) -> None:
        from stateval.reports.junit import write_junit

        write_junit(file, self.results, self.summary, self.rule, clean=self.clean)

    def _parquet(self, file: BinaryIO) -> None:
        from stateval.reports.rows import columns, rows
        from stateval.reports.tables import write_parquet

        metrics = self.rule.metrics
        write_parquet(file, rows(self.results, metrics, clean=self.clean), columns(metrics))


def _opened(path: Path, marker: str | None) -> _Run:
    from stateval.records.summary import Summary
    from stateval.reports.asked import knows_samples
    from stateval.reports.standing import Rule
    from stateval.results.opening import open_results
    from stateval.running.stored import summary_of

    results = open_results(path)
    if not knows_samples(results):
        screen.complain(f"note: {path} has no suite.json, so what the samples asked is not known")
    summary = Summary.from_json(screen.redaction.scrub_json(summary_of(results).to_json()))
    return _Run(results, summary, Rule.of(results, summary), marker if marker is not None else results.suite_name)


def _tell_github(run: _Run, suite: Path | None) -> None:
    """Appends to the summary of the step, and prints the annotations."""
    from stateval.reports.github import commands, remarks

    _append_to_step_summary(run)
    found = remarks(run.summary, run.noteworthy, run.rule)
    for line in commands(found, _locate(suite), clean=run.clean):
        screen.out.write(f"{line}\n")
    screen.out.flush()


def _append_to_step_summary(run: _Run) -> None:
    from stateval.reports.github import LONGEST_SUMMARY

    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        screen.complain("note: GITHUB_STEP_SUMMARY is not set, so there is no step whose summary could be written")
        return
    file = Path(name)
    try:
        left = LONGEST_SUMMARY - (file.stat().st_size if file.exists() else 0) - 1
        if left < _LEAST_ROOM:
            screen.complain(f"note: the summary of this step is full ({LONGEST_SUMMARY:,} bytes): nothing was added")
            return
        with file.open("ab") as stream:
            stream.write(b"\n" + run.comment(marker=None, limit=left).encode("utf-8"))
    except OSError as error:
        raise ResultsError(f"{file}: the step's summary cannot be written: {error.strerror}") from error


def _recorded(results: Results) -> Path | None:
    """The suite's file as the run has noted it, where it lies below the repository or the current directory."""
    from stateval.results.directory import ResultsDirectory
    from stateval.suite.places import repository_of

    noted = results.record.suite_file if isinstance(results, ResultsDirectory) else None
    here = absolute(Path())
    roots = [here / os.environ.get("GITHUB_WORKSPACE", ""), repository_of(here) or here, here]
    return next((root / noted for root in roots if (root / noted).is_file()), None) if noted else None


def _suite_file(given: Path | None) -> Path | None:
    from stateval.suite.places import suite_file

    return None if given is None else suite_file(absolute(given))


def _locate(suite: Path | None) -> Callable[[Field], Spot]:
    from stateval.reports.github import Spot
    from stateval.suite.places import lines_of

    name = None if suite is None else _in_repository(suite)
    if suite is None or name is None:
        return lambda field: Spot()
    line_of = lines_of(suite)
    return lambda field: Spot(name, line_of(field))


def _in_repository(path: Path) -> str | None:
    """The path as GitHub knows it, relative to the root of the repository; None for what lies outside."""
    from stateval.suite.places import repository_of

    workspace = os.environ.get("GITHUB_WORKSPACE")
    root_of_path = Path(workspace) if workspace else repository_of(path)
    for root in (root_of_path or Path.cwd(), Path.cwd()):
        with suppress(ValueError):
            return path.resolve().relative_to(root.resolve()).as_posix()
    return None
