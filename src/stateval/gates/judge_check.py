"""Gates that stand on a judge: whether that judge has been measured beside people, and how well it agrees with them.

A check only ever takes a verdict away: where it is void or the judge agrees too little, the condition is inconclusive,
whatever was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stateval.gates.baseline import compared_metric
from stateval.gates.rules import JudgeCheckKey, JudgeStanding, Rules
from stateval.gates.spec import BaselineGate, Gate, LogicalGate, NamedGate, SimpleGate, WeightedAverageGate, leaves
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.comparison import TOLERANCE

Leaf = SimpleGate | WeightedAverageGate | BaselineGate


def judge_check_uses(gates: Sequence[NamedGate], metric_keys: Sequence[str]) -> Iterator[JudgeCheckKey]:
    """The checks that these gates ask for, each once."""
    seen: set[JudgeCheckKey] = set()
    for gate in gates:
        for leaf in leaves(gate):
            if leaf.judge_check is not None:
                for metric in metrics_of(leaf, metric_keys):
                    key = JudgeCheckKey(leaf.judge_check, metric)
                    if key not in seen:
                        seen.add(key)
                        yield key


def unjudged_gates(
    gates: Sequence[NamedGate], metric_keys: Sequence[str], judged: Mapping[str, bool]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each place where `judge_check` is written and no model judges any metric below it, with those metrics.

    Args:
        judged: by metric, `reward` included, whether a model has a say in it.
    """
    for gate in gates:
        yield from _unjudged(gate.gate, metric_keys, judged)


def metrics_of(leaf: Leaf, metric_keys: Sequence[str]) -> tuple[str, ...]:
    """The metrics that a condition stands on; of a weighted average those with a weight."""
    match leaf:
        case WeightedAverageGate():
            return tuple(metric for metric, weight in leaf.weights.items() if weight)
        case BaselineGate():
            return (compared_metric(leaf, metric_keys),)
    return (leaf.metric_key if leaf.metric_key is not None else metric_keys[0],)


def checked(leaf: Leaf, verdict: GateVerdict, metric_keys: Sequence[str], rules: Rules) -> GateVerdict:
    """The verdict as far as the judges behind it have been measured."""
    if leaf.judge_check is None:
        return verdict
    keys = [JudgeCheckKey(leaf.judge_check, metric) for metric in metrics_of(leaf, metric_keys)]
    standings = [rules.judge_checks.get(key) or _UNREAD for key in keys]
    judged = [standing for standing in standings if standing.is_judged]
    if not judged:
        return verdict
    kappas = [standing.kappa for standing in judged if standing.kappa is not None]
    told = {"judge_check": leaf.judge_check, "judge_kappa": min(kappas, default=None)}
    reason = next(filter(None, (standing.void for standing in judged)), None) or _too_low(
        leaf, min(kappas, default=None)
    )
    if reason is not None:
        told |= {"outcome": Outcome.INCONCLUSIVE, "reason": reason, "samples_needed": None}
    return verdict.model_copy(update=told)


_UNREAD = JudgeStanding(is_judged=True, void="the check of the judge was not read")


def _too_low(leaf: Leaf, kappa: float | None) -> str | None:
    least = leaf.min_judge_kappa
    if kappa is None:
        return (
            "the check of the judge has no kappa: it takes labelled answers that people passed, and some they did not"
        )
    if least is None or kappa >= least - TOLERANCE:
        return None
    name = Path(leaf.judge_check or "").name
    return (
        f"the judge agrees too little with people: its kappa is {kappa:.3g} in {name}, and `min_judge_kappa` is "
        f"{least:g}; mend the rubric or take another model, and check it again"
    )


def _unjudged(
    gate: Gate, metric_keys: Sequence[str], judged: Mapping[str, bool]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    if gate.judge_check is not None:
        metrics = dict.fromkeys(metric for leaf in leaves(gate) for metric in metrics_of(leaf, metric_keys))
        if not any(judged.get(metric, False) for metric in metrics):
            yield gate.judge_check, tuple(metrics)
            return
    if isinstance(gate, LogicalGate):
        for condition in gate.conditions:
            yield from _unjudged(condition, metric_keys, judged)
