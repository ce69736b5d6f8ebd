"""Comparing a run with an earlier one, sample by sample: has a metric dropped by more than is allowed?

The hypothesis is that it has not. It is given up, and the gate fails, where the one-sided lower confidence bound of
the drop lies above what is allowed; so of runs of one unchanged agent 1 - confidence fail by chance with `max_drop` 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stateval.errors import UsageError
from stateval.gates.conditions import want_of_data
from stateval.gates.measure import Errored, error_rate
from stateval.gates.reach import out_of_reach
from stateval.gates.rules import BaselineKey, BaselineRun, Rules
from stateval.gates.spec import Baseline, BaselineGate, NamedGate, leaves
from stateval.records.verdict import GateVerdict, Outcome
from stateval.stats.comparison import TOLERANCE
from stateval.stats.describe import mean
from stateval.stats.paired import Paired, lower_bound, pair, upper_bound
from stateval.stats.points import sample_points
from stateval.stats.table import RESOURCES, REWARD, Selection


@dataclass(frozen=True, slots=True)
class BaselineUse:
    """One comparison that some gates ask for: with what, and of which metric."""

    baseline: Baseline
    metric: str


def baseline_uses(gates: Sequence[NamedGate], metric_keys: Sequence[str]) -> Iterator[BaselineUse]:
    """The comparisons that these gates ask for.

    Args:
        metric_keys: today's graders.
    """
    for gate in gates:
        for condition in leaves(gate):
            if isinstance(condition, BaselineGate):
                yield BaselineUse(condition.baseline, compared_metric(condition, metric_keys))


def compared_metric(gate: BaselineGate, metric_keys: Sequence[str]) -> str:
    """The metric that is compared: that of the baseline or its gate, else the only grader, else the reward."""
    if gate.metric is not None:
        return RESOURCES.get(gate.metric, gate.metric) if gate.metric not in metric_keys else gate.metric
    return metric_keys[0] if len(metric_keys) == 1 else REWARD


def against_baseline(gate: BaselineGate, selection: Selection, rules: Rules) -> GateVerdict:
    """The verdict on one metric of today's run beside that of the earlier one."""
    metric = compared_metric(gate, selection.table.metric_keys)
    if not selection.table.has(metric):
        raise UsageError(f"the gate looks at the metric `{metric}`, which does not exist")
    run = rules.baselines.get(BaselineKey(gate.baseline.results, metric, rules.model))
    rises = gate.small_is_good or selection.table.is_resource(metric)
    condition = f"{'rise' if rises else 'drop'} of {metric} since {_name(gate)} <= {gate.baseline.allowed:.12g}"
    verdict = GateVerdict(
        condition=condition,
        outcome=Outcome.INCONCLUSIVE,
        metric=metric,
        operator="lte",
        threshold=gate.baseline.allowed,
        confidence=gate.baseline.confidence,
        baseline=gate.baseline.results,
        marks=[*run.marks, *run.moved] or None if run is not None else None,
    )
    if run is None:
        return verdict.model_copy(update={"reason": "the earlier run was not read"})
    if run.moved and not gate.baseline.force:
        reason = f"{'; '.join(run.moved)}; make a new baseline, or compare all the same with `force: true`"
        return verdict.model_copy(update={"reason": reason, "marks": list(run.marks) or None})
    return verdict.model_copy(update=_Comparison(gate, metric, rises, selection, run, rules).findings())


