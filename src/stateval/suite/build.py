"""From a suite file that holds together in itself to the objects that run: everything that it names is looked at."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from stateval import extractors, graders
from stateval.datasets import DatasetCheck, PlacedDataset, check_dataset, open_dataset, select
from stateval.errors import InputError, MissingExtra, MissingKey, ModelError, SuiteError, UsageError
from stateval.gates import Gate, LogicalGate, NamedGate, WeightedAverageGate, check_gates, parse_gates, with_paths_below
from stateval.graders.judging import ModelJudge
from stateval.letta.connection import LettaServer
from stateval.loading.registry import Registry
from stateval.loading.user_code import LoadedFunction, UserCode
from stateval.records.marks import Mark
from stateval.records.protocols import Extractor, Grader, RewardComposer, Target
from stateval.records.sample import Sample, SimulatedInput
from stateval.records.source import Problem, Source
from stateval.redaction import secrets_of_configuration, secrets_of_environment, without_secrets
from stateval.rewards import CustomReward, MetricReward
from stateval.running.judge_checks import judge_check_problems
from stateval.running.limits import Limits
from stateval.running.plan import GraderBinding, ModelPlan, RunPlan, Script
from stateval.running.prices import price_problems
from stateval.suite.grader_spec import AnyGrader, GraderSpec, LettaJudgeSpec, ModelJudgeSpec, ToolGraderSpec
from stateval.suite.judges import RubricCheck, judge_models, judge_settings, letta_judge_settings
from stateval.suite.load import LoadedSuite
from stateval.suite.places import portable_path
from stateval.suite.spec import (
    DatasetSpec,
    LettaAgentTargetSpec,
    LocalAgentTargetSpec,
    MetricRewardSpec,
    PythonTargetSpec,
    TargetKind,
)
from stateval.suite.yaml_text import Path as FieldPath

_X = TypeVar("_X")

SERVED_NAMES = {"letta_evals": "stateval.compat.letta_evals"}
"""The packages of others that users' files may import, and the modules that they get for them, loaded when asked."""

_MOST_CONCURRENT = 15
_MAY_BE_MISSING = ("target", "targets", "grader", "graders", "judge")


def build_plan(loaded: LoadedSuite, *, cache: bool = True) -> RunPlan:
    """The plan of a suite; `cache` says whether judges use the answers that are kept, and keep theirs.

    Raises SuiteError with everything that is wrong in what the suite names.
    """
    built = build(loaded, cache=cache)
    if built.plan is None or built.missing:
        raise SuiteError([*built.problems, *built.missing])
    return built.plan


SampleCheck = Callable[[Sample], str | None]


def check_plan(plan: RunPlan) -> DatasetCheck:
    """Reads every row of a plan's dataset before any model is asked.

    Raises DatasetError: rows that cannot be understood, and rows that lack what a grader needs.
    """
    return check_rows(plan.dataset, plan.graders)


def check_rows(
    dataset: Any,
    bindings: Sequence[GraderBinding],
    *,
    metrics: Sequence[str] | None = None,
    further: Sequence[SampleCheck] = (),
) -> DatasetCheck:
    """The same for a dataset and some graders.

    `metrics` are all that rows may name, those of the graders by default; `further` checks are called with each sample.
    """
    keys = [binding.key for binding in bindings] if metrics is None else list(metrics)
    checks: list[SampleCheck] = [_is_simulated, partial(_unknown_graders, keys)]
    return check_dataset(dataset, checks=[*checks, *(binding.check for binding in bindings), *further])


@dataclass(slots=True)
class Built:
    """What could be made of a suite.

    `plan` is None where there are `problems`. `missing` are optional packages of targets and judges that are not
    installed, keys that are not set and models that cannot be had: nothing in the suite is wrong, but it cannot run
    here. `checks` look at rows for graders that are missing.
    """

    plan: RunPlan | None = None
    dataset: PlacedDataset | None = None
    bindings: tuple[GraderBinding, ...] = ()
    checks: list[SampleCheck] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    missing: list[Problem] = field(default_factory=list)


