"""Conditions on what was measured: one metric, or the weighted mean of several, against a threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stateval.errors import UsageError
from stateval.gates.intervals import Question, estimate, more_samples, side
from stateval.gates.measure import PERCENTILES, Errored, Measurement, PassRule, measure
from stateval.gates.rules import Rules
from stateval.gates.spec import BaselineGate, SimpleGate, WeightedAverageGate
from stateval.gates.words import USUAL_ERROR_RATE
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.comparison import holds
from stateval.stats.estimates import Estimate
from stateval.stats.planning import samples_for_percentile
from stateval.stats.table import ObservationTable, Selection

Condition = SimpleGate | WeightedAverageGate


@dataclass(frozen=True, slots=True)
class Decision:
    """An outcome, why it is not that of the number alone, and about how many more samples would decide."""

    outcome: Outcome
    reason: str | None = None
    samples_needed: int | None = None


def simple(gate: SimpleGate, selection: Selection, rules: Rules) -> GateVerdict:
    """The verdict on one metric."""
    metric = gate.metric_key if gate.metric_key is not None else only_metric(selection.table)
    reading = _read(gate, {metric: 1.0}, selection, rules)
    found = reading.parts[metric]
    return _verdict(
        gate, reading, _decide(gate, reading, selection, rules), f"{_term(gate, metric, rules)}"
    ).model_copy(update={"metric": metric, "n_errored": found.n_errored, "counted": found.counted})


def weighted_average(gate: WeightedAverageGate, selection: Selection, rules: Rules) -> GateVerdict:
    """The verdict on the weighted mean of several metrics, with one child a metric."""
    sum_of_weights = math.fsum(gate.weights.values())
    shares = {metric: weight / sum_of_weights for metric, weight in gate.weights.items()}
    reading = _read(gate, shares, selection, rules)
    decision = _decide(gate, reading, selection, rules)
    terms = " + ".join(f"{share:.4g} {_term(gate, metric, rules)}" for metric, share in shares.items())
    children = [_part(gate, metric, found, decision.outcome, rules) for metric, found in reading.parts.items()]
    return _verdict(gate, reading, decision, terms).model_copy(update={"children": children})


def only_metric(table: ObservationTable) -> str:
    """The only grader's key. Raises UsageError where there are several."""
    if len(table.metric_keys) != 1:
        raise UsageError(
            f"the gate needs a `metric_key`, for there are several graders: {', '.join(table.metric_keys)}"
        )
    return table.metric_keys[0]


