"""Deciding gates, with the reasons as a tree.

A gate never passes for want of data: no scored sample, nothing that `where` matches, an unknown cost or an unfinished
run make a condition inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stateval.errors import UsageError
from stateval.gates.measure import Errored, Measurement, PassRule, measure
from stateval.gates.spec import Gate, LogicalGate, NamedGate, SimpleGate, WeightedAverageGate
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.comparison import holds
from stateval.stats.table import ObservationTable, Selection


def evaluate_gates(
    gates: Sequence[NamedGate],
    tables: Mapping[str, ObservationTable],
    *,
    on_error: str,
    num_runs: int,
    finished: bool,
    pass_threshold: float = 1.0,
) -> list[GateVerdict]:
    """One verdict per gate.

    Over several models a gate must hold for each: the verdict is the worst of fail > inconclusive > pass, with one
    child a model. Over several runs it stands on all observations of all runs, and the runs that pass alone are
    counted. Raises UsageError for a metric that does not exist; `check_gates` finds those before anything runs.

    Args:
        tables: by the model's label.
        on_error: with `exclude` errored observations are left out; else they count as the worst score.
        finished: whether every planned observation was made.
        pass_threshold: the suite's; a gate's own wins.
    """
    rules = _Rules(on_error == "exclude", num_runs, finished, pass_threshold)
    return [_over_models(gate, tables, rules) for gate in gates]


def overall(verdicts: Sequence[GateVerdict]) -> Outcome | None:
    """What all gates come to, those with `on_fail: warn` left aside; None where none is left that could decide."""
    outcomes = [verdict.outcome for verdict in verdicts if verdict.on_fail != "warn"]
    return all_of(outcomes) if outcomes else None


def all_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Kleene's `and`: the worst of fail > inconclusive > pass."""
    return _first_of((Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS), outcomes)


def any_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Kleene's `or`: the best of pass > inconclusive > fail."""
    return _first_of((Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL), outcomes)


@dataclass(frozen=True, slots=True)
class _Rules:
    exclude_errors: bool
    num_runs: int
    finished: bool
    pass_threshold: float


def _first_of(order: Sequence[Outcome], outcomes: Iterable[Outcome]) -> Outcome:
    found = set(outcomes)
    return next(outcome for outcome in order if outcome in found)


def _over_models(gate: NamedGate, tables: Mapping[str, ObservationTable], rules: _Rules) -> GateVerdict:
    verdicts = [_of_model(gate, label, table, rules) for label, table in tables.items()]
    if len(verdicts) == 1:
        verdict = verdicts[0]
    elif verdicts:
        held = sum(verdict.outcome is Outcome.PASS for verdict in verdicts)
        verdict = GateVerdict(
            condition=f"for each model: {verdicts[0].condition}",
            outcome=all_of(verdict.outcome for verdict in verdicts),
            reason=f"holds for {held} of {len(verdicts)} models",
            children=verdicts,
        )
    else:
        verdict = GateVerdict(condition="for each model", outcome=Outcome.INCONCLUSIVE, reason="no model was run")
    return verdict.model_copy(update={"name": gate.name, "on_fail": gate.on_fail})


def _of_model(gate: NamedGate, label: str, table: ObservationTable, rules: _Rules) -> GateVerdict:
    tags = gate.where.tags if gate.where else []
    verdict = _evaluate(gate.gate, table.select(tags=tags), rules)
    details: dict[str, object] = {"model": label}
    if tags:
        details["condition"] = f"{verdict.condition} where tags: {' or '.join(tags)}"
    if rules.num_runs > 1 and rules.finished and not _over_repeats(gate.gate):
        runs = range(1, rules.num_runs + 1)
        outcomes = [_evaluate(gate.gate, table.select(run=run, tags=tags), rules).outcome for run in runs]
        details |= {"runs_passed": outcomes.count(Outcome.PASS), "runs_total": rules.num_runs}
    return verdict.model_copy(update=details)


def _over_repeats(gate: Gate) -> bool:
    if isinstance(gate, LogicalGate):
        return any(_over_repeats(condition) for condition in gate.conditions)
    return gate.aggregation.over_repeats


def _evaluate(gate: Gate, selection: Selection, rules: _Rules) -> GateVerdict:
    match gate:
        case LogicalGate():
            return _logical(gate, selection, rules)
        case WeightedAverageGate():
            return _weighted_average(gate, selection, rules)
    return _simple(gate, selection, rules)


