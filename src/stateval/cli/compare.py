"""`stateval compare A B [C...]`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stateval.cli.files import new_file, standard_output
from stateval.cli.run import absolute
from stateval.cli.screen import screen
from stateval.errors import ExitStatus, ResultsError, UsageError

if TYPE_CHECKING:
    from stateval.comparison.compared import Comparison

_LISTED = 10


class Format(StrEnum):
    """What a comparison is written as."""

    TERMINAL = "terminal"
    JSON = "json"
    MARKDOWN = "markdown"


class FailOn(StrEnum):
    """What makes the command exit with 1."""

    REGRESSION = "regression"
    NEWLY_FAILING = "newly-failing"


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="A B...", help="Results: directories or `.jsonl` files, of letta-evals too."),
    ],
    format_: Annotated[
        Format | None, typer.Option("--format", "-f", help="What is written. [default: terminal; by FILE's ending]")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The same as --format markdown.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to this file.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Only this metric; may be repeated. [default: all that both have]")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals, between 0 and 1.")] = 0.95,
    limit: Annotated[
        int | None, typer.Option(min=0, help=f"Samples in each list. [default: {_LISTED}; all in JSON]")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare although rows or graders differ; the result is marked.")
    ] = False,
    fail_on: Annotated[
        list[FailOn] | None, typer.Option(help="Exit with 1 where there is any; may be repeated.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")] = False,
) -> None:
    """Compare runs, sample by sample, with the first one; or the models of one run, with its first.

    `--fail-on regression`: a metric is worse, by its interval and its p-value (the reward, or those that `--metric`
    names). `--fail-on newly-failing`: a sample that passed fails now.

    Exit status: 0 compared, 1 what `--fail-on` names was found, 2 wrong input or runs that do not compare, and with
    `--fail-on` 3 no interval can be had, 4 a run did not finish.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"`--confidence {confidence:g}`: a confidence lies between 0 and 1, such as 0.95")
    wanted = _format(format_, json=json, markdown=markdown, output=output)
    if limit is None and wanted is not Format.JSON:
        limit = _LISTED
    comparison = _compared(runs, metric or (), confidence, limit, force=force)
    _write(comparison, wanted, None if output is None else absolute(output))
    raise typer.Exit(_status(comparison, set(fail_on or ()), chosen=bool(metric)))


def _format(asked: Format | None, *, json: bool, markdown: bool, output: Path | None) -> Format:
    said = [asked] if asked else []
    said += [Format.JSON] * json + [Format.MARKDOWN] * markdown
    if len(set(said)) > 1:
        raise UsageError(f"one format at a time: {', '.join(f'`{name}`' for name in said)} are asked for")
    by_ending = {".json": Format.JSON, ".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN}
    return said[0] if said else by_ending.get(output.suffix.lower() if output else "", Format.TERMINAL)


def _compared(
    paths: Sequence[Path], metrics: Sequence[str], confidence: float, limit: int | None, *, force: bool
) -> Comparison:
    """What is wrong with the results is wrong input here."""
    from stateval.comparison.compare import Wish, compare_runs
    from stateval.results.opening import open_results

    wish = Wish(metrics=tuple(metrics), confidence=confidence, force=force, limit=limit)
    try:
        return compare_runs([open_results(_as_given(path)) for path in paths], wish)
    except ResultsError as error:
        raise UsageError(str(error)) from error


def _as_given(path: Path) -> Path:
    """The path as reports are to show it; `~` is the home directory."""
    return absolute(path) if path.parts and path.parts[0].startswith("~") else path


def _write(comparison: Comparison, wanted: Format, file: Path | None) -> None:
    if wanted is Format.TERMINAL and file is None:
        _print(comparison)
        return
    with standard_output() if file is None else new_file(file) as stream:
        stream.write(_text(comparison, wanted))
    if file is not None:
        _print_verdicts(comparison)
        screen.say(f"wrote {file}")


def _text(comparison: Comparison, wanted: Format) -> bytes:
    if wanted is Format.JSON:
        from stateval.records.encoding import dump_json

        return screen.redaction.scrub_json(dump_json(comparison.to_dict(), indent=True)) + b"\n"
    if wanted is Format.MARKDOWN:
        from stateval.reports.comparison_markdown import comparison_markdown

        return comparison_markdown(comparison, clean=screen.redaction.scrub).encode("utf-8")
    from stateval.reports.comparison import comparison_report
    from stateval.reports.terminal import plain_text

    return plain_text(comparison_report(comparison, clean=screen.redaction.scrub), width=1_000).encode("utf-8")


def _print(comparison: Comparison) -> None:
    from stateval.reports.comparison import comparison_report
    from stateval.reports.terminal import report_console

    console = report_console(screen.out)
    console.print(comparison_report(comparison, encoding=console.encoding, clean=screen.redaction.scrub))


def _print_verdicts(comparison: Comparison) -> None:
    """What a log needs to say where the whole goes to a file."""
    from stateval.reports.comparison import verdict_sentence

    for mark in comparison.marks:
        screen.say(screen.one_line(mark))
    for model in comparison.models:
        if len(comparison.models) > 1:
            screen.say(screen.one_line(f"{model.other.path} ({model.other.model}):"))
        for metric in model.metrics:
            screen.say(screen.one_line(verdict_sentence(metric)))


def _status(comparison: Comparison, fail_on: set[FailOn], *, chosen: bool) -> ExitStatus:
    if not fail_on:
        return ExitStatus.PASSED
    if any(not run.finished for model in comparison.models for run in (model.one, model.other)):
        screen.complain("error: a run did not finish, so what is missing may have failed: finish it first")
        return ExitStatus.UNFINISHED
    regression = FailOn.REGRESSION in fail_on
    if regression and comparison.regressions(chosen=chosen):
        return ExitStatus.GATE_FAILED
    if FailOn.NEWLY_FAILING in fail_on and comparison.n_newly_failing:
        return ExitStatus.GATE_FAILED
    if regression and comparison.undecided(chosen=chosen):
        screen.complain("error: too few samples for an interval, so a regression can neither be seen nor ruled out")
        return ExitStatus.INCONCLUSIVE
    return ExitStatus.PASSED
