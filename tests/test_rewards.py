"""One number out of a sample's grades."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from stateval.errors import RewardError, UsageError
from stateval.loading.user_code import LoadedFunction
from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.protocols import Needs, RewardContext
from stateval.records.sample import Sample
from stateval.records.usage import Timing
from stateval.rewards import CustomReward, MetricReward


def context(**scores: float) -> RewardContext:
    return RewardContext(
        sample=Sample(id=1, input="hi"),
        grades={key: GradeResult(score=score) for key, score in scores.items()},
        submissions={},
        trajectory=[],
        agent_id=None,
        model_handle=None,
        agent_state=None,
        usage=None,
        timing=Timing(total=1, target=1),
        context=None,
    )


def test_a_metric_is_the_reward() -> None:
    reward = MetricReward("quality")
    assert anyio.run(reward.compose, context(quality=0.25, other=1)) == RewardOutput(score=0.25)
    assert (reward.metrics, reward.needs) == (("quality",), Needs.NOTHING)


def test_a_metric_without_a_grade_is_an_error_that_names_it() -> None:
    with pytest.raises(RewardError, match="`quality` has no grade for this sample; graded are: `other`"):
        anyio.run(MetricReward("quality").compose, context(other=1))


@pytest.mark.parametrize(
    "returned, wanted",
    [
        (RewardOutput(score=0.5, metadata={"a": 1}), RewardOutput(score=0.5, metadata={"a": 1})),
        (RewardOutput(score=0.5), RewardOutput(score=0.5)),
        (0.5, RewardOutput(score=0.5)),
        (True, RewardOutput(score=1)),
        pytest.param(0, RewardOutput(score=0), id="fault-44-zero-is-a-score"),
        ({"score": 0.5, "why": "x", "metadata": {"a": 1}}, RewardOutput(score=0.5, metadata={"why": "x", "a": 1})),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_a_function_may_return(returned: Any, wanted: RewardOutput, asynchronous: bool) -> None:
    async def awaited(ctx: RewardContext) -> Any:
        return returned

    reward = CustomReward(awaited if asynchronous else lambda ctx: returned)
    assert anyio.run(reward.compose, context()) == wanted
    assert reward.metrics is None


@pytest.mark.parametrize(
    "returned",
    [float("nan"), float("inf"), "nan", "1", 1.5, -1, None, [1.0], {}, {"score": None}],
    ids=lambda value: f"fault-23-{value}",
)
def test_whatever_is_no_reward_is_an_error(returned: Any) -> None:
    with pytest.raises(RewardError, match="reward `<lambda>`"):
        anyio.run(CustomReward(lambda ctx: returned).compose, context())


@pytest.mark.parametrize("asynchronous", [False, True], ids=["fault-47-sync", "fault-47-async"])
def test_an_exception_keeps_its_type(asynchronous: bool) -> None:
    async def awaited(ctx: RewardContext) -> Any:
        return ctx.grades["missing"]

    function = awaited if asynchronous else lambda ctx: ctx.grades["missing"]
    loaded = LoadedFunction(function, "r.py:f", None, {"sha256": "1"})
    with pytest.raises(RewardError, match=r"reward `r\.py:f` raised KeyError: 'missing'") as caught:
        anyio.run(CustomReward(loaded).compose, context())
    assert caught.value.cause_type == "KeyError"
    assert CustomReward(loaded).fingerprint == {"reward": {"sha256": "1"}}


def test_another_signature_is_refused() -> None:
    with pytest.raises(UsageError, match="must take one parameter"):
        CustomReward(lambda: 1.0)


def test_what_a_users_composer_changes_is_changed_for_itself_alone() -> None:
    def vandal(ctx: Any) -> float:
        ctx.grades["quality"].metadata["new"] = 1
        ctx.grades.clear()
        ctx.trajectory.append([])
        ctx.submissions["x"] = "y"
        return 1.0

    shown = context(quality=0.5)
    assert anyio.run(CustomReward(vandal).compose, shown) == RewardOutput(score=1)
    assert shown == context(quality=0.5)
