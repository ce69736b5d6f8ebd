"""What `validate` says of judges that could be trusted more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stateval.gates import NamedGate
from stateval.gates.spec import leaves, metric_names
from stateval.graders.judging import JudgeModel
from stateval.llm import DEFAULT_MODEL
from stateval.suite.grader_spec import ModelJudgeSpec
from stateval.suite.judges import judge_models
from stateval.suite.spec import LocalAgentTargetSpec, SuiteSpec


def on_judges(spec: SuiteSpec, gates: Sequence[NamedGate]) -> Iterator[str]:
    """A sentence for each thing that makes a judge say less than it seems to."""
    own = set(_target_models(spec))
    for key, grader in spec.all_graders.items():
        if isinstance(grader, ModelJudgeSpec):
            judges = [judge for _, judge in judge_models(grader, ("graders", key), spec.judge)]
            yield from _on_votes(key, grader, judges)
            yield from _on_criteria(key, grader)
            yield from _on_itself(key, judges, own)
            yield from _on_gates(key, gates, is_only=len(spec.all_graders) == 1)


def _on_votes(key: str, grader: ModelJudgeSpec, judges: Sequence[JudgeModel]) -> Iterator[str]:
    cold = [judge.name for judge in judges if judge.temperature == 0]
    if grader.votes > 1 and cold:
        yield (
            f"metric `{key}`: {grader.votes} votes of `{cold[0]}` at `temperature: 0` are nearly the same answer "
            "paid for several times; give it a temperature, or ask once"
        )


def _on_criteria(key: str, grader: ModelJudgeSpec) -> Iterator[str]:
    bare = [name for name, criterion in grader.all_criteria.items() if not criterion.description.strip()]
    if bare:
        listed = ", ".join(f"`{name}`" for name in bare)
        yield f"metric `{key}`: {listed} without a `description`: the judge decides itself what that means"


def _on_itself(key: str, judges: Sequence[JudgeModel], own: set[str]) -> Iterator[str]:
    same = [judge.name for judge in judges if _bare(judge.model) in own]
    if same:
        yield f"metric `{key}`: `{same[0]}` judges its own answers; models prefer their own, so let another one judge"


def _on_gates(key: str, gates: Sequence[NamedGate], *, is_only: bool) -> Iterator[str]:
    looked_at = {key, None, "reward"} if is_only else {key}
    conditions = [leaf for gate in gates for leaf in leaves(gate) if looked_at.intersection(metric_names(leaf))]
    if any(condition.judge_check is None for condition in conditions):
        yield (
            f"metric `{key}`: a gate stands on a judge of which nobody knows how well it agrees with people; measure "
            "that with `stateval judge check`, and name the file in the gate's `judge_check`"
        )


def _target_models(spec: SuiteSpec) -> Iterator[str]:
    for target in spec.all_targets:
        handles = target.model_handles or ([DEFAULT_MODEL] if isinstance(target, LocalAgentTargetSpec) else [])
        yield from map(_bare, handles)


def _bare(model: str) -> str:
    return model.rpartition("/")[2]
