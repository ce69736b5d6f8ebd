"""Stage keys: hashes of all that a stage of one sample depended on.

The target's key covers the row as the agent sees it, the target, the model and the run; a grade's key adds the whole
row, the extractor and the grader; the reward's key adds the composer. A repeat (another run) never has the same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from stateval.records.encoding import dump_json, plain
from stateval.records.result import StageKeys
from stateval.records.sample import Sample
from stateval.results.run_record import RunInputs
from stateval.running.plan import GraderBinding, ModelPlan, RunPlan

_FOR_GRADERS_ONLY = ("ground_truth", "expected", "rubric", "rubric_vars", "tags", "cluster")
_BYTES = 12


class StageKeyMaker:
    """Hashes the constant parts of a plan once, and each sample's part as it comes."""

    def __init__(self, plan: RunPlan) -> None:
        self._models = {model.label: _encoded(_of_model(model)) for model in plan.models}
        self._graders = {binding.key: _encoded(_of_binding(binding)) for binding in plan.graders}
        self._reward = _encoded(plan.reward.fingerprint) if plan.reward else None

    def keys(self, model: ModelPlan, sample: Sample, run: int, *, kept: StageKeys | None = None) -> StageKeys:
        """The keys of one sample with one model in one run; `kept` are those of a conversation that is graded anew."""
        row = sample.to_dict()
        whole = dump_json(row, sort_keys=True)
        hashed = _hash(whole)
        if kept is not None and kept.row == hashed and kept.input is not None:
            target, seen = kept.target, kept.input
        else:
            said = {name: value for name, value in row.items() if name not in _FOR_GRADERS_ONLY}
            bytes_seen = dump_json(said, sort_keys=True)
            target = kept.target if kept else _hash(self._models[model.label], bytes_seen, str(run).encode())
            seen = _hash(bytes_seen)
        grades = {key: _hash(target.encode(), whole, binding) for key, binding in self._graders.items()}
        reward = _hash(whole, self._reward, *(key.encode() for key in grades.values())) if self._reward else None
        return StageKeys(target=target, row=hashed, input=seen, grades=grades, reward=reward)


def row_hash(sample: Sample) -> str:
    """The hash of a sample's row, whole: the `row` of its stage keys."""
    return _hash(dump_json(sample.to_dict(), sort_keys=True))


def suite_identity(plan: RunPlan, *, regraded: bool = False) -> str:
    """What makes two runs runs of the same suite: its name and its targets' kinds and labels.

    A run that only grades kept conversations anew is another one.
    """
    targets = sorted((model.target.kind, model.label) for model in plan.models)
    return _hash(_encoded({"suite": plan.name, "targets": targets, **({"regraded": True} if regraded else {})}))


def run_inputs(plan: RunPlan, dataset: str | None = None) -> RunInputs:
    """The hashes of all that a plan stands on; `dataset` is that of its rows."""
    return RunInputs(
        dataset=dataset,
        targets={model.label: _hash(_encoded(_of_model(model))) for model in plan.models},
        graders={binding.key: _hash(_encoded(_of_binding(binding))) for binding in plan.graders},
        reward=_hash(_encoded(plan.reward.fingerprint)) if plan.reward else None,
    )


def settings_of(plan: RunPlan) -> dict[str, str]:
    """A hash of each field that the suite says."""
    return {str(name): _hash(_encoded(value)) for name, value in plan.config.items()}


def _of_model(model: ModelPlan) -> Mapping[str, Any]:
    return {"target": model.target.fingerprint, "model_handle": model.model_handle}


def _of_binding(binding: GraderBinding) -> Mapping[str, Any]:
    return {
        "extractor": binding.extractor.fingerprint,
        "grader": binding.grader.fingerprint,
        "ground_truth_field": binding.ground_truth_field,
    }


def _encoded(value: Any) -> bytes:
    return dump_json(plain(value), sort_keys=True)


def _hash(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
