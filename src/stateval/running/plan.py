"""What is to be run: objects, no files and no text that still has to be understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeGuard

from stateval.gates import NamedGate
from stateval.records.encoding import json_text
from stateval.records.protocols import Dataset, Extractor, Grader, RewardComposer, Snapshots, Target
from stateval.records.sample import Sample, UserTurn
from stateval.running.limits import NO_LIMITS, Limits


class OnError(StrEnum):
    """How an observation without a score counts: as the worst value, not at all, or by ending the run."""

    FAIL = "fail"
    EXCLUDE = "exclude"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class GraderBinding:
    """A metric: which grader judges what which extractor takes out, against which field of the row.

    `ground_truth_field` names another field of the sample (or a key of its `extra_vars`, `metadata` or `expected`)
    as the truth.
    """

    key: str
    grader: Grader
    extractor: Extractor
    display_name: str | None = None
    ground_truth_field: str | None = None

    def view(self, sample: Sample) -> Sample:
        """The sample as this metric sees it: with the truth and the expectation that are its own."""
        changes: dict[str, Any] = {}
        if self.ground_truth_field is not None:
            changes["ground_truth"] = _as_truth(self._named_field(sample))
        if isinstance(sample.input, list) and any(map(self._is_anothers, sample.input)):
            turns = [UserTurn(user=turn.user) if self._is_anothers(turn) else turn for turn in sample.input]
            changes["input"] = turns
        if isinstance(sample.expected, dict) and self.key in sample.expected:
            changes["expected"] = sample.expected[self.key]
        return sample.model_copy(update=changes) if changes else sample

    def check(self, sample: Sample) -> str | None:
        """What this sample lacks for this metric, or None."""
        if self.ground_truth_field is not None and self._named_field(sample) is None:
            return f"metric `{self.key}`: the row has no field `{self.ground_truth_field}` (its `ground_truth_field`)"
        complaint = self.grader.check(self.view(sample))
        return f"metric `{self.key}`: {complaint}" if complaint else None

    def _is_anothers(self, turn: Any) -> TypeGuard[UserTurn]:
        """Whether this is a user turn that other metrics grade."""
        return isinstance(turn, UserTurn) and turn.graders is not None and self.key not in turn.graders

    def _named_field(self, sample: Sample) -> Any:
        name = self.ground_truth_field or "ground_truth"
        places = (sample.to_dict(), sample.metadata, sample.extra_vars, sample.expected)
        return next((place[name] for place in places if isinstance(place, Mapping) and name in place), None)


def _as_truth(value: Any) -> str | list[str | None] | None:
    if isinstance(value, list | tuple):
        return [None if item is None else json_text(item) for item in value]
    return None if value is None else json_text(value)


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """One target with one model. `label` is unique in the plan and names the results file ("default" without handles).

    `timeout` is in seconds for one sample's conversation; `max_retries` counts tries after the first. `shared_agent` is
    the one agent that all samples talk to, if they do: their scores are not independent then, and form one cluster.
    """

    label: str
    target: Target
    model_handle: str | None = None
    timeout: float = 300.0
    max_retries: int = 0
    shared_agent: str | None = None

    def cluster_of(self, sample: Sample) -> str | None:
        """Which observations are not independent of this sample's."""
        return self.shared_agent or sample.cluster


@dataclass(frozen=True, slots=True)
class Script:
    """A set-up or tear-down function of 0, 1 `(client)` or 2 `(client, model_handle)` parameters: then once a model."""

    function: Callable[..., Any]
    reference: str
    parameters: int = 0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All that the runner needs.

    `dataset` is already filtered, split and cut to `max_samples`. `config` is what `suite.json` shows as the
    configuration; `secrets` are values to keep out of every file; `suite_file` is a path that means the same on other
    machines.
    """

    name: str
    dataset: Dataset
    models: tuple[ModelPlan, ...]
    graders: tuple[GraderBinding, ...]
    reward: RewardComposer | None = None
    gates: tuple[NamedGate, ...] = ()
    num_runs: int = 1
    max_concurrent: int = 15
    snapshots: Snapshots = Snapshots.NONE
    setup: Script | None = None
    teardown: Script | None = None
    cleanup: bool = False
    on_error: OnError = OnError.FAIL
    limits: Limits = NO_LIMITS
    pass_threshold: float = 1.0
    seed: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    suite_file: str | None = None

    @property
    def most_at_once(self) -> int:
        """How many samples may be in flight: one where they share an agent, which is told one thing after the other."""
        return 1 if any(model.shared_agent for model in self.models) else self.max_concurrent

    @property
    def metric_keys(self) -> tuple[str, ...]:
        """The graders' keys, in the suite's order."""
        return tuple(binding.key for binding in self.graders)
