"""One sample, from its row to its result."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from stateval.deadline import Stopwatch, stopwatch
from stateval.errors import ModelUnavailable, PermanentModelError, TargetError, TargetTimeout
from stateval.records.protocols import Needs, RolloutRequest, Snapshots
from stateval.records.result import ErrorCategory, SampleError, SampleResult
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample
from stateval.records.usage import Timing
from stateval.running.grading import (
    Grading,
    compose_reward,
    error_record,
    grade_rollout,
    graded_turns,
    reward_context,
)
from stateval.running.keys import StageKeyMaker
from stateval.running.plan import ModelPlan, RunPlan

logger = logging.getLogger(__name__)

_FIRST_BACKOFF = 0.5
_LONGEST_BACKOFF = 30.0

OnTurn = Callable[[int, int], None]


@dataclass(slots=True)
class _Outcome:
    """What the target came to. `seconds` is the time of the last try alone, without waiting for its model."""

    rollout: Rollout
    seconds: float
    error: SampleError | None = None


class SampleRunner:
    """Takes samples through target, extraction, grading and reward, as a plan says."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._keys = StageKeyMaker(plan)
        self._needs = _needs(plan)

    async def run(self, model: ModelPlan, sample: Sample, run: int, on_turn: OnTurn) -> SampleResult:
        """The result of one sample. Whatever fails in it is in its `error`.

        Raises ModelUnavailable where no sample can run at all.
        """
        with stopwatch() as watch:
            try:
                return await self._run(model, sample, run, on_turn, watch)
            except ModelUnavailable:
                raise
            except Exception as error:
                logger.debug("sample %s", sample.key, exc_info=error)
                return SampleResult(
                    sample_id=sample.id,
                    model_handle=model.model_handle,
                    timing=Timing(total=watch.seconds, target=0.0),
                    error=error_record(error, "unknown"),
                    run=run,
                    stage_keys=self._keys.keys(model, sample, run),
                    tags=sample.tags or None,
                    cluster=sample.cluster,
                )

    async def _run(self, model: ModelPlan, sample: Sample, run: int, on_turn: OnTurn, watch: Stopwatch) -> SampleResult:
        outcome = await self._roll_out(model, sample, run, on_turn)
        grading = Grading()
        if outcome.error is None:
            grading = await grade_rollout(sample, outcome.rollout, self._plan.graders)
        timing = Timing(
            total=watch.seconds,
            target=outcome.seconds,
            extraction=grading.extraction_seconds if grading.seconds else None,
            per_grader=grading.seconds or None,
        )
        return await self._finish(model, sample, run, outcome, grading, timing)

    async def _finish(
        self, model: ModelPlan, sample: Sample, run: int, outcome: _Outcome, grading: Grading, timing: Timing
    ) -> SampleResult:
        rollout = outcome.rollout
        error = outcome.error or grading.first_error
        reward = None
        if error is None and self._plan.reward is not None:
            try:
                reward = await compose_reward(self._plan.reward, reward_context(sample, rollout, grading, timing))
            except ModelUnavailable:
                raise
            except Exception as failure:  # noqa: BLE001 - composers are users' code
                error = error_record(failure, "reward")
        return SampleResult(
            **{name: getattr(rollout, name) for name in Rollout.model_fields if name != "model_handle"},
            sample_id=sample.id,
            model_handle=rollout.model_handle or model.model_handle,
            submissions=grading.submissions,
            grades=grading.grades,
            reward=reward,
            timing=timing,
            error=error,
            run=run,
            grade_errors=grading.errors or None,
            stage_keys=self._keys.keys(model, sample, run),
            tags=sample.tags or None,
            cluster=sample.cluster,
        )

    async def _roll_out(self, model: ModelPlan, sample: Sample, run: int, on_turn: OnTurn) -> _Outcome:
        request = self._request(model, sample, run, on_turn)
        for attempt in range(model.max_retries + 1):
            with stopwatch() as watch:
                try:
                    rollout = await model.target.run(sample, request)
                    return _Outcome(rollout, watch.seconds)
                except ModelUnavailable:
                    raise
                except Exception as error:  # noqa: BLE001 - a target is somebody's code
                    failed = _Outcome(_partial(error), watch.seconds, _target_error(error))
                    permanent = isinstance(error.__cause__, PermanentModelError)
            if attempt == model.max_retries or permanent:
                return failed
            logger.info("sample %s: try %d failed: %s", sample.key, attempt + 1, failed.error)
            await anyio.sleep(_backoff(attempt))
        raise AssertionError("the last try returns")

    def _request(self, model: ModelPlan, sample: Sample, run: int, on_turn: OnTurn) -> RolloutRequest:
        snapshots = _snapshots(self._plan, self._needs, sample)
        return RolloutRequest(
            run=run,
            state=self._needs >= Needs.STATE or snapshots is not Snapshots.NONE,
            snapshots=snapshots,
            timeout=model.timeout,
            cleanup=self._plan.cleanup,
            on_turn=on_turn,
        )


def without_content(result: SampleResult, error: Exception) -> SampleResult:
    """The result of a sample that holds something that cannot be written (a number of 5,000 digits, say)."""
    told = f"{type(error).__name__}: {error}"
    return SampleResult(
        **{name: getattr(result, name) for name in ("sample_id", "model_handle", "timing", "run", "tags", "cluster")},
        stage_keys=result.stage_keys,
        error=SampleError(
            category=ErrorCategory.UNKNOWN,
            exception_type=type(error).__name__,
            message=f"the result cannot be written: {told[:300]}",
        ),
    )


def _needs(plan: RunPlan) -> Needs:
    asked = [need for binding in plan.graders for need in (binding.extractor.needs, binding.grader.needs)]
    return max([*asked, plan.reward.needs if plan.reward else Needs.NOTHING], default=Needs.NOTHING)


def _snapshots(plan: RunPlan, needs: Needs, sample: Sample) -> Snapshots:
    """A metric that grades turns alone and looks at the state needs the state after each turn."""
    by_turn = (
        any(
            max(binding.extractor.needs, binding.grader.needs) >= Needs.STATE
            and graded_turns(binding.view(sample), binding.key) is not None
            for binding in plan.graders
        )
        if needs >= Needs.STATE
        else False
    )
    if needs >= Needs.EVERY_TURN or by_turn or plan.snapshots is Snapshots.EVERY_TURN:
        return Snapshots.EVERY_TURN
    if needs >= Needs.ENDS or plan.snapshots is Snapshots.ENDS:
        return Snapshots.ENDS
    return Snapshots.NONE


def _partial(error: Exception) -> Rollout:
    return (error.rollout if isinstance(error, TargetError) else None) or Rollout()


def _target_error(error: Exception) -> SampleError:
    record = error_record(error, TargetError.category)
    return record.model_copy(update={"timed_out": True}) if isinstance(error, TargetTimeout) else record


def _backoff(attempt: int) -> float:
    """Seconds before the next try: doubled each time, with up to a half taken off at random."""
    return float(min(_FIRST_BACKOFF * 2**attempt, _LONGEST_BACKOFF) * random.uniform(0.5, 1.0))
