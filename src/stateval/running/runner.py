"""Runs a plan: keeps samples in flight, writes each result as it ends, and sums up, also after an early stop."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field

import anyio
import anyio.abc
import anyio.lowlevel

from stateval.errors import (
    DatasetError,
    ExitStatus,
    ModelUnavailable,
    ResultsError,
    SetupError,
    StatevalError,
)
from stateval.gates import Baselines, JudgeChecks, evaluate_gates, overall
from stateval.records.digest import digest_of
from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.records.summary import Summary
from stateval.records.verdict import Outcome
from stateval.redaction import hidden
from stateval.results.directory import ResultsDirectory
from stateval.results.journal import Journal
from stateval.running.baseline import with_judges
from stateval.running.events import (
    Event,
    EventChannel,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    TurnFinished,
)
from stateval.running.judge_checks import with_answered
from stateval.running.judging import Judges
from stateval.running.kept import NOTHING_KEPT, Kept, Slot
from stateval.running.limits import Meter
from stateval.running.plan import ModelPlan, OnError, RunPlan
from stateval.running.sample_run import OnTurn, SampleRunner, without_content
from stateval.running.scripts import run_script
from stateval.running.signals import stopped_by_signals
from stateval.running.summary import is_finished, summarise
from stateval.stats.table import ObservationTable

logger = logging.getLogger(__name__)

_SECONDS_TO_CLEAN_UP = 60.0
_SECONDS_WITHOUT_GIVING_WAY = 0.05


@dataclass(slots=True)
class RunOutcome:
    """How a run ended. `error` is what stopped it before its end, if something did.

    `notes` say what became of an earlier start of it. `can_go_on`: the same command would find something left to do.
    """

    summary: Summary
    error: StatevalError | None = None
    stopped_because: str | None = None
    notes: tuple[str, ...] = ()
    can_go_on: bool = True

    @property
    def outcome(self) -> Outcome | None:
        """The gates' outcome; None without gates that count."""
        return overall(self.summary.gates)

    @property
    def exit_status(self) -> ExitStatus:
        """What the command returns; the order of precedence is that of `ExitStatus`."""
        if isinstance(self.error, ModelUnavailable):
            return ExitStatus.UNFINISHED  # something had run, or there would be no outcome
        if self.error is not None:
            return self.error.exit_status
        if not self.summary.finished or all_errored(self.summary):
            return ExitStatus.UNFINISHED
        match self.outcome:
            case Outcome.FAIL:
                return ExitStatus.GATE_FAILED
            case Outcome.INCONCLUSIVE:
                return ExitStatus.INCONCLUSIVE
        return ExitStatus.PASSED


def all_errored(summary: Summary) -> bool:
    """Whether not one observation was made without an error."""
    return all(model.n_attempted == 0 for model in summary.models)


async def run_plan(
    plan: RunPlan,
    directory: ResultsDirectory,
    *,
    samples: int,
    kept: Kept = NOTHING_KEPT,
    channel: EventChannel | None = None,
    handle_signals: bool = False,
    lasting: bool = True,
    baselines: Baselines | None = None,
    judge_checks: JudgeChecks | None = None,
) -> RunOutcome:
    """Runs the whole plan, on a dataset of so many samples that has been checked, into a directory that was begun.

    What is `kept` of an earlier start, or of another run that is graded anew, is not computed again.
    With `handle_signals` SIGINT and SIGTERM stop the run cleanly (only in the main thread). Raises SetupError or
    ModelUnavailable before any sample ran; whatever stops the run later is in the outcome, and all that finished is in
    the directory, which is only told of where it is `lasting`.
    """
    runner = _Runner(plan, directory, samples, kept, channel, lasting, baselines, judge_checks)
    with stopped_by_signals(runner.stop) if handle_signals else nullcontext():
        await runner.run()
    if isinstance(runner.error, ModelUnavailable | SetupError) and not runner.written:
        raise runner.error
    return runner.finish()