def build(loaded: LoadedSuite, *, cache: bool = True) -> Built:
    """Makes all that a suite names, and collects what cannot be made."""
    return _Building(loaded, cache).built()


class _Building:
    def __init__(self, loaded: LoadedSuite, cache: bool) -> None:
        self._loaded = loaded
        self._cache = cache
        self._spec = loaded.spec
        self._code = UserCode(loaded.directory, SERVED_NAMES)
        self._registry = Registry(self._code)
        self._built = Built()

    def built(self) -> Built:
        built, spec = self._built, self._spec
        built.dataset = self._attempt(("dataset",), self._dataset)
        built.bindings = tuple(self._bindings())
        models = tuple(self._models())
        self._check_labels([model.label for model in models])
        self._check_prices(models)
        reward = self._reward()
        gates = self._gates(has_reward=spec.reward is not None or len(spec.all_graders) == 1)
        if len(built.bindings) == len(spec.all_graders):  # else it is not known who judges
            for complaint in judge_check_problems(gates, built.bindings, reward):
                self._add(Problem(complaint, self._loaded.sources.of("gate")))
        setup = self._script("setup_script", spec.setup_script, Mark.SUITE_SETUP)
        teardown = self._script("teardown_script", spec.teardown_script, None)
        if not built.problems and built.dataset is not None:
            built.plan = RunPlan(
                name=spec.name,
                dataset=built.dataset,
                models=models,
                graders=built.bindings,
                reward=reward,
                gates=gates,
                num_runs=spec.runs,
                max_concurrent=spec.max_concurrent or _MOST_CONCURRENT,
                snapshots=spec.snapshots,
                setup=setup,
                teardown=teardown,
                cleanup=spec.cleanup,
                on_error=spec.on_error,
                limits=Limits(**spec.limits.model_dump()),
                pass_threshold=spec.pass_threshold,
                seed=spec.seed,
                config=configuration(self._loaded),
                secrets=frozenset(secrets_in(self._loaded)),
                suite_file=portable_path(self._loaded.path),
            )
        return built

    def _dataset(self) -> PlacedDataset:
        spec = self._spec
        written = spec.dataset
        columns, form = (written.columns, written.format) if isinstance(written, DatasetSpec) else (None, None)
        source = written.path if isinstance(written, DatasetSpec) else written
        dataset = open_dataset(source, base_directory=self._loaded.directory, columns=columns, format=form)
        return select(
            dataset,
            tags=spec.sample_tags or (),
            exclude_tags=spec.exclude_tags or (),
            split=spec.split,
            max_samples=spec.max_samples,
        )

    def _bindings(self) -> Iterator[GraderBinding]:
        for key, spec in self._spec.all_graders.items():
            place: FieldPath = ("grader",) if self._spec.grader else ("graders", key)
            extractor = self._extractor(spec, place)
            grader = self._grader(spec, place)
            if grader is None or extractor is None:
                continue
            binding = GraderBinding(key, grader, extractor, spec.display_name, spec.ground_truth_field)
            if isinstance(grader, RubricCheck):
                self._built.checks.append(binding.check)
            else:
                yield binding

    def _grader(self, spec: AnyGrader, place: FieldPath) -> Any:
        match spec:
            case ModelJudgeSpec():
                return self._judge(spec, place)
            case LettaJudgeSpec():
                return self._letta_judge(spec, place)
        return self._tool(spec, place)

    def _letta_judge(self, spec: LettaJudgeSpec, place: FieldPath) -> Any:
        """The judge; a `RubricCheck` where the client of Letta is not installed here."""
        from stateval.graders.letta_judge import LettaJudge

        where = "prompt_path" if spec.prompt_path else "prompt"
        settings = self._attempt((*place, where), partial(letta_judge_settings, spec, self._loaded.directory))
        server = self._attempt((*place, "kind"), partial(self._server_of_judge, spec))
        if settings is None:
            return None
        if server is None:
            return RubricCheck(settings)
        chosen = {"model": spec.model, "embedding": spec.embedding}
        make = partial(
            LettaJudge,
            settings,
            server,
            agent_file=self._loaded.directory / Path(spec.agent_file).expanduser() if spec.agent_file else None,
            agent_id=spec.agent_id,
            tool_name=spec.judge_tool_name,
            timeout=spec.timeout,
            **{name: value for name, value in chosen.items() if value is not None},
        )
        field = "agent_file" if spec.agent_file else "judge_tool_name"
        return self._attempt((*place, field), make)

    def _server_of_judge(self, spec: LettaJudgeSpec) -> LettaServer:
        """The server that the judge names, else that of the first target on one."""
        targets = [target for target in self._spec.all_targets if isinstance(target, LettaAgentTargetSpec)]
        names = ("base_url", "api_key", "project_id")
        said = {name: getattr(spec, name) for name in names}
        if targets and spec.base_url is None:
            said = {name: said[name] or getattr(targets[0], name) for name in names}
        return LettaServer.of(**said)

    def _tool(self, spec: ToolGraderSpec, place: FieldPath) -> Grader | None:
        found = self._attempt((*place, "function"), partial(self._found_grader, spec))
        if found is None:
            return None
        where = "grader_config" if spec.grader_config else "function"
        return self._attempt((*place, where), partial(graders.make_tool_grader, found, spec.grader_config))

    def _judge(self, spec: ModelJudgeSpec, place: FieldPath) -> Any:
        """The judge; a `RubricCheck` where a model of it cannot be had.

        Each model is opened at its own place first, so that all that is wrong is said.
        """
        where = "prompt_path" if spec.prompt_path else "criteria" if spec.criteria else "prompt"
        settings = self._attempt((*place, where), partial(judge_settings, spec, self._loaded.directory))
        placed = list(judge_models(spec, place, self._spec.judge))
        opened = [self._attempt(named, judge.open) for named, judge in placed]
        if settings is None:
            return None
        if None in opened:
            return RubricCheck(settings)
        judges = [judge for _, judge in placed]
        make = partial(ModelJudge, settings, judges, cache=self._cache)
        return self._attempt((*place, "judges" if spec.judges else where), make)

    def _found_grader(self, spec: ToolGraderSpec) -> graders.BuiltinGrader | LoadedFunction:
        found = self._registry.find("grader", spec.function, graders.BUILTIN)
        wanted = found.wants_extractor if isinstance(found, graders.BuiltinGrader) else None
        if wanted and "extractor" not in spec.model_fields_set:
            raise UsageError(f"`{spec.function}` judges what `extractor: {wanted}` takes out; write that beside it")
        return found

    def _extractor(self, spec: GraderSpec, place: FieldPath) -> Extractor | None:
        find = partial(self._registry.find, "extractor", spec.extractor, extractors.BUILTIN)
        found = self._attempt((*place, "extractor"), find)
        if found is None:
            return None
        where = "extractor_config" if spec.extractor_config else "extractor"
        return self._attempt((*place, where), partial(extractors.make_extractor, found, spec.extractor_config))

    def _models(self) -> Iterator[ModelPlan]:
        for position, spec in enumerate(self._spec.all_targets):
            place: FieldPath = ("targets", position) if self._spec.targets else ("target",)
            place = (*place, *_where_agents_come_from(spec))
            handles: list[str | None] = list(spec.model_handles) if spec.model_handles else [None]
            for handle in handles:
                target = self._attempt(place, partial(self._target, spec, handle))
                if target is not None:
                    yield ModelPlan(
                        _label(spec.name, handle),
                        target,
                        handle,
                        spec.timeout,
                        spec.max_retries,
                        shared_agent=spec.agent_id if isinstance(spec, LettaAgentTargetSpec) else None,
                    )

    def _check_labels(self, labels: list[str]) -> None:
        for label in sorted({label for label in labels if labels.count(label) > 1}):
            message = f"two targets would both be called `{label}` in the results; name one of them otherwise"
            self._add(Problem(message, self._loaded.sources.of("targets")))

    def _check_prices(self, models: Sequence[ModelPlan]) -> None:
        if self._spec.limits.cost_usd is None:
            return
        for message in price_problems(models, self._built.bindings):
            self._add(Problem(message, self._loaded.sources.of("limits", "cost_usd")))

    def _target(self, spec: TargetKind, handle: str | None) -> Target:
        if isinstance(spec, LocalAgentTargetSpec):
            return self._local_agent(spec, handle)
        if isinstance(spec, LettaAgentTargetSpec):
            return self._letta_agent(spec, handle)
        from stateval.targets.python_target import PythonTarget

        factory = self._registry.find("target", spec.factory, {})
        return PythonTarget(
            factory.function, model_handle=handle, reference=factory.reference, fingerprint=factory.fingerprint
        )

    def _local_agent(self, spec: LocalAgentTargetSpec, handle: str | None) -> Target:
        from stateval.targets.local_agent import LocalAgentTarget

        generation = self._spec.generation
        seed = {} if self._spec.seed is None else {"seed": self._spec.seed}
        return LocalAgentTarget(
            model=handle,
            agent=spec.agent.model_dump(exclude_none=True) if spec.agent else None,
            agent_file=self._loaded.directory / Path(spec.agent_file).expanduser() if spec.agent_file else None,
            base_url=spec.base_url,
            api_key=spec.api_key,
            generation=seed | (generation.model_dump(exclude_none=True) if generation else {}),
            allow_tools=spec.allow_tools,
        )

    def _letta_agent(self, spec: LettaAgentTargetSpec, handle: str | None) -> Target:
        from stateval.targets.letta_agent import LettaAgentTarget
        from stateval.targets.letta_factory import LettaFactory

        factory = None
        if spec.agent_script is not None:
            loaded = self._code.load(spec.agent_script, Mark.AGENT_FACTORY)
            factory = LettaFactory(loaded.function, loaded.reference, loaded.fingerprint)
        return LettaAgentTarget(
            LettaServer.of(base_url=spec.base_url, api_key=spec.api_key, project_id=spec.project_id),
            agent_file=self._loaded.directory / Path(spec.agent_file).expanduser() if spec.agent_file else None,
            agent_id=spec.agent_id,
            factory=factory,
            model_handle=handle,
            token_data=self._spec.token_data,
        )

    def _reward(self) -> RewardComposer | None:
        spec, keys = self._spec.reward, list(self._spec.all_graders)
        if spec is None:
            return MetricReward(keys[0]) if len(keys) == 1 else None
        if isinstance(spec, MetricRewardSpec):
            if spec.metric_key in keys:
                return MetricReward(spec.metric_key)
            message = f"there is no metric `{spec.metric_key}`; {_nearest(spec.metric_key, keys)}"
            self._add(Problem(message, self._loaded.sources.of("reward", "metric_key")))
            return None
        return self._attempt(("reward", "function"), lambda: self._custom_reward(spec.function))

    def _custom_reward(self, reference: str) -> RewardComposer:
        return CustomReward(self._code.load(reference, Mark.REWARD_COMPOSER))

    def _gates(self, *, has_reward: bool) -> tuple[NamedGate, ...]:
        gates = with_paths_below(parse_gates(self._spec.gate), self._loaded.directory)
        keys = list(self._spec.all_graders)
        several = isinstance(self._spec.gate, list)
        for position, gate in enumerate(gates):
            for place, condition in _conditions(gate.gate, ("gate", position) if several else ("gate",)):
                for complaint in check_gates([NamedGate(gate=condition)], keys, has_reward=has_reward):
                    self._add(Problem(complaint, self._loaded.sources.of(*place)))
        if not self._built.problems:
            for complaint in check_gates(gates, keys, has_reward=has_reward):
                self._add(Problem(complaint, self._loaded.sources.of("gate")))
        return gates

    def _script(self, name: str, reference: str | None, mark: Mark | None) -> Script | None:
        if reference is None:
            return None
        return self._attempt((name,), lambda: _script(self._code.load(reference, mark)))

    def _attempt(self, place: FieldPath, make: Callable[[], _X]) -> _X | None:
        """What `make` makes; what it raises becomes problems at this place of the suite file."""
        source = self._loaded.sources.of(*place)
        try:
            return make()
        except (MissingExtra, MissingKey, ModelError) as error:
            if place[0] not in _MAY_BE_MISSING:
                self._add(Problem(str(error), source))
            elif (problem := Problem(str(error), source)) not in self._built.missing:
                self._built.missing.append(problem)
        except InputError as error:
            for problem in error.problems or (Problem(str(error)),):
                self._add(_named_by(problem, source))
        except UsageError as error:
            self._add(Problem(str(error), source))
        return None

    def _add(self, problem: Problem) -> None:
        if all((known.message, known.source) != (problem.message, problem.source) for known in self._built.problems):
            self._built.problems.append(problem)


