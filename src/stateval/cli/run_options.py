"""The options of `stateval run`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Display(StrEnum):
    """How a run shows its progress."""

    RICH = "rich"
    SIMPLE = "simple"
    JSON = "json"
    NONE = "none"


Suite = Annotated[Path, typer.Argument(help="The suite file, a directory with a suite.yaml, or a Python suite.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where results go.", show_default="below .stateval/runs")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and the verdict.")]
Displayed = Annotated[
    Display | None, typer.Option(help="How progress is shown.", show_default="rich on a terminal, else simple")
]
MaxConcurrent = Annotated[int | None, typer.Option(help="Samples in flight.")]
MaxSamples = Annotated[int | None, typer.Option(help="Only the first N samples.")]
Tag = Annotated[list[str] | None, typer.Option(help="Only samples with one of these tags; may be repeated.")]
NumRuns = Annotated[int | None, typer.Option(help="Repeats of the whole suite.")]
ModelHandle = Annotated[list[str] | None, typer.Option(help="A model to run; may be repeated.")]
BaseUrl = Annotated[str | None, typer.Option(help="The endpoint of the target's model, or the Letta server.")]
ApiKey = Annotated[str | None, typer.Option(help="The key for it; better an environment variable.")]
ProjectId = Annotated[str | None, typer.Option(help="The project on the Letta server.")]
Backend = Annotated[str | None, typer.Option(help="Where Letta agents live: `server`.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Any field of the suite, as `field=value`; may be repeated.")
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume", metavar="[DIR]", help="Go on with the run in DIR, or with the suite's latest unfinished one."
    ),
]
RetryErrors = Annotated[
    bool, typer.Option("--retry-errors", help="Run the samples that errored again, also those of a finished run.")
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Begin anew; an unfinished run in the directory goes to its history.")
]
Cached = Annotated[
    Path | None,
    typer.Option("--cached", "-c", help="Grade the conversations of these results anew; the agent is not run."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ask judges anew: no kept answer is used, and none is kept.")]
NoSave = Annotated[bool, typer.Option("--no-save", help="Keep no results.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")]
