"""Deciding gates, with the reasons as a tree.

A gate never passes for want of data: no scored sample, nothing that `where` matches, an unknown cost or an unfinished
run make a condition inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stateval.gates.baseline import against_baseline
from stateval.gates.conditions import simple, weighted_average
from stateval.gates.judge_check import checked
from stateval.gates.rules import Baselines, JudgeChecks, Rules
from stateval.gates.spec import (
    BaselineGate,
    Gate,
    LogicalGate,
    NamedGate,
    SimpleGate,
    WeightedAverageGate,
    leaves,
    parts,
)
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.table import ObservationTable, Selection


def evaluate_gates(
    gates: Sequence[NamedGate],
    tables: Mapping[str, ObservationTable],
    *,
    on_error: str,
    num_runs: int,
    finished: bool,
    pass_threshold: float = 1.0,
    baselines: Baselines | None = None,
    judge_checks: JudgeChecks | None = None,
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
        baselines: the earlier runs that gates compare with.
        judge_checks: what is known of how well judges agree with people.
    """
    rules = Rules(on_error == "exclude", num_runs, finished, pass_threshold, baselines or {}, judge_checks or {})
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


def _first_of(order: Sequence[Outcome], outcomes: Iterable[Outcome]) -> Outcome:
    found = set(outcomes)
    return next(outcome for outcome in order if outcome in found)


def _over_models(gate: NamedGate, tables: Mapping[str, ObservationTable], rules: Rules) -> GateVerdict:
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


def _of_model(gate: NamedGate, label: str, table: ObservationTable, rules: Rules) -> GateVerdict:
    tags = gate.where.tags if gate.where else []
    rules = replace(rules, model=label, tags=tuple(tags))
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
    """Whether single runs have no verdict: k tries, and comparisons, stand on all runs together."""
    return any(isinstance(leaf, BaselineGate) or leaf.aggregation.over_repeats for leaf in leaves(gate))


def _evaluate(gate: Gate, selection: Selection, rules: Rules) -> GateVerdict:
    match gate:
        case LogicalGate():
            return _combined(gate.full_conditions, gate.operator, selection, rules)
        case SimpleGate() if gate.baseline is not None:
            return _combined(parts(gate), "and", selection, rules)
        case WeightedAverageGate():
            verdict = weighted_average(gate, selection, rules)
        case BaselineGate():
            verdict = against_baseline(gate, selection, rules)
        case _:
            verdict = simple(gate, selection, rules)
    return checked(gate, verdict, selection.table.metric_keys, rules)


def _combined(conditions: Sequence[Gate], operator: str, selection: Selection, rules: Rules) -> GateVerdict:
    children = [_evaluate(condition, selection, rules) for condition in conditions]
    combine = all_of if operator == "and" else any_of
    return GateVerdict(
        condition="all of" if operator == "and" else "any of",
        outcome=combine(child.outcome for child in children),
        operator=operator,
        children=children,
    )
