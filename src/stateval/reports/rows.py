"""One flat row an observation: what tables of results are made of, in CSV, Parquet and data frames."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from stateval.records.encoding import json_text
from stateval.records.result import SampleResult
from stateval.records.sample import Sample
from stateval.reports.asked import kept_aside, known_samples
from stateval.results.reading import Results

Row = dict[str, Any]


class Kind(StrEnum):
    """What a column holds: one type for all its cells, each of which may be empty."""

    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    COUNT = "count"
    NAMES = "names"


def columns(metrics: Sequence[str]) -> dict[str, Kind]:
    """The columns in order. `submission` is the first metric's; several metrics each have one of their own as well.

    A metric's columns end in `_score`, `_rationale` and `_submission`, which no other column does.
    """
    found = {"id": Kind.NAME, "model": Kind.NAME, "run": Kind.COUNT, "input": Kind.TEXT, "submission": Kind.TEXT}
    for metric in metrics:
        found |= {f"{metric}_score": Kind.NUMBER, f"{metric}_rationale": Kind.TEXT}
        if len(metrics) > 1:
            found[f"{metric}_submission"] = Kind.TEXT
    found |= {"reward": Kind.NUMBER, "error": Kind.TEXT, "error_category": Kind.NAME, "error_type": Kind.NAME}
    found |= {"prompt_tokens": Kind.COUNT, "completion_tokens": Kind.COUNT, "cost": Kind.NUMBER}
    return found | {
        "seconds": Kind.NUMBER,
        "target_seconds": Kind.NUMBER,
        "tags": Kind.NAMES,
        "cluster": Kind.NAME,
    }


def row(model: str, result: SampleResult, asked: str | None, metrics: Sequence[str]) -> Row:
    """The row of one result; `asked` is its sample's input as `input_text` gives it. What is not known is None."""
    cells: Row = {
        "id": result.sample_id,
        "model": model,
        "run": result.run,
        "input": asked,
        "submission": next(iter(result.submissions.values()), None),
    }
    for metric in metrics:
        grade = result.grades.get(metric)
        cells[f"{metric}_score"] = grade.score if grade else None
        cells[f"{metric}_rationale"] = grade.rationale if grade else None
        if len(metrics) > 1:
            cells[f"{metric}_submission"] = result.submissions.get(metric)
    error, usage = result.error, result.usage
    return cells | {
        "reward": result.reward.score if result.reward else None,
        "error": f"{error.category}: {error.message}" if error else None,
        "error_category": str(error.category) if error else None,
        "error_type": error.exception_type if error else None,
        "prompt_tokens": usage.prompt_tokens if usage else None,
        "completion_tokens": usage.completion_tokens if usage else None,
        "cost": usage.cost if usage else None,
        "seconds": _known(result.timing.total),
        "target_seconds": _known(result.timing.target),
        "tags": list(result.tags or ()),
        "cluster": result.cluster,
    }


def rows(results: Results, metrics: Sequence[str], *, clean: Callable[[str], str] = str) -> Iterator[Row]:
    """The rows of a run by model, run, and the order in which samples ended; one result is in memory at a time.

    `clean` is called on every text that an agent, a grader or a dataset may have written. `input` is None where the
    run was stopped before it had written its samples.
    """
    texts = [name for name, kind in columns(metrics).items() if kind is Kind.TEXT]
    with kept_aside((sample.key, input_text(sample)) for sample in known_samples(results)) as asked:
        for label in results.labels:
            for result in results.results(label):
                cells = row(label, result, asked(str(result.sample_id)), metrics)
                yield cells | {name: clean(cells[name]) for name in texts if cells[name] is not None}


def input_text(sample: Sample) -> str:
    """What the agent is told: the text of a single message, JSON for everything else."""
    return sample.input if isinstance(sample.input, str) else json_text(sample.to_dict()["input"])


def _known(seconds: float) -> float | None:
    """Not every tool takes the time of what it does."""
    return None if math.isnan(seconds) else seconds
