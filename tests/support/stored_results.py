"""Results directories made of records, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.result import ErrorCategory, SampleError, SampleResult
from stateval.records.sample import Sample
from stateval.records.usage import Timing
from stateval.records.verdict import GateVerdict
from stateval.results.directory import ResultsDirectory
from stateval.results.run_record import RunInputs
from stateval.running.stored import summary_of

LABEL = "default"


def result(sample_id: Any, scores: Mapping[str, float] | None = None, **fields: Any) -> SampleResult:
    """A result with these scores; `rationale`, `submission`, `reward` (a number) and `error` (a text) are for short."""
    scores = {"quality": 1.0} if scores is None else scores
    rationale, submission = fields.pop("rationale", None), fields.pop("submission", "")
    reward, message = fields.pop("reward", None), fields.pop("error", None)
    if message is not None:
        category = fields.pop("category", ErrorCategory.TARGET)
        kind = fields.pop("exception_type", "RuntimeError")
        timed_out = fields.pop("timed_out", None)
        fields["error"] = SampleError(category=category, exception_type=kind, message=message, timed_out=timed_out)
    return SampleResult(
        sample_id=sample_id,
        timing=Timing(total=0.5, target=0.25),
        grades={metric: GradeResult(score=score, rationale=rationale) for metric, score in scores.items()},
        submissions=dict.fromkeys(scores, submission),
        reward=None if reward is None else RewardOutput(score=reward),
        **fields,
    )


def stored(
    path: Path,
    results: Iterable[SampleResult] | Mapping[str, Iterable[SampleResult]],
    *,
    suite: str = "stored",
    metrics: Iterable[str] = ("quality",),
    with_reward: bool = False,
    planned: Iterable[Any] | None = None,
    num_runs: int = 1,
    gates: Iterable[GateVerdict] = (),
    finished: bool = True,
) -> ResultsDirectory:
    """A run of these results, of one model or by model; `planned` are the ids of its samples, by default those seen."""
    by_model = results if isinstance(results, Mapping) else {LABEL: results}
    kept = {label: list(of_model) for label, of_model in by_model.items()}
    ids = list(
        dict.fromkeys(one.sample_id for of_model in kept.values() for one in of_model) if planned is None else planned
    )
    inputs = RunInputs(graders=dict.fromkeys(metrics, "hash"), reward="hash" if with_reward else None)
    with ResultsDirectory.begin(
        path,
        suite=suite,
        identity="i",
        labels=list(kept),
        num_runs=num_runs,
        planned=len(ids),
        version="0",
        inputs=inputs,
    ) as directory:
        directory.write_suite({}, [Sample(id=key, input=f"asked of {key}") for key in ids])
        for label, of_model in kept.items():
            for run in range(1, num_runs + 1):
                with directory.journal(label, run) as journal:
                    for one in of_model:
                        if one.run == run:
                            journal.append(one)
        if finished:
            summary = summary_of(directory)
            reached = all(ledger.not_reached == 0 for model in summary.models for ledger in model.ledgers.values())
            directory.write_summary(summary.model_copy(update={"gates": list(gates), "finished": reached}))
            directory.finish()
    return directory
