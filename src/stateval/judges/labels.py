"""What people said of answers: a file of labels, read whole and checked before any judge is asked."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stateval.datasets.raw import Place, RawRow
from stateval.datasets.sources import DataFile
from stateval.errors import InputError, UsageError
from stateval.judges.judge import MetricJudge
from stateval.records.encoding import json_text
from stateval.records.source import Problem, Source

Labelled = tuple[str, str]
"""A metric and one of its criteria; "" is the whole."""

_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".parquet": "parquet"}
_FIELDS = ("id", "submission", "model", "run", "turn")
_WORDS = {
    **dict.fromkeys(("true", "yes", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "fail", "failed"), 0.0),
}
_MOST_PROBLEMS = 50


@dataclass(frozen=True, slots=True)
class Label:
    """What people said of one answer, from 0 to 1, by metric and criterion. `submission` None: it is a result's."""

    place: Place
    sample_id: str
    scores: Mapping[Labelled, float]
    submission: str | None = None
    model: str | None = None
    run: int | None = None
    turn: int | None = None

    @property
    def name(self) -> str:
        """The answer as people read it."""
        places = (("model", self.model), ("run", self.run), ("turn", self.turn))
        return ", ".join([self.sample_id, *(f"{name} {value}" for name, value in places if value is not None)])


@dataclass(frozen=True, slots=True)
class Labels:
    """A file of labels: its path as written, the SHA-256 of its content, its rows, and what is wrong with them."""

    path: str
    sha256: str
    rows: tuple[Label, ...]
    problems: tuple[Problem, ...] = ()


