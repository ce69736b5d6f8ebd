"""What can be said of a gate before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from stateval.gates.baseline import compared_metric
from stateval.gates.reach import pairs_of_equal_losses
from stateval.gates.spec import BaselineGate, Gate, NamedGate, SimpleGate, WeightedAverageGate, leaves, metric_names
from stateval.gates.words import Aggregation
from stateval.stats.comparison import TOLERANCE, Operator, holds
from stateval.stats.distributions import normal_quantile
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
    problems += [
        complaint
        for gate in gates
        for condition in leaves(gate)
        if isinstance(condition, BaselineGate)
        for complaint in _comparison_complaints(condition, known, metric_keys)
    ]
    problems += [
        "`min_judge_kappa` needs a `judge_check`: the file that `stateval judge check` writes"
        for gate in gates
        if any(leaf.min_judge_kappa is not None and leaf.judge_check is None for leaf in leaves(gate))
    ]
    names = [gate.name for gate in gates if gate.name is not None]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [*problems, *(f"two gates are named `{name}`; give each its own name" for name in twice)]


def gate_warnings(
    gate: Gate | NamedGate, metric_keys: Sequence[str] = (), *, samples: int | None = None, on_error: str = "fail"
) -> list[str]:
    """What is probably not meant: `eq` on rates, percentages and fractions mixed up, thresholds that decide nothing,
    a grader that hides a metric, more evidence asked for than there can be.

    Args:
        metric_keys: the graders' keys, so that a grader named like a built-in metric is noticed.
        samples: how many the dataset has, where that is known.
        on_error: the suite's.
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
            _beyond_reach(condition, samples),
        )
        if warning
    ]
    evidence = [
        _too_few(leaf, samples) or _unlimited_errors(leaf, on_error) or _never_shown(leaf, metric_keys, samples)
        for leaf in leaves(gate)
    ]
    return [*hidden, *warnings, *dict.fromkeys(warning for warning in evidence if warning)]


def _complaint(metric: str | None, known: Sequence[str], metric_keys: Sequence[str], has_reward: bool) -> str:
    if metric is None:
        return f"the gate needs a `metric_key`, for there are several graders: {', '.join(metric_keys)}"
    if metric == REWARD and not has_reward:
        return "the gate looks at `reward`, but with several graders and no `reward` none is composed; add a `reward`"
    close = get_close_matches(metric, known, n=1)
    guess = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(known)}"
    return f"the gate looks at the metric `{metric}`, which does not exist; {guess}"


def _comparison_complaints(gate: BaselineGate, known: Sequence[str], metric_keys: Sequence[str]) -> Iterator[str]:
    metric = compared_metric(gate, metric_keys)
    if gate.metric is None and metric not in known:
        yield f"`baseline` needs a `metric_key`, for there are several graders and no reward: {', '.join(metric_keys)}"
    if metric in RESOURCES and metric not in metric_keys and gate.baseline.max_drop is None:
        unit = {"latency": "seconds", "cost": "US dollars", "tokens": "tokens"}[metric]
        yield f"`baseline` of `{metric}` needs a `max_drop`: how many {unit} more are allowed on the average"


def _conditions(gate: Gate | NamedGate) -> Iterator[SimpleGate | WeightedAverageGate]:
    return (leaf for leaf in leaves(gate) if not isinstance(leaf, BaselineGate))


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


def _too_few(condition: SimpleGate | WeightedAverageGate | BaselineGate, samples: int | None) -> str | None:
    if condition.min_n is None or samples is None or condition.min_n <= samples:
        return None
    return f"`min_n: {condition.min_n}` is never reached, so the gate can never pass: the dataset has {samples} samples"


def _never_shown(
    condition: SimpleGate | WeightedAverageGate | BaselineGate, metric_keys: Sequence[str], samples: int | None
) -> str | None:
    """A comparison of so few samples that the loss of all of them would not fail it, so that it does not pass."""
    if not isinstance(condition, BaselineGate) or samples is None or condition.baseline.allowed >= 1:
        return None
    metric = compared_metric(condition, metric_keys)
    needed = pairs_of_equal_losses(1.0, condition.baseline.allowed, condition.baseline.confidence)
    if samples >= needed or (metric in RESOURCES and metric not in metric_keys):
        return None
    return (
        f"with {samples} samples `baseline` is inconclusive even where all of them lose everything; that takes "
        f"{needed} samples"
    )


def _unlimited_errors(condition: SimpleGate | WeightedAverageGate | BaselineGate, on_error: str) -> str | None:
    """With `confidence`, and for a comparison, there is a limit without a word."""
    certain = isinstance(condition, BaselineGate) or condition.confidence is not None
    if on_error != "exclude" or condition.max_error_rate is not None or certain:
        return None
    return "`on_error: exclude` leaves errors out however many there are; `max_error_rate` limits them"


def _beyond_reach(condition: SimpleGate | WeightedAverageGate, samples: int | None) -> str | None:
    """A rate that not even passes alone could show: Wilson's interval of n of n begins at n / (n + z^2)."""
    rates = condition.aggregation in {Aggregation.ACCURACY, Aggregation.PASS_RATE}
    scale = 100.0 if condition.aggregation is Aggregation.ACCURACY else 1.0
    share = condition.value / scale
    if condition.confidence is None or not rates or condition.op.wants_small or not 0 < share <= 1:
        return None
    said = f"`{condition.aggregation} {condition.op} {condition.value:g}` with `confidence: {condition.confidence:g}`"
    if share > 1 - TOLERANCE:
        return f"{said} can never pass: every interval has room below its greatest value"
    z = normal_quantile(0.5 + condition.confidence / 2)
    needed = math.ceil(z * z * share / (1 - share) - TOLERANCE)
    if samples is None or samples >= needed:
        return None
    return f"{said} can never pass with {samples} samples, even if all of them do; that takes {needed}"