@dataclass(slots=True)
class _Runner:
    plan: RunPlan
    directory: ResultsDirectory
    samples: int
    kept: Kept
    channel: EventChannel | None
    lasting: bool
    baselines: Baselines | None = None
    judge_checks: JudgeChecks | None = None
    error: StatevalError | None = None
    stopped_because: str | None = None
    journals: dict[Slot, Journal] = field(default_factory=dict)
    written: Counter[Slot] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    not_kept: int = 0
    gave_way: float = 0.0
    left: int = field(init=False)
    meter: Meter = field(init=False)
    judges: Judges = field(init=False)
    workers: int = 0
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def __post_init__(self) -> None:
        self.left = self.total - self.kept.n_done
        self.meter = Meter(self.plan.limits)
        self.judges = Judges(self.plan.graders)

    @property
    def total(self) -> int:
        """How many observations there are to be."""
        return self.samples * self.plan.num_runs * len(self.plan.models)

    async def run(self) -> None:
        """Set-up, all samples, tear-down. Returns also when the run was stopped."""
        plan = self.plan
        minutes = plan.limits.minutes
        try:
            if minutes is not None:
                self.scope.deadline = anyio.current_time() + 60 * minutes
            with self.scope:
                for model in () if self.kept.only_kept or not self.left else plan.models:
                    await model.target.prepare()
                await run_script(plan.setup, plan)
                self._say(self._started)
                await self._run_samples()
            if self.scope.cancelled_caught and minutes is not None:
                self.stop(f"the limit of {minutes:g} minutes is reached")
        except (ModelUnavailable, SetupError) as error:
            self.stop(str(error), error)
        finally:
            with anyio.move_on_after(_SECONDS_TO_CLEAN_UP, shield=True):
                await self._clean_up()

    def _started(self) -> RunStarted:
        plan = self.plan
        return RunStarted(
            suite=plan.name,
            models=tuple(model.label for model in plan.models),
            samples=self.samples,
            runs=plan.num_runs,
            total=self.total,
            directory=str(self.directory.path) if self.lasting else None,
            done=self.kept.n_done,
            notes=(*self._servers(), *self.kept.notes),
        )

    def _servers(self) -> Iterator[str]:
        """Which servers the targets talk to, each once."""
        servers = (getattr(model.target, "server", None) for model in self.plan.models)
        yield from dict.fromkeys(f"the Letta server is {server}" for server in servers if server is not None)

    def stop(self, reason: str, error: StatevalError | None = None) -> None:
        """Ends the run now: what is in flight is cancelled, what was finished is kept. The first reason stands."""
        if self.stopped_because is None:
            self.stopped_because = reason
            self.error = error
            self.scope.cancel()

    def finish(self) -> RunOutcome:
        """Sums up what there is, judges the gates and writes both."""
        plan = self.plan
        if self.not_kept and self.stopped_because is None:
            self.stopped_because = f"{self.not_kept:,} observations have no kept conversation that fits their row"
        tables = {model.label: self._table(model.label) for model in plan.models}
        reached = is_finished(tables, planned_per_run=self.samples, num_runs=plan.num_runs)
        finished = reached and not self.left  # a line whose grades were to be computed anew is none of today's yet
        gates = evaluate_gates(
            plan.gates,
            tables,
            on_error=plan.on_error,
            num_runs=plan.num_runs,
            finished=finished,
            pass_threshold=plan.pass_threshold,
            baselines=with_judges(self.baselines or {}, plan, self.directory.judges),
            judge_checks=with_answered(self.judge_checks or {}, self.directory.judges),
        )
        summary = summarise(
            plan.name,
            tables,
            planned_per_run=self.samples,
            num_runs=plan.num_runs,
            has_reward=plan.reward is not None,
            on_error=plan.on_error,
            pass_threshold=plan.pass_threshold,
            gates=gates,
            stopped_because=self.stopped_because,
        )
        summary = summary.model_copy(update={"finished": finished, "judging": self.judges.summary()})
        try:
            if finished and self.directory.record.mixed:
                self.directory.compact()
            self.directory.write_summary(summary)
            self.directory.finish(finished=finished, stopped_because=self.stopped_because)
        except ResultsError as error:
            self.stop(str(error), error)
        self._say(lambda: RunFinished(summary=summary))
        return RunOutcome(summary, self.error, self.stopped_because, self.kept.notes, can_go_on=not self.not_kept)

    async def _run_samples(self) -> None:
        runner = SampleRunner(self.plan)
        items = self._items()
        async with anyio.create_task_group() as tasks:
            self._start_worker(tasks, runner, items)
        if runner.unavailable is not None:
            self.stop(f"a judge cannot be had: {runner.unavailable}", runner.unavailable)

    def _start_worker(self, tasks: anyio.abc.TaskGroup, runner: SampleRunner, items: Iterator[_Item]) -> None:
        """Workers start one another as long as there are samples, so that a million allowed slots cost nothing."""
        if self.workers < self.plan.most_at_once:
            self.workers += 1
            tasks.start_soon(self._work, tasks, runner, items)

    async def _work(self, tasks: anyio.abc.TaskGroup, runner: SampleRunner, items: Iterator[_Item]) -> None:
        try:
            for model, sample, run in items:
                self._start_worker(tasks, runner, items)
                await self._let_others_run()
                await self._run_sample(runner, model, sample, run)
                if runner.unavailable is not None:
                    return  # what is in flight has conversations that are not to be lost
        except StatevalError as error:
            self.stop(str(error), error)

    async def _let_others_run(self) -> None:
        """Gives way now and then: agents and graders that never wait would keep signals and the screen waiting."""
        now = time.monotonic()
        if now - self.gave_way > _SECONDS_WITHOUT_GIVING_WAY:
            self.gave_way = now
            await anyio.lowlevel.checkpoint()

    async def _run_sample(self, runner: SampleRunner, model: ModelPlan, sample: Sample, run: int) -> None:
        self._say(lambda: SampleStarted(model=model.label, run=run, sample_id=sample.key))
        result = await self._graded_anew(runner, model, sample, run)
        is_kept = result is not None
        if result is None and not self.kept.only_kept:
            result = await runner.run(model, sample, run, self._on_turn(model, sample, run))
        self.left -= 1
        if result is None:
            self.not_kept += 1
            return
        seen = self._keep(model, run, result)
        if result.error is not None and self.plan.on_error is OnError.STOP:
            self.stop(f"sample {sample.key} errored and `on_error` is `stop`: {result.error.message}")
        self.meter.judged = self.judges.usage
        reached = self.meter.add(seen, has_run=not is_kept)
        if reached is not None and self.left:
            self.stop(reached)

    async def _graded_anew(
        self, runner: SampleRunner, model: ModelPlan, sample: Sample, run: int
    ) -> SampleResult | None:
        """The result of the sample's kept conversation; None where it has none that fits."""
        reader = self.kept.again.get((model.label, run))
        kept = reader(digest_of(sample.key)) if reader else None
        may_run = not self.kept.only_kept
        return await runner.regrade(model, sample, run, kept, may_run=may_run) if kept else None

    def _on_turn(self, model: ModelPlan, sample: Sample, run: int) -> OnTurn:
        loop = asyncio.get_running_loop()

        def on_turn(turn: int, turns: int) -> None:
            """Called from an agent's thread too; a sample of one turn has nothing to tell on its way."""
            if turns > 1:
                event = TurnFinished(model=model.label, run=run, sample_id=sample.key, turn=turn, turns=turns)
                loop.call_soon_threadsafe(self._say, lambda: event)

        return on_turn

    def _keep(self, model: ModelPlan, run: int, result: SampleResult) -> Observation:
        """Writes a result and tells of it; one that cannot be written is kept as the error that it is."""
        slot = (model.label, run)
        result = self._without_environment(result)
        if slot not in self.journals:
            self.journals[slot] = self.directory.journal(*slot)
        for metric, grade in result.grades.items():
            if grade.judging is not None:
                self.directory.add_judges(metric, grade.judging.answered)
        try:
            seen = self.journals[slot].append(result)
        except (ValueError, TypeError, RecursionError) as error:
            result = without_content(result, error)
            seen = self.journals[slot].append(result)
        self.written[slot] += 1
        present = self.kept.present.get(slot, ())
        self.new[model.label] += not present or digest_of(seen.sample_id) not in present
        if self.written[slot] + self.kept.count_done(slot) == self.samples:
            self.journals.pop(slot).close()
        self._say(lambda: _finished_event(model, run, seen, result, self.directory.scrub))
        return seen

    def _without_environment(self, result: SampleResult) -> SampleResult:
        """The result without the environment that its agent's factory handed on: what stands in it may be secret."""
        environment = (result.context or {}).get("env")
        if not isinstance(environment, dict) or not environment:
            return result
        self.directory.add_secrets(map(str, environment.values()))
        return result.model_copy(update={"context": {**(result.context or {}), "env": hidden(environment)}})

    def _items(self) -> Iterator[_Item]:
        for model in self.plan.models:
            for run in range(1, self.plan.num_runs + 1):
                for sample in self._samples_of(model.label, run):
                    yield model, sample, run

    def _samples_of(self, label: str, run: int) -> Iterator[Sample]:
        """The samples that are not done in this run of a model."""
        done = self.kept.done.get((label, run))
        if done:
            if len(done) < self.samples:
                yield from self.plan.dataset.unfinished(lambda key: digest_of(key) in done)
            return
        for number, sample in enumerate(self.plan.dataset):
            if number == self.samples:
                raise DatasetError("the dataset has more rows than when it was checked; run again")
            yield sample

    def _table(self, label: str) -> ObservationTable:
        table = ObservationTable.of(self.directory.observations(label), self.plan.metric_keys)
        expected = self.kept.n_present(label) + self.new[label]
        if len(table) != expected:
            lost = f"{expected} results were written below {self.directory.path} and {len(table)} can be read"
            self.stop(f"{lost}: something else removed or changed them", ResultsError(lost))
        return table

    def _say(self, event: Callable[[], Event]) -> None:
        if self.channel is not None:
            self.channel.send(event())

    async def _clean_up(self) -> None:
        for journal in self.journals.values():
            journal.close()
        self.journals.clear()
        try:
            await run_script(self.plan.teardown, self.plan)
        except SetupError as error:
            logger.warning("%s", error)
        for model in self.plan.models:
            await model.target.close()
        await self.judges.close()


_Item = tuple[ModelPlan, Sample, int]


def _finished_event(
    model: ModelPlan, run: int, seen: Observation, result: SampleResult, scrub: Callable[[str], str]
) -> SampleFinished:
    return SampleFinished(
        model=model.label,
        run=run,
        sample_id=seen.sample_id,
        scores=seen.scores,
        reward=seen.reward,
        error=scrub(f"{result.error.category}: {result.error.message}") if result.error else None,
        seconds=None if math.isnan(seen.timing.total) else seen.timing.total,
    )