def _logical(gate: LogicalGate, selection: Selection, rules: _Rules) -> GateVerdict:
    children = [_evaluate(condition, selection, rules) for condition in gate.conditions]
    combine = all_of if gate.operator == "and" else any_of
    return GateVerdict(
        condition="all of" if gate.operator == "and" else "any of",
        outcome=combine(child.outcome for child in children),
        operator=gate.operator,
        children=children,
    )


def _simple(gate: SimpleGate, selection: Selection, rules: _Rules) -> GateVerdict:
    metric = gate.metric_key if gate.metric_key is not None else _only_metric(selection.table)
    found = _measured(gate, metric, selection, rules)
    outcome, reason = _decision(gate, found.value, found.reason, rules)
    return GateVerdict(
        condition=f"{_term(gate, metric, rules)} {_threshold(gate)}",
        outcome=outcome,
        metric=metric,
        aggregation=gate.aggregation,
        measured=found.value,
        operator=gate.op,
        threshold=gate.value,
        n=found.n,
        n_samples=found.n_samples,
        n_errored=found.n_errored,
        counted=found.counted,
        reason=reason,
    )


def _weighted_average(gate: WeightedAverageGate, selection: Selection, rules: _Rules) -> GateVerdict:
    sum_of_weights = math.fsum(gate.weights.values())
    shares = {metric: weight / sum_of_weights for metric, weight in gate.weights.items()}
    parts = {metric: _measured(gate, metric, selection, rules) for metric in shares}
    unknown = [metric for metric, share in shares.items() if share and parts[metric].value is None]
    value = None if unknown else math.fsum(share * (parts[m].value or 0.0) for m, share in shares.items())
    why = f"not known: {', '.join(unknown)}" if unknown else None
    outcome, reason = _decision(gate, value, why, rules)
    terms = " + ".join(f"{share:.4g} {_term(gate, metric, rules)}" for metric, share in shares.items())
    return GateVerdict(
        condition=f"{terms} {_threshold(gate)}",
        outcome=outcome,
        aggregation=gate.aggregation,
        measured=value,
        operator=gate.op,
        threshold=gate.value,
        n=min(parts[metric].n for metric, share in shares.items() if share),
        reason=reason,
        children=[_part(gate, metric, found, outcome, rules) for metric, found in parts.items()],
    )


def _part(gate: WeightedAverageGate, metric: str, found: Measurement, outcome: Outcome, rules: _Rules) -> GateVerdict:
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


def _measured(gate: SimpleGate | WeightedAverageGate, metric: str, selection: Selection, rules: _Rules) -> Measurement:
    if not selection.table.has(metric):
        raise UsageError(f"the gate looks at the metric `{metric}`, which does not exist")
    return measure(
        selection,
        metric,
        gate.aggregation,
        pass_rule=_pass_rule(gate, rules),
        errored=Errored(rules.exclude_errors, gate.op.wants_small),
        k=rules.num_runs,
    )


def _decision(
    gate: SimpleGate | WeightedAverageGate, value: float | None, reason: str | None, rules: _Rules
) -> tuple[Outcome, str | None]:
    if value is None:
        return Outcome.INCONCLUSIVE, reason
    if not rules.finished:
        return Outcome.INCONCLUSIVE, "the run did not finish"
    return (Outcome.PASS if holds(value, gate.op, gate.value) else Outcome.FAIL), reason


def _pass_rule(gate: SimpleGate | WeightedAverageGate, rules: _Rules) -> PassRule:
    threshold = rules.pass_threshold if gate.pass_threshold is None else gate.pass_threshold
    return PassRule(gate.pass_op, threshold) if isinstance(gate, SimpleGate) else PassRule(threshold=threshold)


def _term(gate: SimpleGate | WeightedAverageGate, metric: str, rules: _Rules) -> str:
    rule = _pass_rule(gate, rules)
    details = ""
    if gate.aggregation.over_repeats:
        details += f", k = {rules.num_runs}"
    if gate.aggregation.counts_passes and rule != PassRule():
        details += f", passing at {rule.operator.symbol} {rule.threshold:.12g}"
    return f"{gate.aggregation}({metric}{details})"


def _threshold(gate: SimpleGate | WeightedAverageGate) -> str:
    unit = " %" if gate.aggregation == "accuracy" else ""
    return f"{gate.op.symbol} {gate.value:.12g}{unit}"


def _only_metric(table: ObservationTable) -> str:
    if len(table.metric_keys) != 1:
        raise UsageError(
            f"the gate needs a `metric_key`, for there are several graders: {', '.join(table.metric_keys)}"
        )
    return table.metric_keys[0]
