"""Tables of observations and gates on them, written in few words."""

from __future__ import annotations

from typing import Any

from stateval.gates import evaluate_gates, parse_gates
from stateval.records.result import ErrorCategory, Observation
from stateval.records.usage import Timing
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.table import ObservationTable

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def table_of(*rows: dict[str, Any], metrics: tuple[str, ...] = ("quality",)) -> ObservationTable:
    """Rows hold `scores` and whatever differs from a plain observation; samples are numbered."""
    table = ObservationTable(metrics)
    for number, row in enumerate(rows):
        table.add(Observation(**{"sample_id": str(number), "run": 1, "timing": Timing(total=2, target=1), **row}))
    return table


def scored(*scores: float | None) -> ObservationTable:
    """One observation a score; None is one that errored."""
    return table_of(
        *({"scores": {}, "error": ErrorCategory.TARGET} if s is None else {"scores": {"quality": s}} for s in scores)
    )


def decide(gate: Any, *tables: ObservationTable, **options: Any) -> GateVerdict:
    rules = {"on_error": "fail", "num_runs": 1, "finished": True, **options}
    (verdict,) = evaluate_gates(parse_gates(gate), {f"m{i}": table for i, table in enumerate(tables)}, **rules)
    return verdict


def simple(aggregation: str = "avg_score", op: str = "gte", value: float = 0.5, **fields: Any) -> dict[str, Any]:
    return {"aggregation": aggregation, "op": op, "value": value, **fields}


def runs_of(*scores_of_samples: list[float | None]) -> ObservationTable:
    """For each sample its score in each run, from run 1."""
    return table_of(
        *(
            {"sample_id": str(sample), "run": run, "scores": {} if score is None else {"quality": score}}
            for sample, scores in enumerate(scores_of_samples)
            for run, score in enumerate(scores, 1)
        )
    )


def certain(aggregation: str = "avg_score", op: str = "gte", value: float = 0.5, **fields: Any) -> dict[str, Any]:
    return simple(aggregation, op, value, **{"confidence": 0.95, **fields})


def passes(count: int, of: int, errors: int = 0) -> ObservationTable:
    return scored(*[1.0] * count, *[0.0] * (of - count - errors), *[None] * errors)