@dataclass(frozen=True, slots=True)
class _Comparison:
    gate: BaselineGate
    metric: str
    rises: bool
    today: Selection
    run: BaselineRun
    rules: Rules

    def findings(self) -> dict[str, object]:
        """What the verdict says of them."""
        errored = Errored(self.rules.exclude_errors, self.rises)
        earlier = self.run.table.select(tags=self.rules.tags)
        paired = self._paired(errored, earlier)
        found: dict[str, object] = {
            "n": paired.n,
            "n_samples": paired.n,
            "n_clusters": len(set(paired.clusters)),
            "n_only_here": paired.n_only_other,
            "n_only_baseline": paired.n_only_one,
            "n_errored": self._n_errored(self.today) + self._n_errored(earlier),
            "measured": self._drop(paired),
            "bound": self._bound(paired),
        }
        reason = self._unknown(earlier) or self._lacking(paired, earlier)
        if reason is not None:
            return found | {"reason": reason}
        outcome = self._outcome(paired)
        if outcome is Outcome.PASS and (reason := self._out_of_reach(errored, earlier, paired)) is not None:
            return found | {"reason": reason}
        doubt = None if self._is_resource else self._doubt_of_errors(errored, earlier, outcome)
        if doubt is not None:
            return found | {"reason": doubt}
        return found | {"outcome": outcome}

    @property
    def _is_resource(self) -> bool:
        return self.today.table.is_resource(self.metric)

    def _paired(self, errored: Errored, earlier: Selection) -> Paired:
        counted = None if self._is_resource else errored.counted
        one = sample_points(earlier, self.metric, errored=counted)
        return pair(one, sample_points(self.today, self.metric, errored=counted))

    def _drop(self, paired: Paired) -> float | None:
        change = mean(paired.differences)
        return None if change is None else self._loss(change)

    def _bound(self, paired: Paired) -> float | None:
        confidence = self.gate.baseline.confidence
        if self.rises:
            return lower_bound(paired, confidence)
        bound = upper_bound(paired, confidence)
        return None if bound is None else self._loss(bound)

    def _loss(self, change: float) -> float:
        return change if self.rises else 0.0 - change

    def _outcome(self, paired: Paired) -> Outcome:
        bound = self._bound(paired)
        if bound is None:
            return Outcome.INCONCLUSIVE
        return Outcome.FAIL if bound > self.gate.baseline.allowed + TOLERANCE else Outcome.PASS

    def _out_of_reach(self, errored: Errored, earlier: Selection, paired: Paired) -> str | None:
        """Why a loss that was measured, and is greater than allowed, could not be shown by so few samples.

        Of seconds, dollars and tokens there is no worst, so a rise of them can always be shown.
        """
        measured = self._drop(paired)
        if self._is_resource or measured is None or measured <= self.gate.baseline.allowed + TOLERANCE:
            return None
        one, today = (sample_points(run, self.metric, errored=errored.counted) for run in (earlier, self.today))
        asked = self.gate.baseline
        return out_of_reach(one, today, rises=self.rises, allowed=asked.allowed, confidence=asked.confidence)

    def _unknown(self, earlier: Selection) -> str | None:
        """A resource that is not known has no worst value; one of an observation that failed can be left out."""
        if not self._is_resource:
            return None
        exclude = self.rules.exclude_errors
        for where, selection in (("today", self.today), ("in the earlier run", earlier)):
            cells = selection.cells(self.metric)
            unknown = sum(cell.value is None and not (exclude and cell.error is not None) for cell in cells)
            if unknown:
                return f"{self.metric} is not known for {unknown} of {len(selection)} observations {where}"
        return None

    def _lacking(self, paired: Paired, earlier: Selection) -> str | None:
        if not len(self.today):
            return "no sample has the tags of `where`" if len(self.today.table) else "no sample was run"
        n = paired.n
        rate = max(error_rate(self.today, self.metric), error_rate(earlier, self.metric))
        lacking = want_of_data(
            self.gate, n=n, what="samples are in both runs", error_rate=rate, certain=True, rules=self.rules
        )
        if lacking is not None:
            return lacking
        if not self._scored(self.today) or not self._scored(earlier):
            return f"no observation of one of the runs has a value of {self.metric}"
        if n < 2 or self._bound(paired) is None:
            few = f"{n} sample{' is' if n == 1 else 's are'} in both runs"
            return f"{few}; a comparison takes two that are independent"
        return None

    def _scored(self, selection: Selection) -> bool:
        return len(selection.values(self.metric)) > 0

    def _n_errored(self, selection: Selection) -> int:
        return sum(cell.value is None and cell.error is not None for cell in selection.cells(self.metric))

    def _doubt_of_errors(self, errored: Errored, earlier: Selection, outcome: Outcome) -> str | None:
        n_errored = self.today.n_errored(self.metric) + earlier.n_errored(self.metric)
        if not n_errored:
            return None
        ways = {way: self._paired(way, earlier) for way in (errored, errored.otherwise)}
        if self._outcome(ways[errored.otherwise]) is outcome:
            return None
        counted = next(way for way in ways if not way.exclude)
        said = [
            f"{words}: {_number(self._drop(ways[way]))} ({self._outcome(ways[way])})"
            for way, words in ((counted, f"counted as {counted.score:g}"), (counted.otherwise, "left out"))
        ]
        return f"the verdict hangs on the {n_errored} errored observations of both runs: {', '.join(said)}"


def _number(value: float | None) -> str:
    return "no number" if value is None else f"{value:.4g}"


def _name(gate: BaselineGate) -> str:
    return Path(gate.baseline.results).name or gate.baseline.results