def read_labels(path: Path, judges: Sequence[MetricJudge]) -> Labels:
    """The labels for these judges, in a CSV, JSON Lines, JSON or Parquet file.

    Columns: `id`, a row of the dataset; `label`, what people say of the answer; `submission`, the answer; `model`,
    `run` (from 1) and `turn` (from 0) tell several answers to one row apart. A column `label:NAME`, or `NAME`, is of
    that criterion. Where there are several judges, `label:METRIC` and `label:METRIC:NAME` are theirs. A label is true
    or false, yes or no, pass or fail, or a number on the judge's scale; an empty one says nothing.

    What is wrong with rows is in `problems`, for `labelled_answers` to raise with what it finds. Raises DatasetError
    where the file cannot be read; UsageError for an ending that says no format.
    """
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"{path}: labels are read from files that end in {', '.join(sorted(_FORMATS))}")
    file = DataFile(path, form, written=str(path), shown=str(path))
    reading = _Reading(judges)
    for raw in file.rows():
        reading.add(raw)
    reading.finish(str(path))
    return Labels(str(path), file.provenance["sha256"], tuple(reading.rows), tuple(reading.problems))


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raises InputError where there are any, by line; of very many the first ones, and how many more there are."""
    if problems:
        problems = sorted(problems, key=lambda problem: problem.source.line or 0)
        more = len(problems) - _MOST_PROBLEMS
        rest = [Problem(f"and {more:,} more problem{'s' if more > 1 else ''}")] if more > 0 else []
        raise InputError([*problems[:_MOST_PROBLEMS], *rest])


@dataclass(slots=True)
class _Reading:
    """Rows as they come, and what is wrong with them."""

    judges: Sequence[MetricJudge]
    problems: list[Problem] = field(default_factory=list)
    rows: list[Label] = field(default_factory=list)
    columns: dict[str, Labelled | None] = field(default_factory=dict)
    numbers: dict[str, list[float]] = field(default_factory=dict)
    seen: dict[tuple[Any, ...], Place] = field(default_factory=dict)
    count: int = 0

    def add(self, raw: RawRow) -> None:
        self.count += 1
        if raw.problem is not None:
            self.problems.append(raw.problem)
            return
        row = {name: value for name, value in raw.values.items() if not _is_blank(value)}
        new = [name for name in raw.values if name not in self.columns]
        if new:
            self._take_columns(new, raw)
        label = Label(
            place=raw.place,
            sample_id=self._id(row, raw),
            scores=dict(self._scores(row, raw.place)),
            submission=self._text(row, "submission", raw.place),
            model=self._text(row, "model", raw.place),
            run=self._count(row, "run", 1, raw.place),
            turn=self._count(row, "turn", 0, raw.place),
        )
        if label.sample_id:
            self._refuse_twice(label)
        self.rows.append(label)

    def finish(self, path: str) -> None:
        whole = Source(path=path)
        if not self.count:
            self.problems.append(Problem("there are no rows in it", whole))
        elif not any(self.columns.values()) and not self.problems:
            self.problems.append(Problem("there is no column of labels", whole, f"name it {_listed(self._wanted())}"))
        for name, numbers in self.numbers.items():
            self._refuse_other_scale(name, numbers, whole)
        if not self.problems:
            self.problems += self._unlabelled(whole)

    def _unlabelled(self, whole: Source) -> Iterator[Problem]:
        labelled = {metric for row in self.rows for metric, _ in row.scores}
        for judge in self.judges:
            if judge.key not in labelled:
                yield Problem(f"no answer has a label for `{judge.key}`", whole, "fill in what people say of them")

    def _wanted(self) -> dict[str, Labelled]:
        """The columns that hold labels, by the names that they may have."""
        if len(self.judges) > 1:
            return {
                f"label:{judge.key}{f':{name}' if name else ''}": (judge.key, name)
                for judge in self.judges
                for name in ("", *judge.criteria)
            }
        (judge,) = self.judges
        named = {name: (judge.key, name) for name in judge.criteria if name not in (*_FIELDS, "label")}
        return {
            "label": (judge.key, ""),
            f"label:{judge.key}": (judge.key, ""),
            **named,
            **{f"label:{name}": (judge.key, name) for name in judge.criteria},
        }

    def _take_columns(self, names: Sequence[str], raw: RawRow) -> None:
        wanted, line = self._wanted(), 1 if raw.cells else raw.place.line
        source = Source(path=raw.place.path, line=line)
        for name in names:
            labelled = wanted.get(name)
            self.columns[name] = labelled
            twice = [other for other, taken in self.columns.items() if labelled and taken == labelled and other != name]
            if twice:
                self.problems.append(Problem(f"`{twice[0]}` and `{name}` are the same labels", source, "keep one"))
            elif labelled is None and name not in _FIELDS:
                self.problems += self._unknown_column(name, {*wanted, *_FIELDS}.difference(raw.values), source)
        if raw.cells and "id" not in raw.values:
            self.problems.append(Problem("there is no column `id`", source, f"the columns are {_listed(raw.values)}"))

    def _unknown_column(self, name: str, missing: set[str], source: Source) -> Iterator[Problem]:
        """A column that is meant to hold labels, as far as its name says, and is none; others are people's notes."""
        if len(self.judges) > 1 and (name == "label" or any(name in judge.criteria for judge in self.judges)):
            keys = _listed(judge.key for judge in self.judges)
            advice = f"name it {_listed(self._wanted())}, or choose one judge with `--metric`"
            yield Problem(f"`{name}` does not say which judge it is for, of {keys}", source, advice)
            return
        near = difflib.get_close_matches(name, sorted(missing), n=1, cutoff=0.8)
        if near or name.startswith("label:"):
            advice = f"did you mean `{near[0]}`?" if near else f"labels stand in {_listed(self._wanted())}"
            yield Problem(f"`{name}` is no column of labels", source, advice)

    def _id(self, row: Mapping[str, Any], raw: RawRow) -> str:
        given = row.get("id")
        if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)):
            return str(given)
        is_said_of_header = raw.cells and "id" not in raw.values
        if not is_said_of_header:
            self.problems.append(Problem("has no `id`", raw.place.source(), "write that of a row of the dataset"))
        return ""

    def _scores(self, row: Mapping[str, Any], place: Place) -> Iterator[tuple[Labelled, float]]:
        for name, labelled in self.columns.items():
            if labelled is None or name not in row:
                continue
            scale = self._scale(labelled[0])
            try:
                score, number = _score(row[name], scale)
            except ValueError as error:
                self.problems.append(Problem(str(error), place.source(name)))
                continue
            if number is not None:
                self.numbers.setdefault(name, []).append(number)
            yield labelled, score

    def _scale(self, metric: str) -> tuple[float, float]:
        return next(judge.grader.settings.scale for judge in self.judges if judge.key == metric)

    def _refuse_other_scale(self, name: str, numbers: Sequence[float], whole: Source) -> None:
        """Labels from 0 to 1 for a judge whose scale goes on would all be taken for bad scores."""
        low, high = self._scale((self.columns[name] or ("", ""))[0])
        if low <= 0 and high > 1 and 0 < max(numbers) <= 1:
            message = f"all labels in `{name}` are from 0 to 1, while the judge's scale is {_scale_text(low, high)}"
            self.problems.append(Problem(message, whole, "write `pass` and `fail`, or numbers on that scale"))

    def _text(self, row: Mapping[str, Any], name: str, place: Place) -> str | None:
        given = row.get(name)
        if given is None or isinstance(given, str):
            return given
        self.problems.append(Problem(f"must be text, not {json_text(given)}", place.source(name)))
        return None

    def _count(self, row: Mapping[str, Any], name: str, least: int, place: Place) -> int | None:
        given = row.get(name)
        if given is None:
            return None
        text = str(given).strip()
        if not isinstance(given, bool) and text.isascii() and text.isdigit() and int(text) >= least:
            return int(text)
        self.problems.append(Problem(f"must be a whole number from {least} on, not {given!r}", place.source(name)))
        return None

    def _refuse_twice(self, label: Label) -> None:
        key = (label.sample_id, label.model, label.run, label.turn)
        if key in self.seen:
            message = f"{label.name} is labelled already at {self.seen[key].source()}"
            advice = "of several answers to one row say in columns `model` or `run` which is which"
            self.problems.append(Problem(message, label.place.source("id"), advice))
        self.seen.setdefault(key, label.place)


def _score(given: Any, scale: tuple[float, float]) -> tuple[float, float | None]:
    """A label from 0 to 1, and the number that was written. Raises ValueError."""
    low, high = scale
    text = json_text(given).strip()
    word = _WORDS.get(text.lower())
    if word is not None:
        return word, None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise ValueError(
            f"{text!r} is no label; write true or false, yes or no, pass or fail, or a number from "
            f"{low:g} to {high:g}, or leave it empty"
        )
    return (number - low) / (high - low), number


def _scale_text(low: float, high: float) -> str:
    return f"{low:g} to {high:g}"


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