def want_of_data(
    gate: Condition | BaselineGate, *, n: int, what: str, error_rate: float, certain: bool, rules: Rules
) -> str | None:
    """Why nothing can be decided, whatever was measured: an unfinished run, too few samples, too many errors.

    Args:
        n: how many there are of `what` (samples, or pairs of them); repeats do not count.
        certain: whether the gate has a `confidence`, so that errors are limited without a word.
    """
    most = gate.max_error_rate
    if most is None and certain:
        most = USUAL_ERROR_RATE
    if not rules.finished:
        return "the run did not finish"
    if gate.min_n is not None and n < gate.min_n:
        return f"only {n} {what}; `min_n` is {gate.min_n}"
    if most is not None and error_rate > most + 1e-12:
        return (
            f"{100 * error_rate:.3g} % of the observations errored; at most {100 * most:.3g} % may (`max_error_rate`)"
        )
    return None


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was measured: the number, or the reason why there is none, and the numbers of each metric."""

    question: Question | None
    shares: Mapping[str, float]
    parts: Mapping[str, Measurement]
    value: float | None
    reason: str | None
    estimate: Estimate | None = None

    @property
    def weighty(self) -> list[Measurement]:
        return [self.parts[metric] for metric, share in self.shares.items() if share]

    @property
    def n(self) -> int:
        return min(part.n for part in self.weighty)

    @property
    def n_samples(self) -> int:
        return min(part.n_samples for part in self.weighty)

    @property
    def error_rate(self) -> float:
        return max(part.error_rate for part in self.weighty)


def _read(gate: Condition, shares: Mapping[str, float], selection: Selection, rules: Rules) -> _Reading:
    parts = {metric: _measured(gate, metric, selection, rules) for metric in shares}
    unknown = [metric for metric, share in shares.items() if share and parts[metric].value is None]
    question = None
    if gate.confidence is not None:
        weighty = {metric: share for metric, share in shares.items() if share}
        question = Question(weighty, gate.aggregation, rules.pass_rule(gate), rules.num_runs, gate.confidence)
    if unknown:
        reason = parts[unknown[0]].reason if len(shares) == 1 else f"not known: {', '.join(unknown)}"
        return _Reading(question, shares, parts, None, reason)
    found = estimate(selection, question, rules.errored(gate.op)) if question is not None else None
    if found is not None and question is not None:
        value = found.value * question.scale
    else:
        value = math.fsum(share * (parts[metric].value or 0.0) for metric, share in shares.items())
    return _Reading(question, shares, parts, value, None, found)


def _measured(gate: Condition, metric: str, selection: Selection, rules: Rules) -> Measurement:
    if not selection.table.has(metric):
        raise UsageError(f"the gate looks at the metric `{metric}`, which does not exist")
    return measure(
        selection,
        metric,
        gate.aggregation,
        pass_rule=rules.pass_rule(gate),
        errored=rules.errored(gate.op),
        k=rules.num_runs,
    )


def _decide(gate: Condition, reading: _Reading, selection: Selection, rules: Rules) -> Decision:
    if reading.value is None:
        return Decision(Outcome.INCONCLUSIVE, reading.reason)
    certain = reading.question is not None
    lacking = want_of_data(
        gate, n=reading.n_samples, what="samples", error_rate=reading.error_rate, certain=certain, rules=rules
    )
    if lacking is not None:
        return Decision(Outcome.INCONCLUSIVE, lacking)
    if reading.question is None:
        return Decision(Outcome.PASS if holds(reading.value, gate.op, gate.value) else Outcome.FAIL)
    decision = _by_interval(gate, reading.question, reading.estimate, reading.n_samples)
    doubt = _doubt_of_errors(gate, reading, decision, selection, rules)
    return decision if doubt is None else Decision(Outcome.INCONCLUSIVE, doubt)


def _by_interval(gate: Condition, question: Question, found: Estimate | None, n_samples: int) -> Decision:
    if found is None:
        return Decision(Outcome.INCONCLUSIVE, _no_interval(gate, question, n_samples))
    threshold = gate.value / question.scale
    outcome = side(found, gate.op, threshold)
    if outcome is not Outcome.INCONCLUSIVE:
        return Decision(outcome)
    needed = more_samples(found, threshold, n_samples)
    stays = f"if {_named(gate)} stays at {found.value * question.scale:.4g}{_unit(gate)}"
    if needed is None:
        return Decision(outcome, f"no number of samples would decide, {stays}")
    return Decision(outcome, f"about {needed:,} more sample{'s' * (needed > 1)} would decide, {stays}", needed)


def _no_interval(gate: Condition, question: Question, n_samples: int) -> str:
    percent = PERCENTILES.get(gate.aggregation)
    least = 2 if percent is None else samples_for_percentile(percent, question.confidence)
    if least is not None and n_samples < least:
        few = f"{n_samples} sample{'s are' if n_samples > 1 else ' is'} too few"
        return f"{few} for an interval of `{gate.aggregation}`, which takes {least} at {question.confidence:g}"
    return f"there is no interval of `{gate.aggregation}`: too few of the samples are independent (`cluster`, repeats)"


def _doubt_of_errors(
    gate: Condition, reading: _Reading, decision: Decision, selection: Selection, rules: Rules
) -> str | None:
    """What to say where errors counted and errors left out lead to different verdicts; None where they do not."""
    question = reading.question
    n_errored = sum(part.n_errored for part in reading.weighty)
    if question is None or not n_errored or any(map(selection.table.is_resource, question.shares)):
        return None
    own = rules.errored(gate.op)
    other = estimate(selection, question, own.otherwise)
    other_decision = _by_interval(gate, question, other, reading.n_samples)
    if other_decision.outcome is decision.outcome:
        return None
    by_way = {own: (reading.estimate, decision), own.otherwise: (other, other_decision)}
    counted = next(way for way in by_way if not way.exclude)
    said = [
        f"{words}: {_number(by_way[way][0], question)} ({by_way[way][1].outcome})"
        for way, words in ((counted, _as_worst(counted, gate)), (counted.otherwise, "left out"))
    ]
    return f"the verdict hangs on the {n_errored} errored observations: {', '.join(said)}"


def _as_worst(errored: Errored, gate: Condition) -> str:
    if gate.aggregation.counts_passes:
        return f"counted as {'passed' if errored.small_is_good else 'not passed'}"
    return f"counted as {errored.score:g}"


def _number(found: Estimate | None, question: Question) -> str:
    return "no number" if found is None else f"{found.value * question.scale:.4g}"


def _verdict(gate: Condition, reading: _Reading, decision: Decision, words: str) -> GateVerdict:
    found, scale = reading.estimate, 1.0 if reading.question is None else reading.question.scale
    return GateVerdict(
        condition=f"{words} {gate.op.symbol} {gate.value:.12g}{_unit(gate)}",
        outcome=decision.outcome,
        aggregation=gate.aggregation,
        measured=reading.value,
        operator=gate.op,
        threshold=gate.value,
        confidence=gate.confidence,
        interval=None if found is None else (found.low * scale, found.high * scale),
        method=None if found is None else found.method,
        samples_needed=decision.samples_needed,
        n=reading.n,
        n_samples=reading.n_samples,
        n_clusters=None if found is None else found.n_clusters,
        reason=decision.reason,
    )


def _part(gate: WeightedAverageGate, metric: str, found: Measurement, outcome: Outcome, rules: Rules) -> GateVerdict:
    """A part decides nothing alone: it has no operator, and the outcome of the whole where its value is known."""
    return GateVerdict(
        condition=_term(gate, metric, rules),
        outcome=Outcome.INCONCLUSIVE if found.value is None else outcome,
        metric=metric,
        aggregation=gate.aggregation,
        measured=found.value,
        n=found.n,
        n_samples=found.n_samples,
        n_errored=found.n_errored,
        counted=found.counted,
        reason=found.reason,
    )


def _term(gate: Condition, metric: str, rules: Rules) -> str:
    rule = rules.pass_rule(gate)
    details = ""
    if gate.aggregation.over_repeats:
        details += f", k = {rules.num_runs}"
    if gate.aggregation.counts_passes and rule != PassRule():
        details += f", passing at {rule.operator.symbol} {rule.threshold:.12g}"
    return f"{gate.aggregation}({metric}{details})"


def _named(gate: Condition) -> str:
    if gate.aggregation.over_repeats or not gate.aggregation.is_mean:
        return f"`{gate.aggregation}`"
    return "the rate" if gate.aggregation.counts_passes else "the mean"


def _unit(gate: Condition) -> str:
    return " %" if gate.aggregation == "accuracy" else ""
