"""What one sample is worth: one metric, or what a user's function makes of all grades."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from stateval.errors import RewardError, UsageError
from stateval.letta.messages import letta_state, letta_trajectory, wants_letta_classes
from stateval.loading.calling import call_user, own_copy, scored
from stateval.loading.fingerprint import fingerprint_of
from stateval.loading.siblings import packages_imported_for
from stateval.loading.user_code import LoadedFunction
from stateval.records.grade import RewardOutput
from stateval.records.protocols import Needs, RewardContext


class MetricReward:
    """The score of one metric."""

    needs = Needs.NOTHING

    def __init__(self, metric_key: str) -> None:
        self.metric_key = metric_key
        self.metrics: tuple[str, ...] | None = (metric_key,)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The metric's key."""
        return {"reward": "metric", "metric_key": self.metric_key}

    async def compose(self, ctx: RewardContext) -> RewardOutput:
        """The metric's score. Raises RewardError where it has no grade."""
        grade = ctx.grades.get(self.metric_key)
        if grade is None:
            has = ", ".join(f"`{key}`" for key in ctx.grades) or "none"
            raise RewardError(f"the metric `{self.metric_key}` has no grade for this sample; graded are: {has}")
        return RewardOutput(score=grade.score)


class CustomReward:
    """What a user's function of one parameter `ctx` returns: a `RewardOutput`, a number, or a dict with a `score`.

    Raises UsageError where the function cannot be called with one argument.
    """

    needs = Needs.STATE
    metrics: tuple[str, ...] | None = None

    def __init__(self, loaded: LoadedFunction | Callable[..., Any]) -> None:
        if isinstance(loaded, LoadedFunction):
            self._function, self.name = loaded.function, loaded.reference
            self._fingerprint = dict(loaded.fingerprint)
            self._letta = wants_letta_classes(loaded.imports)
        else:
            self._function, self.name = loaded, getattr(loaded, "__name__", type(loaded).__name__)
            self._fingerprint = fingerprint_of(loaded)
            self._letta = wants_letta_classes(packages_imported_for(loaded))
        _require_one_parameter(self._function, self.name)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The function's reference and source."""
        return {"reward": self._fingerprint}

    async def compose(self, ctx: RewardContext) -> RewardOutput:
        """The reward. Raises RewardError where the function raises, or returns no finite score in [0, 1]."""
        who = f"reward `{self.name}`"
        own = RewardContext(**{field.name: own_copy(getattr(ctx, field.name)) for field in dataclasses.fields(ctx)})
        if self._letta:
            changes = {"trajectory": letta_trajectory(ctx.trajectory), "agent_state": letta_state(ctx.agent_state)}
            own = dataclasses.replace(own, **changes)
        returned = await call_user(self._function, RewardError, who, own)
        try:
            fields = scored(returned)
            rationale = {"rationale": fields["rationale"]} if "rationale" in fields else {}
            metadata = {**rationale, **fields.get("metadata", {})}
            return RewardOutput(score=fields["score"], metadata=metadata or None)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise RewardError(f"{who}: `score` is {problem['input']!r}: {problem['msg']}") from None
        except ValueError as error:
            raise RewardError(f"{who}: {error}") from None


def _require_one_parameter(function: Callable[..., Any], name: str) -> None:
    try:
        inspect.signature(function).bind(None)
    except (TypeError, ValueError) as error:
        raise UsageError(f"reward `{name}` must take one parameter, `ctx`: {error}") from None
