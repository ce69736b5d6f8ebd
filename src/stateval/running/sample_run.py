"""One sample, from its row to its result."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from stateval.deadline import Stopwatch, stopwatch
from stateval.errors import ModelUnavailable, PermanentModelError, TargetError, TargetTimeout
from stateval.records.grade import RewardOutput
from stateval.records.protocols import Needs, RolloutRequest, Snapshots
from stateval.records.result import ErrorCategory, SampleError, SampleResult, StageKeys
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
from stateval.running.kept import has_conversation
from stateval.running.keys import StageKeyMaker
from stateval.running.plan import GraderBinding, ModelPlan, RunPlan

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
    """Takes samples through target, extraction, grading and reward, as a plan says.

    `unavailable` is set where a judge cannot be had at all: that sample has its conversation and the error.
    """

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._keys = StageKeyMaker(plan)
        self._needs = _needs(plan)
        self.unavailable: ModelUnavailable | None = None

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
                    cluster=model.cluster_of(sample),
                )

    async def regrade(
        self, model: ModelPlan, sample: Sample, run: int, kept: SampleResult, *, may_run: bool
    ) -> SampleResult | None:
        """The result of a kept conversation by today's extractors, graders and composer; the target is not run.

        Grades and a reward whose inputs are the same are taken over, errors never. A sample that had no finished
        conversation keeps its error. None where the row that the agent saw is not today's, and, if the target
        `may_run`, where a grader needs the agent's state and none was kept. Raises ModelUnavailable.
        """
        before = kept.stage_keys
        keys = self._keys.keys(model, sample, run, kept=before)
        if before and before.input and before.input != keys.input:
            return None
        changes = {"run": run, "stage_keys": keys, "tags": sample.tags or None, "cluster": model.cluster_of(sample)}
        if kept.error is not None and not has_conversation(kept.error.category):
            return kept.model_copy(update=changes)
        rollout = kept.rollout()
        grading = _taken_over(kept, before, keys)
        missing = [binding for binding in self._plan.graders if binding.key not in grading.grades]
        if may_run and _lacks_state(kept, missing):
            return None
        grading = await self._grade(sample, rollout, missing, run, grading)
        if len(missing) < len(self._plan.graders):
            grading = grading.in_order(binding.key for binding in self._plan.graders)
        timing = _regraded_timing(kept.timing, grading)
        is_same = before is not None and not missing and before.reward == keys.reward
        reward, error = await self._reward(
            sample, rollout, grading, timing, grading.first_error, kept.reward if is_same else None
        )
        return kept.model_copy(
            update={
                **changes,
                "submissions": grading.submissions,
                "grades": grading.grades,
                "reward": reward,
                "timing": timing,
                "error": error,
                "grade_errors": grading.errors or None,
                "model_handle": kept.model_handle or model.model_handle,
            }
        )

    async def _run(self, model: ModelPlan, sample: Sample, run: int, on_turn: OnTurn, watch: Stopwatch) -> SampleResult:
        outcome = await self._roll_out(model, sample, run, on_turn)
        grading = Grading()
        if outcome.error is None:
            grading = await self._grade(sample, outcome.rollout, self._plan.graders, run, grading)
        timing = Timing(
            total=watch.seconds,
            target=outcome.seconds,
            extraction=grading.extraction_seconds if grading.seconds else None,
            per_grader=grading.seconds or None,
        )
        rollout = outcome.rollout
        reward, error = await self._reward(sample, rollout, grading, timing, outcome.error or grading.first_error)
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
            cluster=model.cluster_of(sample),
        )

    async def _grade(
        self, sample: Sample, rollout: Rollout, bindings: Sequence[GraderBinding], run: int, begun: Grading
    ) -> Grading:
        grading = await grade_rollout(sample, rollout, bindings, run=run, begun=begun)
        self.unavailable = self.unavailable or grading.unavailable
        return grading

    async def _reward(
        self,
        sample: Sample,
        rollout: Rollout,
        grading: Grading,
        timing: Timing,
        error: SampleError | None,
        known: RewardOutput | None = None,
    ) -> tuple[RewardOutput | None, SampleError | None]:
        """The reward where there is no error, and the error, which may be that of the composer."""
        if error is not None or self._plan.reward is None or known is not None:
            return known, error
        try:
            return await compose_reward(self._plan.reward, reward_context(sample, rollout, grading, timing)), None
        except ModelUnavailable:
            raise
        except Exception as failure:  # noqa: BLE001 - composers are users' code
            return None, error_record(failure, "reward")

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


def _taken_over(kept: SampleResult, before: StageKeys | None, today: StageKeys) -> Grading:
    """The grades that stand on the same inputs as today's would."""
    grading = Grading()
    if before is None:
        return grading
    for key, grade in kept.grades.items():
        if key in today.grades and before.grades.get(key) == today.grades[key]:
            grading.grades[key] = grade
            grading.seconds[key] = (kept.timing.per_grader or {}).get(key, 0.0)
            if key in kept.submissions:
                grading.submissions[key] = kept.submissions[key]
    return grading


def _lacks_state(kept: SampleResult, bindings: Sequence[GraderBinding]) -> bool:
    """Whether these metrics look at more of the agent's state than was kept."""
    needs = max(
        [need for binding in bindings for need in (binding.extractor.needs, binding.grader.needs)],
        default=Needs.NOTHING,
    )
    return (needs >= Needs.STATE and kept.agent_state is None) or (needs >= Needs.ENDS and kept.snapshots is None)


def _regraded_timing(kept: Timing, grading: Grading) -> Timing:
    return kept.model_copy(
        update={
            "total": kept.target + sum(grading.seconds.values()),
            "extraction": grading.extraction_seconds if grading.seconds else None,
            "per_grader": grading.seconds or None,
        }
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
