"""What stands beside the results of a run: whose they are, and what they stand on."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import Field

from stateval.errors import ResultsError
from stateval.records.encoding import load_json
from stateval.records.record import Record

RUN_FILE = Path(".stateval") / "run.json"


class RunInputs(Record):
    """Hashes of what a run stands on: equal hashes mean the same thing, in any two runs.

    `dataset` is that of the rows as they are selected; `targets` are by the model's label, `graders` by metric key,
    each with its extractor. `reward` is None where no reward is composed.
    """

    dataset: str | None = None
    targets: dict[str, str] = Field(default_factory=dict)
    graders: dict[str, str] = Field(default_factory=dict)
    reward: str | None = None


NO_INPUTS = RunInputs()


class RunRecord(Record):
    """`.stateval/run.json`: whose run this is. `identity` is a hash of the suite's name and targets.

    `suite_file` is relative to the root of its repository, or to where the command ran. `settings` are hashes of the
    suite's fields, so that it can be said which of them changed. `cached` says whose conversations are graded anew; a
    path in the directory itself is relative to it. `on_error` and `pass_threshold` say how observations count. `mixed`:
    some lines may stand on other inputs than `inputs`, or be superseded by later ones; so it is while a resumed run
    brings what changed up to date. `judges` are, by metric, the names that the judges' endpoints answered
    under in any grade of the run.
    """

    suite: str
    identity: str
    models: dict[str, str]
    num_runs: int = 1
    planned: int = 0
    inputs: RunInputs = NO_INPUTS
    suite_file: str | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    cached: str | None = None
    on_error: str = "fail"
    pass_threshold: float = 1.0
    stateval: str = ""
    mixed: bool = False
    judges: dict[str, list[str]] = Field(default_factory=dict)
    started: datetime
    resumed: list[datetime] = Field(default_factory=list)
    finished: datetime | None = None
    stopped_because: str | None = None


def read_run_record(path: Path) -> RunRecord | None:
    """The record of the run in this directory; None where there is none. Raises ResultsError for a damaged one."""
    file = path / RUN_FILE
    if not file.exists():
        return None
    try:
        return RunRecord.model_validate(load_json(file.read_bytes()))
    except ValueError as error:
        raise ResultsError(
            f"{file} is damaged; delete {path / '.stateval'}: the results beside it say themselves what is finished"
        ) from error
