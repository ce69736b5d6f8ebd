"""The checks of judges that gates ask for: read and compared with today's judges before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stateval.errors import UsageError
from stateval.gates import JudgeCheckKey, JudgeChecks, JudgeStanding, NamedGate, judge_check_uses, unjudged_gates
from stateval.records.digest import hash_of
from stateval.records.judge_check import JudgeCheck, MetricCheck
from stateval.records.protocols import ModelGrader, RewardComposer
from stateval.running.plan import GraderBinding, RunPlan
from stateval.stats.table import REWARD


def load_judge_checks(plan: RunPlan) -> JudgeChecks:
    """What `evaluate_gates` is told of how well today's judges agree with people; empty where no gate asks.

    Raises UsageError for a gate on metrics that no model judges, and a file that is not there, is damaged, or does not
    hold the metric. A file of another judge, prompt or setting than today's is void, which the verdict then says.
    """
    problems = list(judge_check_problems(plan.gates, plan.graders, plan.reward))
    if problems:
        raise UsageError("; ".join(problems))
    files: dict[str, JudgeCheck] = {}
    checks: dict[JudgeCheckKey, JudgeStanding] = {}
    for use in judge_check_uses(plan.gates, plan.metric_keys):
        judges = _judges_of(use.metric, plan.graders, plan.reward)
        if judges and use.file not in files:
            files[use.file] = read_judge_check(Path(use.file))
        checks[use] = _standing(use.file, files[use.file], judges) if judges else JudgeStanding(is_judged=False)
    return checks


def with_answered(checks: JudgeChecks, answered: Mapping[str, Sequence[str]]) -> JudgeChecks:
    """The same, void where a judge of this run was another model behind the same name than the one that was measured.

    Args:
        answered: by metric the models that answered in this run, by the names they gave themselves.
    """
    return {use: replace(found, void=found.void or _moved(found, answered)) for use, found in checks.items()}


def _moved(standing: JudgeStanding, answered: Mapping[str, Sequence[str]]) -> str | None:
    for metric, known in standing.answered.items():
        others = sorted(set(answered.get(metric, ())).difference(known))
        if known and others:
            return (
                f"judge `{metric}` answered as `{others[0]}`, and was measured as `{', '.join(known)}`; its name "
                "means another model now; run `stateval judge check` again"
            )
    return None


def judge_check_problems(
    gates: Sequence[NamedGate], graders: Sequence[GraderBinding], reward: RewardComposer | None
) -> Iterator[str]:
    """Where `judge_check` is asked for of metrics that no model judges, a sentence each."""
    keys = [binding.key for binding in graders]
    judged = {key: bool(_judges_of(key, graders, reward)) for key in (*keys, REWARD)}
    for _, metrics in unjudged_gates(gates, keys, judged):
        listed = ", ".join(f"`{metric}`" for metric in metrics)
        models = ", ".join(f"`{key}`" for key in keys if judged[key]) or "none"
        yield f"`judge_check` is asked for of {listed}, which no model judges; the metrics that models judge: {models}"


def read_judge_check(path: Path) -> JudgeCheck:
    """What `stateval judge check` wrote. Raises UsageError that says what to do where it cannot be read."""
    advice = "`stateval judge check SUITE --labels labels.csv` writes it"
    try:
        return JudgeCheck.from_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"the check of the judge {path} does not exist: {advice}") from None
    except OSError as error:
        raise UsageError(f"the check of the judge {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is no check of a judge, or a damaged one: {advice}") from None


def _judges_of(
    metric: str, graders: Sequence[GraderBinding], reward: RewardComposer | None
) -> list[tuple[str, ModelGrader]]:
    """The judges that have a say in a metric; in the reward those of all metrics that it stands on."""
    keys = [binding.key for binding in graders]
    if metric == REWARD and metric not in keys:
        stands_on = keys if reward is None or reward.metrics is None else reward.metrics
    else:
        stands_on = [metric]
    return [
        (binding.key, binding.grader)
        for binding in graders
        if binding.key in stands_on and isinstance(binding.grader, ModelGrader)
    ]


def _standing(file: str, check: JudgeCheck, judges: Sequence[tuple[str, ModelGrader]]) -> JudgeStanding:
    found = [(key, judge, check.metrics.get(key)) for key, judge in judges]
    lacking = [key for key, _, metric in found if metric is None]
    if lacking:
        there = ", ".join(f"`{key}`" for key in check.metrics) or "none"
        raise UsageError(
            f"the check of the judge {file} says nothing of `{lacking[0]}`; it holds {there}: run `stateval judge "
            "check` with labels for it"
        )
    for key, judge, metric in found:
        if metric is not None and metric.fingerprint != hash_of(judge.fingerprint):
            return JudgeStanding(is_judged=True, void=_void(file, key))
    kappas = [_kappa(metric) for _, _, metric in found if metric is not None]
    known = [kappa for kappa in kappas if kappa is not None]
    answered = {key: metric.answered for key, _, metric in found if metric is not None}
    return JudgeStanding(
        is_judged=True, kappa=min(known) if len(known) == len(kappas) and known else None, answered=answered
    )


def _void(file: str, metric: str) -> str:
    return (
        f"{Path(file).name} was made with another judge of `{metric}` than this run's (model, rubric, settings or "
        "release); run `stateval judge check` again"
    )


def _kappa(metric: MetricCheck) -> float | None:
    return metric.overall.kappa.value if metric.overall is not None else None
