"""Runs a plan: keeps samples in flight, writes each result as it ends, and sums up, also after an early stop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType

import anyio
import anyio.abc

from stateval.deadline import is_cancelled
from stateval.errors import (
    DatasetError,
    ExitStatus,
    ModelUnavailable,
    ResultsError,
    RunInterrupted,
    SetupError,
    StatevalError,
)
from stateval.gates import Baselines, evaluate_gates, overall
from stateval.records.result import Observation, SampleResult
from stateval.records.sample import Sample
from stateval.records.summary import Summary
from stateval.records.verdict import Outcome
from stateval.results.directory import ResultsDirectory
from stateval.results.journal import Journal
from stateval.running.events import (
    Event,
    EventChannel,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    TurnFinished,
)
from stateval.running.plan import ModelPlan, OnError, RunPlan, Script
from stateval.running.sample_run import SampleRunner, without_content
from stateval.running.summary import is_finished, summarise
from stateval.stats.table import ObservationTable
from stateval.threads import in_thread

logger = logging.getLogger(__name__)

_SECONDS_TO_CLEAN_UP = 60.0


@dataclass(slots=True)
class RunOutcome:
    """How a run ended. `error` is what stopped it before its end, if something did."""

    summary: Summary
    error: StatevalError | None = None
    stopped_because: str | None = None

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
    channel: EventChannel | None = None,
    handle_signals: bool = False,
    lasting: bool = True,
    baselines: Baselines | None = None,
) -> RunOutcome:
    """Runs the whole plan, on a dataset of so many samples that has been checked, into a directory that was begun.

    With `handle_signals` SIGINT and SIGTERM stop the run cleanly (only in the main thread). Raises SetupError or
    ModelUnavailable before any sample ran; whatever stops the run later is in the outcome, and all that finished is in
    the directory, which is only told of where it is `lasting`.
    """
    runner = _Runner(plan, directory, samples, channel, lasting, baselines)
    with _stopped_by_signals(runner) if handle_signals else nullcontext():
        await runner.run()
    if isinstance(runner.error, ModelUnavailable | SetupError) and not runner.written:
        raise runner.error
    return runner.finish()


@dataclass(slots=True)
class _Runner:
    plan: RunPlan
    directory: ResultsDirectory
    samples: int
    channel: EventChannel | None
    lasting: bool
    baselines: Baselines | None = None
    error: StatevalError | None = None
    stopped_because: str | None = None
    journals: dict[tuple[str, int], Journal] = field(default_factory=dict)
    written: Counter[tuple[str, int]] = field(default_factory=Counter)
    workers: int = 0
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def run(self) -> None:
        """Set-up, all samples, tear-down. Returns also when the run was stopped."""
        plan = self.plan
        try:
            with self.scope:
                for model in plan.models:
                    await model.target.prepare()
                await _run_script(plan.setup, plan)
                self._say(self._started)
                await self._run_samples()
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
            total=self.samples * plan.num_runs * len(plan.models),
            directory=str(self.directory.path) if self.lasting else None,
        )

    def stop(self, reason: str, error: StatevalError | None = None) -> None:
        """Ends the run now: what is in flight is cancelled, what was finished is kept. The first reason stands."""
        if self.stopped_because is None:
            self.stopped_because = reason
            self.error = error
            self.scope.cancel()

    def finish(self) -> RunOutcome:
        """Sums up what there is, judges the gates and writes both."""
        plan = self.plan
        tables = {model.label: self._table(model.label) for model in plan.models}
        finished = is_finished(tables, planned_per_run=self.samples, num_runs=plan.num_runs)
        gates = evaluate_gates(
            plan.gates,
            tables,
            on_error=plan.on_error,
            num_runs=plan.num_runs,
            finished=finished,
            pass_threshold=plan.pass_threshold,
            baselines=self.baselines,
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
        try:
            self.directory.write_summary(summary)
            self.directory.finish(stopped_because=self.stopped_because)
        except ResultsError as error:
            self.stop(str(error), error)
        self._say(lambda: RunFinished(summary=summary))
        return RunOutcome(summary, self.error, self.stopped_because)

    async def _run_samples(self) -> None:
        runner = SampleRunner(self.plan)
        items = self._items()
        async with anyio.create_task_group() as tasks:
            self._start_worker(tasks, runner, items)

    def _start_worker(self, tasks: anyio.abc.TaskGroup, runner: SampleRunner, items: Iterator[_Item]) -> None:
        """Workers start one another as long as there are samples, so that a million allowed slots cost nothing."""
        if self.workers < self.plan.max_concurrent:
            self.workers += 1
            tasks.start_soon(self._work, tasks, runner, items)

    async def _work(self, tasks: anyio.abc.TaskGroup, runner: SampleRunner, items: Iterator[_Item]) -> None:
        try:
            for model, sample, run in items:
                self._start_worker(tasks, runner, items)
                await self._run_sample(runner, model, sample, run)
        except StatevalError as error:
            self.stop(str(error), error)

    async def _run_sample(self, runner: SampleRunner, model: ModelPlan, sample: Sample, run: int) -> None:
        self._say(lambda: SampleStarted(model=model.label, run=run, sample_id=sample.key))
        loop = asyncio.get_running_loop()

        def on_turn(turn: int, turns: int) -> None:
            """Called from an agent's thread too; a sample of one turn has nothing to tell on its way."""
            if turns > 1:
                event = TurnFinished(model=model.label, run=run, sample_id=sample.key, turn=turn, turns=turns)
                loop.call_soon_threadsafe(self._say, lambda: event)

        result = self._keep(model, run, await runner.run(model, sample, run, on_turn))
        if result.error is not None and self.plan.on_error is OnError.STOP:
            self.stop(f"sample {sample.key} errored and `on_error` is `stop`: {result.error.message}")

    def _keep(self, model: ModelPlan, run: int, result: SampleResult) -> SampleResult:
        """Writes a result and tells of it; one that cannot be written is kept as the error that it is."""
        key = (model.label, run)
        if key not in self.journals:
            self.journals[key] = self.directory.journal(*key)
        try:
            seen = self.journals[key].append(result)
        except (ValueError, TypeError, RecursionError) as error:
            result = without_content(result, error)
            seen = self.journals[key].append(result)
        self.written[key] += 1
        if self.written[key] == self.samples:
            self.journals.pop(key).close()
        self._say(lambda: _finished_event(model, run, seen, result, self.directory.scrub))
        return result

    def _items(self) -> Iterator[_Item]:
        for model in self.plan.models:
            for run in range(1, self.plan.num_runs + 1):
                for number, sample in enumerate(self.plan.dataset):
                    if number == self.samples:
                        raise DatasetError("the dataset has more rows than when it was checked; run again")
                    yield model, sample, run

    def _table(self, label: str) -> ObservationTable:
        table = ObservationTable(self.plan.metric_keys)
        for observation in self.directory.observations(label):
            table.add(observation)
        written = sum(count for (written_to, _), count in self.written.items() if written_to == label)
        if len(table) != written:
            lost = f"{written} results were written below {self.directory.path} and {len(table)} can be read"
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
            await _run_script(self.plan.teardown, self.plan)
        except SetupError as error:
            logger.warning("%s", error)
        for model in self.plan.models:
            await model.target.close()


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
        seconds=seen.timing.total,
    )


async def _run_script(script: Script | None, plan: RunPlan) -> None:
    """A function with `client` gets None: targets without a Letta server have no client to hand out."""
    if script is None:
        return
    calls: list[tuple[str | None, ...]] = [(None,) * script.parameters]
    if script.parameters == 2:
        calls = [(None, model.model_handle) for model in plan.models]
    for arguments in calls:
        try:
            if inspect.iscoroutinefunction(script.function):
                await script.function(*arguments)
            else:
                await in_thread(script.function, *arguments)
        except BaseException as error:
            if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and is_cancelled()):
                raise
            told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise SetupError(f"`{script.reference}` raised {told}") from error


@contextmanager
def _stopped_by_signals(runner: _Runner) -> Iterator[None]:
    """SIGINT and SIGTERM stop the run; a second one ends the program at once, whatever users' code does meanwhile.

    The handlers are those of the interpreter, not of the event loop: an agent may block the loop.
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            os._exit(ExitStatus.INTERRUPTED)
        received.append(number)
        reason = f"interrupted by {signal.Signals(number).name}"
        loop.call_soon_threadsafe(runner.stop, reason, RunInterrupted(reason))

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
