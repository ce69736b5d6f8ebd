"""Gates: conditions on a run's metrics that pass, fail, or cannot be decided. They never pass for want of data."""

from __future__ import annotations

from stateval.gates.advice import check_gates, gate_warnings
from stateval.gates.evaluate import evaluate_gates, overall
from stateval.gates.spec import (
    NOT_YET,
    Aggregation,
    Gate,
    GateField,
    LogicalGate,
    NamedGate,
    SimpleGate,
    WeightedAverageGate,
    Where,
    metric_names,
    parse_gates,
)

__all__ = [
    "NOT_YET",
    "Aggregation",
    "Gate",
    "GateField",
    "LogicalGate",
    "NamedGate",
    "SimpleGate",
    "WeightedAverageGate",
    "Where",
    "check_gates",
    "evaluate_gates",
    "gate_warnings",
    "metric_names",
    "overall",
    "parse_gates",
]
