"""`EvalSuite` and what it is made of."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import anyio
from pydantic import ValidationError

from stateval.api import arguments
from stateval.api.results import EvalResults
from stateval.datasets import SplitSpec, open_dataset, select
from stateval.errors import ExitStatus, GateFailed, GateInconclusive, RunUnfinished, UsageError
from stateval.extractors import make_extractor
from stateval.gates import NamedGate, SimpleGate, check_gates, parse_gates, with_paths_below
from stateval.graders import make_tool_grader
from stateval.graders.judging import ModelJudge
from stateval.loading.fingerprint import fingerprint_of
from stateval.records.protocols import Extractor, Grader, RewardComposer, Snapshots, Target
from stateval.records.verdict import GateVerdict, Outcome
from stateval.rewards import CustomReward, MetricReward
from stateval.running.judge_checks import judge_check_problems
from stateval.running.limits import Limits
from stateval.running.plan import GraderBinding, ModelPlan, OnError, RunPlan, Script
from stateval.running.prices import price_problems
from stateval.running.session import Destination, already_checked, find_destination, run_session
from stateval.suite.build import build_plan, check_plan
from stateval.suite.load import load_suite
from stateval.suite.spec import LimitsSpec
from stateval.targets.letta_factory import LettaFactory, takes_client
from stateval.targets.python_target import PythonTarget

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class EvalGate:
    """The least mean score that passes.

    `metric_key` names a grader; without it the gate stands on the reward, which with one grader is that grader's
    score. Observations with an error count as the suite's `on_error` says. With `confidence` (such as 0.95) the gate
    passes only where the whole interval of the mean lies at or above `min_score`, fails where it lies below, and is
    inconclusive else; with `min_n` it is inconclusive on fewer samples.
    """

    min_score: float
    metric_key: str | None = None
    confidence: float | None = None
    min_n: int | None = None

    def named(self) -> NamedGate:
        """The same as a gate of a suite file."""
        said = {"confidence": self.confidence, "min_n": self.min_n}
        return NamedGate(
            gate=SimpleGate(metric_key=self.metric_key or "reward", op="gte", value=self.min_score, **said)
        )


@dataclass(frozen=True, slots=True)
class AgentEvalTarget:
    """An agent to evaluate, made anew for every sample; exactly one of the first three says where from.

    Args:
        agent_factory: `(sample)` or `(sample, model_handle)`, sync or async: returns an object with `send(message)`; or
            `(client, sample)`: makes an agent on a Letta server and returns its id, or `(id, context)`.
        model_handles: models that each run the whole suite; handed to a factory that takes a handle.
        timeout: seconds for one sample's conversation.
        max_retries: tries after the first, for samples whose conversation failed.
        agent_file: a Letta agent file, of which every sample gets a fresh clone on a Letta server.
        agent_id: a live agent on a Letta server, the same for every sample; it is never deleted.
        base_url: the Letta server; `LETTA_BASE_URL` unless given. So for `api_key` and `project_id`.
        return_token_data: whether exact token ids and log-probabilities are kept, where the server has them.
    """

    agent_factory: Callable[..., Any] | None = None
    model_handles: Sequence[str] = ()
    timeout: float = 300.0
    max_retries: int = 0
    agent_file: str | Path | None = None
    agent_id: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    project_id: str | None = None
    return_token_data: bool = False

    def plans(self) -> Iterator[ModelPlan]:
        """One plan a model."""
        arguments.number("timeout", self.timeout, least=1e-9)
        arguments.count("max_retries", self.max_retries, least=0)
        handles = arguments.texts("model_handles", self.model_handles)
        if len(set(handles)) < len(handles):
            raise UsageError("`model_handles` names a model twice")
        if sum(source is not None for source in (self.agent_factory, self.agent_file, self.agent_id)) != 1:
            raise UsageError("give an AgentEvalTarget exactly one of `agent_factory`, `agent_file` and `agent_id`")
        if self.agent_factory is not None and not callable(self.agent_factory):
            raise UsageError(f"`agent_factory` is a {type(self.agent_factory).__name__}, not a function")
        for handle in handles or (None,):
            yield ModelPlan(
                handle or "default",
                self._target(handle),
                handle,
                self.timeout,
                self.max_retries,
                shared_agent=self.agent_id,
            )

    def _target(self, handle: str | None) -> Target:
        factory = self.agent_factory
        if factory is not None and not takes_client(factory):
            return PythonTarget(factory, model_handle=handle, fingerprint=fingerprint_of(factory))
        from stateval.letta.connection import LettaServer
        from stateval.targets.letta_agent import LettaAgentTarget

        makes = None
        if factory is not None:
            makes = LettaFactory(factory, getattr(factory, "__name__", "agent_factory"), fingerprint_of(factory))
        return LettaAgentTarget(
            LettaServer.of(base_url=self.base_url, api_key=self.api_key, project_id=self.project_id),
            agent_file=None if self.agent_file is None else arguments.path("agent_file", self.agent_file),
            agent_id=None if self.agent_id is None else arguments.text("agent_id", self.agent_id),
            factory=makes,
            model_handle=handle,
            token_data=self.return_token_data,
        )


GraderLike = Grader | Callable[..., Any] | str
ExtractorLike = Extractor | Callable[..., Any] | str
MetricLike = GraderLike | tuple[GraderLike, ExtractorLike]


class EvalSuite:
    """A dataset, an agent, graders and a gate. Everything that is wrong with them is said when it is made or run.

    Args:
        dataset: a path, a list of rows (dicts or `Sample`), any iterable of rows, or a mapping of a path and columns.
        target: an `AgentEvalTarget`, a target, or a factory of agents.
        grader: one grader: `graders.contains()`, the name of a built-in one, or a function marked `@grader`.
        graders: several, by metric key; a value may be a pair of grader and extractor.
        extractor: what is graded where a grader has no extractor of its own; the agent's last message by default.
        gate: an `EvalGate`, or what a suite file says under `gate`.
        reward: a metric's key, or a function marked `@reward_composer`; with one grader that grader by default.
        name: what results are called.
        split: `{"holdout": 0.2, "seed": 7, "use": "dev"}`.
        num_runs: repeats of the whole suite.
        output: the results directory, made absolute at once; a new one below `.stateval/runs` by default.
        limits: what one run may use before it is stopped: `cost_usd`, `tokens`, `minutes`, `errors`.
        setup: a function that runs first: of `()`, `(client)`, or, once a model, `(client, model_handle)`, where
            `client` is that of a Letta server.
        cleanup: whether agents on a Letta server, and their blocks, are deleted when their conversations are over.

    The other arguments are those of a suite file. Relative paths are relative to the current directory.

    Raises UsageError or DatasetError for arguments that fit nothing.
    """

    runs_begun: ClassVar[int] = 0
    """How many runs of suites this process has begun."""

    def __init__(
        self,
        *,
        dataset: Any,
        target: AgentEvalTarget | Target | Callable[..., Any],
        grader: GraderLike | None = None,
        graders: Mapping[str, MetricLike] | None = None,
        extractor: ExtractorLike | None = None,
        gate: EvalGate | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        reward: str | Callable[..., Any] | None = None,
        name: str = "suite",
        split: Mapping[str, Any] | None = None,
        num_runs: int = 1,
        output: str | Path | None = None,
        max_concurrent: int = 15,
        max_samples: int | None = None,
        sample_tags: Sequence[str] = (),
        exclude_tags: Sequence[str] = (),
        snapshots: str = "none",
        on_error: str = "fail",
        limits: Mapping[str, float] | None = None,
        pass_threshold: float = 1.0,
        setup: Callable[..., Any] | None = None,
        cleanup: bool = False,
    ) -> None:
        arguments.text("name", name)
        arguments.count("num_runs", num_runs, most=arguments.MOST_RUNS)
        arguments.count("max_concurrent", max_concurrent)
        arguments.number("pass_threshold", pass_threshold, least=0, most=1)
        bindings = tuple(_bindings(grader, graders, extractor))
        composer = _reward(reward, bindings)
        gates = with_paths_below(_gates(gate), Path.cwd())
        _refuse(_wrong_gates(gates, bindings, composer))
        models = tuple(_models(target))
        rows = select(
            open_dataset(dataset, base_directory=Path.cwd()),
            tags=arguments.texts("sample_tags", sample_tags, single=True),
            exclude_tags=arguments.texts("exclude_tags", exclude_tags, single=True),
            split=_checked(SplitSpec.model_validate, split, "split") if split is not None else None,
            max_samples=None if max_samples is None else arguments.count("max_samples", max_samples),
        )
        self._output = arguments.path("output", output) if output is not None else None
        self._plan = RunPlan(
            name=name,
            dataset=rows,
            models=models,
            graders=bindings,
            reward=composer,
            gates=gates,
            num_runs=num_runs,
            max_concurrent=max_concurrent,
            snapshots=_choice(Snapshots, snapshots, "snapshots"),
            on_error=_choice(OnError, on_error, "on_error"),
            limits=_limits(limits or {}, models, bindings),
            pass_threshold=pass_threshold,
            setup=_script(setup),
            cleanup=cleanup,
            secrets=frozenset(_keys(bindings, target)),
            config={"name": name, "num_runs": num_runs, "max_concurrent": max_concurrent, "on_error": on_error},
        )

    @classmethod
    def from_file(cls, path: str | Path, *, cache: bool = True) -> Self:
        """The suite that a suite file describes; `cache` says whether judges use the answers that are kept.

        Raises SuiteError or DatasetError.
        """
        arguments.path("path", path)
        loaded = load_suite(path)
        suite = cls.__new__(cls)
        suite._plan = build_plan(loaded, cache=cache)
        suite._output = loaded.output
        return suite

    def run(
        self,
        *,
        check: bool = True,
        save: bool = True,
        fresh: bool = False,
        resume: bool | str | Path = False,
        retry_errors: bool = False,
        cached: str | Path | None = None,
    ) -> EvalResults:
        """Runs the suite and returns its results; works inside a running event loop too (it waits there).

        An unfinished run of this suite goes on: the one in `output`, else the latest below `.stateval/runs`.

        Args:
            check: whether a run that did not finish, or a gate that does not pass, raises.
            save: whether results stay on the disk.
            fresh: whether to begin anew; an unfinished run in `output` is moved to its history.
            resume: True, or the directory of the run: it must be there to go on, and a finished one goes on too.
            retry_errors: whether samples that errored run again, also those of a finished run.
            cached: results whose conversations are graded anew; the agent is not run.

        Raises GateFailed, GateInconclusive or RunUnfinished, which carry the results; RunInterrupted, ModelUnavailable,
        StorageFull when the run was stopped; DatasetError, SetupError, UsageError before anything ran.
        """
        signals = threading.current_thread() is threading.main_thread() and not _loop_is_running()
        wanted = self._destination(save, fresh, resume, retry_errors, cached)
        return _wait(partial(self._run, wanted, check=check, signals=signals))

    async def run_async(
        self,
        *,
        check: bool = True,
        save: bool = True,
        fresh: bool = False,
        resume: bool | str | Path = False,
        retry_errors: bool = False,
        cached: str | Path | None = None,
    ) -> EvalResults:
        """The asynchronous twin of `run`."""
        wanted = self._destination(save, fresh, resume, retry_errors, cached)
        return await self._run(wanted, check=check, signals=False)

    def _destination(
        self, save: bool, fresh: bool, resume: bool | str | Path, retry_errors: bool, cached: str | Path | None
    ) -> Destination:
        named = None if isinstance(resume, bool) else arguments.path("resume", resume)
        return Destination(
            path=(named or self._output) if save else None,
            save=save,
            fresh=fresh,
            resume=resume is not False,
            retry_errors=retry_errors,
            cached=arguments.path("cached", cached) if cached is not None else None,
        )

    async def _run(self, wanted: Destination, *, check: bool, signals: bool) -> EvalResults:
        EvalSuite.runs_begun += 1
        destination = find_destination(self._plan, wanted)
        known = already_checked(self._plan, destination)
        samples = check_plan(self._plan).count if known is None else known
        session = await run_session(
            self._plan, samples=samples, destination=destination, handle_signals=signals, tell=logger.warning
        )
        results = EvalResults(session)
        if session.outcome.error is not None:
            raise session.outcome.error
        if check:
            _raise_unless_finished(results)
            _raise_unless_passed(results)
        return results


def _script(setup: Callable[..., Any] | None) -> Script | None:
    if setup is None:
        return None
    return Script(setup, getattr(setup, "__name__", "setup"), arguments.set_up("setup", setup))


def _wait(function: Callable[[], Awaitable[_T]]) -> _T:
    """The result of an async function; in a running loop it is computed in a thread with a loop of its own."""
    if not _loop_is_running():
        return anyio.run(function)
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(anyio.run, function).result()


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _raise_unless_finished(results: EvalResults) -> None:
    if results.exit_status is ExitStatus.UNFINISHED:
        why = results.summary.stopped_because
        told = why or ("every sample errored" if results.summary.finished else "not every planned sample was reached")
        raise RunUnfinished(f"the run did not finish: {told}; results: {results.path}", results)


def _raise_unless_passed(results: EvalResults) -> None:
    if results.outcome in (None, Outcome.PASS):
        return
    told = "; ".join(_told(verdict) for verdict in results.summary.gates if verdict.outcome is not Outcome.PASS)
    kind = GateFailed if results.outcome is Outcome.FAIL else GateInconclusive
    raise kind(f"the gate is {results.outcome}: {told}; results: {results.path}", results)


def _told(verdict: GateVerdict) -> str:
    measured = "" if verdict.measured is None else f", measured {verdict.measured:g}"
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return f"{verdict.condition}{measured}, n = {verdict.n}{reason}"


def _bindings(
    grader: GraderLike | None, graders: Mapping[str, MetricLike] | None, extractor: ExtractorLike | None
) -> Iterator[GraderBinding]:
    if (grader is None) == (not graders):
        raise UsageError("give an EvalSuite exactly one of `grader` and `graders`, and at least one grader")
    metrics = arguments.mapping("graders", graders) if grader is None else {"grader": grader}
    for key, metric in metrics.items():
        if isinstance(metric, tuple) and len(metric) != 2:
            raise UsageError(f"`graders[{key!r}]` is a tuple of {len(metric)}; a pair is (grader, extractor)")
        judge, own = metric if isinstance(metric, tuple) else (metric, None)
        taken_out = own if own is not None else extractor if extractor is not None else "last_assistant"
        yield GraderBinding(key, _grader(judge), _extractor(taken_out))


def _grader(value: Any) -> Grader:
    if hasattr(value, "grade") and hasattr(value, "fingerprint"):
        return value  # type: ignore[no-any-return]
    return make_tool_grader(value)


def _limits(limits: Mapping[str, float], models: Sequence[ModelPlan], bindings: Sequence[GraderBinding]) -> Limits:
    found = Limits(**_checked(LimitsSpec.model_validate, limits, "limits").model_dump())
    if found.cost_usd is not None:
        _refuse(price_problems(models, bindings))
    return found


def _keys(bindings: Iterable[GraderBinding], target: Any) -> Iterator[str]:
    """The keys that judges and the target were given."""
    if isinstance(target, AgentEvalTarget) and target.api_key:
        yield target.api_key
    for binding in bindings:
        if isinstance(binding.grader, ModelJudge):
            yield from (judge.api_key for judge in binding.grader.judges if judge.api_key)


def _extractor(value: Any) -> Extractor:
    if hasattr(value, "extract") and hasattr(value, "fingerprint"):
        return value  # type: ignore[no-any-return]
    return make_extractor(value)


def _models(target: Any) -> Iterator[ModelPlan]:
    if isinstance(target, AgentEvalTarget):
        yield from target.plans()
    elif isinstance(target, Target):
        yield ModelPlan(target.model_handle or "default", target, target.model_handle)
    elif callable(target):
        yield ModelPlan("default", PythonTarget(target, fingerprint=fingerprint_of(target)))
    else:
        raise UsageError(
            f"`target` is a {type(target).__name__}; give an AgentEvalTarget, a target or an agent factory"
        )


def _reward(reward: str | Callable[..., Any] | None, bindings: Sequence[GraderBinding]) -> RewardComposer | None:
    keys = [binding.key for binding in bindings]
    if reward is None:
        return MetricReward(keys[0]) if len(keys) == 1 else None
    if callable(reward):
        return CustomReward(reward)
    if arguments.text("reward", reward) not in keys:
        raise UsageError(f"`reward` names the metric `{reward}`; there is {', '.join(f'`{key}`' for key in keys)}")
    return MetricReward(reward)


def _gates(gate: Any) -> tuple[NamedGate, ...]:
    match gate:
        case None:
            return ()
        case EvalGate():
            return (_checked(lambda _: gate.named(), gate, "gate"),)
        case NamedGate():
            return (gate,)
    return _checked(parse_gates, gate, "gate")


def _checked(parse: Callable[[Any], _T], value: Any, name: str) -> _T:
    try:
        return parse(value)
    except ValidationError as error:
        told = "; ".join(
            ": ".join([".".join(str(part) for part in detail["loc"]), detail["msg"]]).removeprefix(": ")
            for detail in error.errors(include_url=False)
        )
        raise UsageError(f"`{name}`: {told}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"`{name}` is {value!r}, which cannot be understood ({error})") from None


def _choice(kind: Callable[[str], _T], value: str, name: str) -> _T:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"`{choice.value}`" for choice in kind)  # type: ignore[attr-defined]
        raise UsageError(f"`{name}` is {value!r}; it must be one of {known}") from None


def _wrong_gates(
    gates: Sequence[NamedGate], bindings: Sequence[GraderBinding], composer: RewardComposer | None
) -> Iterable[str]:
    wrong = check_gates(gates, [binding.key for binding in bindings], has_reward=composer is not None)
    return wrong or judge_check_problems(gates, bindings, composer)


def _refuse(complaints: Iterable[str]) -> None:
    told = list(complaints)
    if told:
        raise UsageError("; ".join(told))
