"""What can be said of a gate before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from stateval.gates.spec import Aggregation, Gate, LogicalGate, NamedGate, SimpleGate, WeightedAverageGate, metric_names
from stateval.stats.comparison import Operator, holds
from stateval.stats.table import RESOURCES, REWARD


def check_gates(gates: Sequence[NamedGate], metric_keys: Sequence[str], *, has_reward: bool) -> list[str]:
    """What is wrong with the metrics that the gates name, one sentence each; empty where nothing is.

    Args:
        metric_keys: the graders' keys.
        has_reward: whether a reward is composed.
    """
    known = [*metric_keys, *([REWARD] if has_reward else []), *RESOURCES]
    problems = [
        _complaint(metric, known, metric_keys, has_reward)
        for gate in gates
        for metric in metric_names(gate)
        if metric not in known and not (metric is None and len(metric_keys) == 1)
    ]
    names = [gate.name for gate in gates if gate.name is not None]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [*problems, *(f"two gates are named `{name}`; give each its own name" for name in twice)]


def gate_warnings(gate: Gate | NamedGate, metric_keys: Sequence[str] = ()) -> list[str]:
    """What is probably not meant: `eq` on rates, percentages and fractions mixed up, thresholds that decide nothing,
    a grader that hides a metric.

    Args:
        metric_keys: the graders' keys, so that a grader named like a built-in metric is noticed.
    """
    hidden = [
        f"metric `{name}` is the grader of that name, not the built-in metric"
        for name in metric_names(gate)
        if name in metric_keys and (name == REWARD or name in RESOURCES)
    ]
    warnings = [
        warning
        for condition in _conditions(gate)
        for warning in (
            _exact_rate(condition),
            _misread_percentage(condition),
            _foregone(condition, metric_keys),
            _passes_foregone(condition, metric_keys),
        )
        if warning
    ]
    return [*hidden, *warnings]


def _complaint(metric: str | None, known: Sequence[str], metric_keys: Sequence[str], has_reward: bool) -> str:
    if metric is None:
        return f"the gate needs a `metric_key`, for there are several graders: {', '.join(metric_keys)}"
    if metric == REWARD and not has_reward:
        return "the gate looks at `reward`, but with several graders and no `reward` none is composed; add a `reward`"
    close = get_close_matches(metric, known, n=1)
    guess = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(known)}"
    return f"the gate looks at the metric `{metric}`, which does not exist; {guess}"


def _conditions(gate: Gate | NamedGate) -> Iterator[SimpleGate | WeightedAverageGate]:
    match gate:
        case NamedGate():
            yield from _conditions(gate.gate)
        case LogicalGate():
            for condition in gate.conditions:
                yield from _conditions(condition)
        case _:
            yield gate


def _exact_rate(condition: SimpleGate | WeightedAverageGate) -> str | None:
    if condition.op is not Operator.EQ or not condition.aggregation.counts_passes:
        return None
    return (
        f"`{condition.aggregation} eq {condition.value:g}` asks for exactly that value: 2 of 3 is not 66.7 %; "
        "use gte or lte, or two conditions around the value"
    )


def _misread_percentage(condition: SimpleGate | WeightedAverageGate) -> str | None:
    if condition.aggregation is Aggregation.ACCURACY and 0 < condition.value <= 1:
        return f"`accuracy` is a percentage, so {condition.value:g} means {condition.value:g} %; or use `pass_rate`"
    return None


def _foregone(condition: SimpleGate | WeightedAverageGate, metric_keys: Sequence[str]) -> str | None:
    """What every possible value of the metric decides alike."""
    resources = any(name in RESOURCES and name not in metric_keys for name in metric_names(condition))
    greatest = math.inf if resources else 1.0
    if condition.aggregation.counts_passes:
        greatest = 100.0 if condition.aggregation is Aggregation.ACCURACY else 1.0
    never = _never(condition.op, condition.value, greatest)
    if never is None:
        return None
    lies = "is never below 0" if math.isinf(greatest) else f"lies between 0 and {greatest:g}"
    said = f"`{condition.aggregation} {condition.op} {condition.value:g}`"
    return f"{said} can never {never}: `{condition.aggregation}` {lies}"


def _passes_foregone(condition: SimpleGate | WeightedAverageGate, metric_keys: Sequence[str]) -> str | None:
    """The same of the rule by which a single observation passes."""
    resources = any(name in RESOURCES and name not in metric_keys for name in metric_names(condition))
    if condition.pass_threshold is None or not condition.aggregation.counts_passes:
        return None
    rule = condition.pass_op if isinstance(condition, SimpleGate) else Operator.GTE
    never = _never(rule, condition.pass_threshold, math.inf if resources else 1.0)
    if never is None:
        return None
    return f"with `pass_threshold: {condition.pass_threshold:g}` (`{rule}`) no observation can ever {never}"


def _never(op: Operator, threshold: float, greatest: float) -> str | None:
    """What a number from 0 to `greatest` can never do beside this threshold: "pass", "fail", or neither (None)."""
    least_holds, greatest_holds = holds(0.0, op, threshold), holds(greatest, op, threshold)
    if op is Operator.EQ:
        return None if least_holds or greatest_holds or 0 < threshold < greatest else "pass"
    return {(True, True): "fail", (False, False): "pass"}.get((least_holds, greatest_holds))
