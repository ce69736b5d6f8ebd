"""What holds for all gates of a run: how errors count, how often samples ran, and the earlier runs to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stateval.gates.measure import Errored, PassRule
from stateval.gates.spec import SimpleGate, WeightedAverageGate
from stateval.stats.comparison import Operator
from stateval.stats.table import ObservationTable


class BaselineKey(NamedTuple):
    """Which comparison: the directory as the gate names it, the metric, and the label of today's model."""

    results: str
    metric: str
    model: str


@dataclass(frozen=True, slots=True)
class BaselineRun:
    """An earlier run of one model. `marks` say what stands against comparing it and was let pass by `force`.

    `judges` are, by metric, the names of those who judged it; `moved` says where today's have other names.
    """

    table: ObservationTable
    marks: tuple[str, ...] = ()
    judges: Mapping[str, Sequence[str]] = field(default_factory=dict)
    moved: tuple[str, ...] = ()


Baselines = Mapping[BaselineKey, BaselineRun]


class JudgeCheckKey(NamedTuple):
    """Which check of which metric: the file as the gate names it, and the metric that the gate looks at."""

    file: str
    metric: str


@dataclass(frozen=True, slots=True)
class JudgeStanding:
    """What a file says of the judges of a metric.

    `is_judged` is False where no model has a say in the metric. `kappa` is the least of all judges that do; `void` says
    why the file says nothing of them. `answered` are, by metric, the models that answered when they were measured, by
    the names they gave themselves.
    """

    is_judged: bool
    kappa: float | None = None
    void: str | None = None
    answered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


JudgeChecks = Mapping[JudgeCheckKey, JudgeStanding]


@dataclass(frozen=True, slots=True)
class Rules:
    """How the observations of one model are to be judged; `tags` are those of the gate's `where`."""

    exclude_errors: bool
    num_runs: int
    finished: bool
    pass_threshold: float
    baselines: Baselines = field(default_factory=dict)
    judge_checks: JudgeChecks = field(default_factory=dict)
    model: str = ""
    tags: tuple[str, ...] = ()

    def errored(self, operator: Operator) -> Errored:
        """What becomes of observations without a value under a condition with this operator."""
        return Errored(self.exclude_errors, operator.wants_small)

    def pass_rule(self, gate: SimpleGate | WeightedAverageGate) -> PassRule:
        """When a single observation passes: as the gate says, else as the suite says."""
        threshold = self.pass_threshold if gate.pass_threshold is None else gate.pass_threshold
        return PassRule(gate.pass_op, threshold) if isinstance(gate, SimpleGate) else PassRule(threshold=threshold)
