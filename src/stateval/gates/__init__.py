"""Gates: conditions on a run's metrics that pass, fail, or cannot be decided. They never pass for want of data."""

from __future__ import annotations

from stateval.gates.advice import check_gates, gate_warnings
from stateval.gates.baseline import BaselineUse, baseline_uses
from stateval.gates.evaluate import evaluate_gates, overall
from stateval.gates.judge_check import judge_check_uses, unjudged_gates
from stateval.gates.rules import BaselineKey, BaselineRun, Baselines, JudgeCheckKey, JudgeChecks, JudgeStanding
from stateval.gates.spec import (
    Baseline,
    BaselineGate,
    Gate,
    GateField,
    LogicalGate,
    NamedGate,
    SimpleGate,
    WeightedAverageGate,
    Where,
    metric_names,
    parse_gates,
    with_paths_below,
)
from stateval.gates.words import Aggregation

__all__ = [
    "Aggregation",
    "Baseline",
    "BaselineGate",
    "BaselineKey",
    "BaselineRun",
    "BaselineUse",
    "Baselines",
    "Gate",
    "GateField",
    "JudgeCheckKey",
    "JudgeChecks",
    "JudgeStanding",
    "LogicalGate",
    "NamedGate",
    "SimpleGate",
    "WeightedAverageGate",
    "Where",
    "baseline_uses",
    "check_gates",
    "evaluate_gates",
    "gate_warnings",
    "judge_check_uses",
    "metric_names",
    "overall",
    "parse_gates",
    "unjudged_gates",
    "with_paths_below",
]
