"""What can be said of a gate before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from stateval.gates.spec import Aggregation, Gate, LogicalGate, NamedGate, SimpleGate, WeightedAverageGate, metric_names
from stateval.stats.comparison import Operator
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
    """What is probably not meant: `eq` on rates, percentages and fractions mixed up, a grader that hides a metric.

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
        for warning in (_exact_rate(condition), _out_of_range(condition, metric_keys))
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


def _out_of_range(condition: SimpleGate | WeightedAverageGate, metric_keys: Sequence[str]) -> str | None:
    if condition.aggregation is Aggregation.ACCURACY:
        if 0 < condition.value <= 1:
            return f"`accuracy` is a percentage, so {condition.value:g} means {condition.value:g} %; or use `pass_rate`"
        return f"`accuracy` lies between 0 and 100, not at {condition.value:g}" if condition.value > 100 else None
    resources = any(name in RESOURCES and name not in metric_keys for name in metric_names(condition))
    if condition.value > 1 and (condition.aggregation.counts_passes or not resources):
        return f"`{condition.aggregation}` lies between 0 and 1, not at {condition.value:g}"
    return None
