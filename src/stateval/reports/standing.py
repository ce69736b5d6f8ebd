"""What became of one observation, as the ledger counts it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stateval.records.result import Observation
from stateval.records.summary import Summary
from stateval.results.reading import Results
from stateval.stats.comparison import Operator, holds
from stateval.stats.table import REWARD


class Standing(StrEnum):
    """The worst that can be said of an observation; the first of these that applies."""

    ERRORED = "errored"
    FAILED = "failed"
    PASSED = "passed"
    UNSCORED = "unscored"


@dataclass(frozen=True, slots=True)
class Rule:
    """What passes: the reward where one is composed, else every metric, from the threshold on."""

    metrics: tuple[str, ...]
    has_reward: bool
    threshold: float

    @classmethod
    def of(cls, results: Results, summary: Summary) -> Rule:
        """The rule of a run. Where its graders are not known they are those that have been summed up."""
        found = {metric for model in summary.models for metric in model.metrics}
        metrics = results.metric_keys or tuple(sorted(found - {REWARD}))
        has_reward = results.has_reward or (REWARD in found and REWARD not in metrics)
        return cls(metrics, has_reward, results.pass_threshold)

    def standing(self, seen: Observation) -> Standing:
        """What became of it.

        As in the ledger, a value counts whatever else happened. Where the reward or a metric has no value and
        something went wrong, the observation has errored; where nothing has a value and nothing went wrong, it is
        unscored.
        """
        values = [seen.reward] if self.has_reward else [seen.scores.get(metric) for metric in self.metrics]
        if any(value is None for value in values) and (seen.error is not None or seen.errors):
            return Standing.ERRORED
        scored = [value for value in values if value is not None]
        if not scored:
            return Standing.ERRORED if seen.error is not None else Standing.UNSCORED
        return Standing.PASSED if all(map(self.passes, scored)) else Standing.FAILED

    def passes(self, value: float) -> bool:
        """Whether one value does."""
        return holds(value, Operator.GTE, self.threshold)