def configuration(loaded: LoadedSuite) -> dict[str, Any]:
    """What `suite.json` shows of a suite: all that was said, without keys and without the rows."""
    config: dict[str, Any] = without_secrets(_said(loaded))
    if isinstance(loaded.spec.dataset, list):
        config["dataset"] = f"{len(loaded.spec.dataset)} rows in the suite file"
    return config


def _said(loaded: LoadedSuite) -> dict[str, Any]:
    """All that a suite says but its inline rows, which are data."""
    rows = {"dataset"} if isinstance(loaded.spec.dataset, list) else None
    return loaded.spec.model_dump(mode="json", exclude_none=True, exclude=rows)


def secrets_in(loaded: LoadedSuite) -> set[str]:
    """What is to be kept secret: values of the environment, the suite's own keys, passwords in its URLs."""
    return secrets_of_environment() | set(_keys_in(loaded))


def _keys_in(loaded: LoadedSuite) -> Iterator[str]:
    yield from secrets_of_configuration(_said(loaded))


def _label(name: str | None, handle: str | None) -> str:
    return "/".join(part for part in (name, handle) if part) or "default"


def _where_agents_come_from(spec: TargetKind) -> tuple[str, ...]:
    """The field of a target that names a file."""
    match spec:
        case PythonTargetSpec():
            return ("factory",)
        case LettaAgentTargetSpec(agent_script=str()):
            return ("agent_script",)
        case LettaAgentTargetSpec(agent_file=str()) | LocalAgentTargetSpec(agent_file=str()):
            return ("agent_file",)
    return ()


