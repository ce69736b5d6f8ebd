"""The results of a run, as Python sees them: numbers at once, observations one at a time."""

from __future__ import annotations

import io
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from stateval.api import arguments
from stateval.errors import ExitStatus, MissingExtra, ResultsError
from stateval.records.encoding import dump_json
from stateval.records.result import Observation, SampleError, SampleResult
from stateval.records.sample import Sample
from stateval.records.summary import Ledger, MetricSummary, Summary
from stateval.records.verdict import Outcome
from stateval.reports.rows import columns, input_text, row
from stateval.reports.tables import csv_text, escaped
from stateval.results.samples import SampleLookup
from stateval.running.session import Session

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class EvalObservation:
    """One sample in one run with one model: what was asked, what came of it, and what it is worth."""

    model: str
    sample: Sample
    result: SampleResult

    @property
    def id(self) -> str | int:
        """The sample's id."""
        return self.result.sample_id

    @property
    def score(self) -> float | None:
        """The reward, or the only grade where no reward is composed; None where there is neither."""
        if self.result.reward is not None:
            return self.result.reward.score
        scores = list(self.scores.values())
        return scores[0] if len(scores) == 1 else None

    @property
    def scores(self) -> dict[str, float]:
        """The score of each metric that has one."""
        return {key: grade.score for key, grade in self.result.grades.items()}

    @property
    def rationales(self) -> dict[str, str | None]:
        """Why, by metric."""
        return {key: grade.rationale for key, grade in self.result.grades.items()}

    @property
    def rationale(self) -> str | None:
        """The rationale of the first metric."""
        return next(iter(self.rationales.values()), None)

    @property
    def submission(self) -> str | None:
        """What the first metric judged."""
        return next(iter(self.result.submissions.values()), None)

    @property
    def error(self) -> SampleError | None:
        """Why something is missing, or None."""
        return self.result.error


class EvalResults:
    """All that a run left behind, in memory only its summary.

    Iterating gives an `EvalObservation` at a time, by model, run, and the order in which samples ended.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._directory = session.directory

    @property
    def path(self) -> Path:
        """The results directory. A run with `save=False` has a temporary one that goes with this object."""
        return self._directory.path

    @property
    def summary(self) -> Summary:
        """Means, ledgers and verdicts, as in `summary.json`."""
        return self._session.outcome.summary

    @property
    def outcome(self) -> Outcome | None:
        """The gate's outcome; None without a gate."""
        return self._session.outcome.outcome

    @property
    def passed(self) -> bool:
        """Whether the gate passed, or there is none, and the run finished."""
        return self.exit_status is ExitStatus.PASSED

    @property
    def exit_status(self) -> ExitStatus:
        """What the command `stateval run` would return."""
        return self._session.outcome.exit_status

    @property
    def notes(self) -> tuple[str, ...]:
        """What became of an earlier start of this run, a sentence each; empty where there was none."""
        return self._session.outcome.notes

    @property
    def average_score(self) -> float | None:
        """The mean reward over all observations that count, those with an error as `on_error` says.

        This is the number that `EvalGate(min_score=...)` looks at. None where no reward is composed or nothing counts.
        """
        means = [(metric.mean_counted, metric.n_counted) for metric in self._rewards if metric.mean_counted is not None]
        n = sum(count for _, count in means)
        return sum(mean * count for mean, count in means) / n if n else None

    @cached_property
    def std_dev(self) -> float | None:
        """The standard deviation (n - 1) of the rewards of all scored observations; None for fewer than two."""
        rewards = [seen.reward for seen in self._observations() if seen.reward is not None]
        return statistics.stdev(rewards) if len(rewards) > 1 else None

    @property
    def error_count(self) -> int:
        """Observations with an error."""
        return sum(model.errors.total_errors for model in self.summary.models if model.errors)

    @property
    def ledger(self) -> Ledger:
        """Where every planned observation went, over all models: by the reward, else by the first metric."""
        ledgers = [_main_ledger(model.ledgers) for model in self.summary.models]
        errored: Counter[Any] = Counter()
        for ledger in ledgers:
            errored.update(ledger.errored)
        counts = {
            name: sum(getattr(ledger, name) for ledger in ledgers) for name in Ledger.model_fields if name != "errored"
        }
        return Ledger(**counts, errored=dict(errored))

    def __iter__(self) -> Iterator[EvalObservation]:
        samples = SampleLookup(self.path / "suite.json")
        for model in self._directory.record.models:
            for result in self._directory.results(model):
                yield EvalObservation(model, samples[str(result.sample_id)], result)

    def __len__(self) -> int:
        """The number of observations."""
        return sum(1 for _ in self._observations())

    def __repr__(self) -> str:
        return f"<EvalResults {self.summary.suite!r}: {len(self)} observations, average score {self.average_score}>"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat dict an observation, with the same columns as `stateval export --csv`.

        Its keys are id, model, run, input, submission, each grader's `<key>_score` and `<key>_rationale`, reward, error
        (with its category and type), tokens, cost, seconds, tags and cluster. Several graders each have a
        `<key>_submission` of their own beside `submission`, which is the first one's.
        """
        metrics = self._metrics()
        for seen in self:
            yield row(seen.model, seen.result, input_text(seen.sample), metrics)

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Writes `rows` as CSV in UTF-8 to the path, or returns the text. Half an emoji becomes an escape.

        Raises UsageError for what is no path, ResultsError where the file cannot be written.
        """
        if path is None:
            text = io.StringIO(newline="")
            self._write_csv(text)
            return text.getvalue()
        with (
            _written(path) as place,
            place.open("w", encoding="utf-8", newline="") as file,
        ):
            self._write_csv(file)
        return None

    def to_json(self, path: str | Path | None = None) -> str | None:
        """Writes all sample results as a JSON array to the path, or returns the text without one.

        Raises UsageError for what is no path, ResultsError where the file cannot be written.
        """
        if path is None:
            return b"".join(self._json_chunks()).decode("utf-8")
        with _written(path) as place, place.open("wb") as file:
            file.writelines(self._json_chunks())
        return None

    def to_dataframe(self) -> pandas.DataFrame:
        """`rows` as a pandas DataFrame. Half an emoji becomes an escape. Raises MissingExtra without pandas."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("Data frames", "pandas") from None
        return pandas.DataFrame([{key: _escaped(cell) for key, cell in cells.items()} for cells in self.rows()])

    @property
    def _rewards(self) -> list[MetricSummary]:
        return [model.metrics["reward"] for model in self.summary.models if "reward" in model.metrics]

    def _metrics(self) -> tuple[str, ...]:
        return self._directory.metric_keys

    def _observations(self) -> Iterator[Observation]:
        for model in self._directory.record.models:
            yield from self._directory.observations(model)

    def _write_csv(self, file: TextIO) -> None:
        file.writelines(csv_text(self.rows(), columns(self._metrics())))

    def _json_chunks(self) -> Iterator[bytes]:
        yield b"["
        for number, seen in enumerate(self):
            yield (b",\n" if number else b"\n") + dump_json({"model": seen.model, **seen.result.to_dict()})
        yield b"\n]\n"


def _main_ledger(ledgers: dict[str, Ledger]) -> Ledger:
    return ledgers.get("reward") or next(iter(ledgers.values()))


@contextmanager
def _written(path: Any) -> Iterator[Path]:
    place = arguments.path("path", path)
    try:
        yield place
    except OSError as error:
        raise ResultsError(f"{place}: cannot be written ({error.strerror or error})") from error


def _escaped(cell: Any) -> Any:
    return escaped(cell) if isinstance(cell, str) else cell