def _script(loaded: LoadedFunction) -> Script:
    parameters = len(inspect.signature(loaded.function).parameters)
    if parameters > 2:
        raise UsageError(
            f"`{loaded.reference}` takes {parameters} parameters; it must take (), (client) or (client, model_handle)"
        )
    return Script(loaded.function, loaded.reference, parameters)


def _conditions(gate: Gate, place: FieldPath) -> Iterator[tuple[FieldPath, Gate]]:
    """The conditions in a gate that look at metrics, each with the place where it names them."""
    match gate:
        case LogicalGate():
            for position, condition in enumerate(gate.conditions):
                yield from _conditions(condition, (*place, "conditions", position))
        case WeightedAverageGate():
            yield (*place, "weights"), gate
        case _:
            yield (*place, "metric_key"), gate


def _named_by(problem: Problem, source: Source) -> Problem:
    """A problem of a file that the suite names: in that file where the line is known, else at the suite's field."""
    if problem.source.line is not None:
        return Problem(problem.message, problem.source, problem.advice or f"named by {source}")
    inside = str(problem.source)
    return Problem(f"{inside}: {problem.message}" if inside else problem.message, source, problem.advice)


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{close[0]}`?" if close else f"there are {', '.join(f'`{key}`' for key in known)}"


def _is_simulated(sample: Sample) -> str | None:
    if not isinstance(sample.input, SimulatedInput):
        return None
    return "a simulated user is not in this release of stateval; write what the user says as a list of turns"


def _unknown_graders(keys: Sequence[str], sample: Sample) -> str | None:
    if isinstance(sample.input, str | SimulatedInput):
        return None
    unknown = [name for turn in sample.user_turns for name in turn.graders or () if name not in keys]
    return f"a turn asks for the grader `{unknown[0]}`; {_nearest(unknown[0], keys)}" if unknown else None
