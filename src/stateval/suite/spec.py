"""What a suite file may say in this release."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from stateval.datasets.split import SplitSpec
from stateval.gates.spec import GateField
from stateval.records.protocols import Snapshots
from stateval.running.plan import OnError
from stateval.suite import later
from stateval.suite.grader_spec import AnyGrader, JudgeSpec
from stateval.suite.model import (
    Count,
    NotNegative,
    Positive,
    Retries,
    Runs,
    Score,
    Seconds,
    Settings,
    SpecModel,
    Text,
    Whole,
)


class DatasetSpec(SpecModel):
    """Files with rows, and the columns in which the fields of a row stand where these have other names."""

    path: Annotated[Text, Tag("file")] | Annotated[list[Text], Field(min_length=1), Tag("files")] = Field(
        discriminator=Discriminator(lambda value: "files" if isinstance(value, list | tuple) else "file"),
        description="A file, or a list of files that are read one after the other.",
    )
    format: Literal["jsonl", "csv", "json", "parquet"] | None = Field(
        None, description="What the files are; without it their ending says so."
    )
    input: Text | None = Field(None, description="Column of what the user says.")
    ground_truth: Text | None = Field(None, description="Column of the truth to compare with.")
    id: Text | None = Field(None, description="Column of the rows' ids.")
    expected: Text | None = Field(None, description="Column of structured truths (JSON).")
    tags: Text | None = Field(None, description="Column of the tags.")
    cluster: Text | None = Field(None, description="Column that says which rows are not independent.")
    agent_args: Text | None = Field(None, description="Column of arguments for the agent's factory (JSON).")
    rubric_vars: Text | None = Field(None, description="Column of values for rubrics (JSON).")
    extra_vars: Text | None = Field(None, description="Column of values for your own code (JSON).")
    metadata: Text | None = Field(None, description="Column of anything else (JSON).")
    rubric: Text | None = Field(None, description="Column of a row's own rubric.")
    rubric_path: Text | None = Field(None, description="Column of the path of a row's own rubric.")

    @property
    def columns(self) -> dict[str, str]:
        """The mapped columns by field of a row."""
        return self.model_dump(exclude={"path", "format"}, exclude_none=True)


class BlockSpec(SpecModel):
    """A block of memory that an agent starts with."""

    value: str = Field("", description="The text in it.")
    limit: Count | None = Field(None, description="Its greatest length in characters.")
    description: str | None = Field(None, description="What the agent is told about the block.")
    read_only: bool = Field(False, description="Whether the agent cannot change it.")


class AgentSpec(SpecModel):
    """An agent written in the suite file."""

    system: str | None = Field(None, description="The system prompt.")
    blocks: dict[
        str,
        Annotated[
            Annotated[str, Tag("text")] | Annotated[BlockSpec, Tag("block")],
            Discriminator(lambda value: "block" if isinstance(value, dict | BlockSpec) else "text"),
        ],
    ] = Field(default_factory=dict, description="Memory blocks by label: a text, or a mapping with limits.")


class TargetSpec(SpecModel):
    """What all kinds of target have in common."""

    later: ClassVar = later.TARGET

    name: Text | None = Field(None, description="What results call this target; required in `targets`.")
    timeout: Seconds = Field(300.0, description="Seconds for the whole conversation of one sample.")
    max_retries: Retries = Field(0, description="Further tries for a sample whose conversation failed.")
    model_handles: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="Models; each runs the whole suite."
    )

    @field_validator("model_handles")
    @classmethod
    def _each_once(cls, handles: list[str] | None) -> list[str] | None:
        twice = sorted({handle for handle in handles or () if (handles or []).count(handle) > 1})
        if twice:
            raise ValueError(f"{', '.join(f'`{handle}`' for handle in twice)} is named twice")
        return handles


class PythonTargetSpec(TargetSpec):
    """Any object that follows the Agent protocol, made by a function of yours."""

    kind: Literal["python"]
    factory: Text = Field(description="`file.py:function` of (sample) or (sample, model_handle); returns an agent.")


class LocalAgentTargetSpec(TargetSpec):
    """An agent with memory blocks that runs in this process."""

    alternatives = (("agent", "agent_file"),)

    kind: Literal["local_agent"]
    agent: AgentSpec | None = Field(None, description="The agent, written here.")
    agent_file: Text | None = Field(None, description="The agent, as an agent file (.af or .json).")
    allow_tools: bool = Field(False, description="Whether an agent file's tools that have source code may run.")
    base_url: Text | None = Field(None, description="An OpenAI-compatible endpoint.")
    api_key: Text | None = Field(None, description="The key for it; better `${NAME}` of a variable.")


class LettaAgentTargetSpec(TargetSpec):
    """Agents on a Letta server."""

    alternatives = (("agent_file", "agent_id", "agent_script"),)

    kind: Literal["letta_agent", "agent"]
    agent_file: Text | None = Field(None, description="An agent file (.af or .json); every sample gets a fresh clone.")
    agent_id: Text | None = Field(None, description="A live agent, the same for every sample; it is never deleted.")
    agent_script: Text | None = Field(
        None, description="`file.py:function` of (client, sample), marked `@agent_factory`; returns an agent's id."
    )
    base_url: Text | None = Field(None, description="The server; `LETTA_BASE_URL` unless given.")
    api_key: Text | None = Field(None, description="The key for it; better `LETTA_API_KEY` in the environment.")
    project_id: Text | None = Field(None, description="The project; `LETTA_PROJECT_ID` unless given.")

    @model_validator(mode="after")
    def _live_agent_keeps_its_model(self) -> Self:
        if self.agent_id is not None and self.model_handles is not None:
            raise ValueError("`model_handles` would change the model of the live agent of `agent_id`; leave them out")
        return self


TargetKind = PythonTargetSpec | LocalAgentTargetSpec | LettaAgentTargetSpec
AnyTarget = Annotated[TargetKind, Field(discriminator="kind")]


class MetricRewardSpec(SpecModel):
    """The reward is one metric."""

    kind: Literal["metric"]
    metric_key: Text = Field(description="The key of the grader.")


class CustomRewardSpec(SpecModel):
    """The reward is composed by a function of yours."""

    kind: Literal["custom"]
    function: Text = Field(description="`file.py:function` marked `@reward_composer`.")


class GenerationSpec(SpecModel):
    """How models write, for targets that take it."""

    temperature: NotNegative | None = Field(None, description="0 for the most likely words.")
    max_tokens: Count | None = Field(None, description="The longest answer.")
    seed: Whole | None = Field(None, description="The model's seed.")


class LimitsSpec(SpecModel):
    """What one call of `run` may use before it is stopped; all that ran is kept, and the run can go on later."""

    cost_usd: Positive | None = Field(None, description="US dollars.")
    tokens: Count | None = Field(None, description="Tokens, in and out.")
    minutes: Positive | None = Field(None, description="Minutes of wall time.")
    errors: Count | None = Field(None, description="Samples with an error.")


_NO_LIMITS = LimitsSpec()


class SuiteSpec(SpecModel):
    """A suite: a dataset, an agent to run on it, graders, and what must come of it."""

    later: ClassVar = later.SUITE
    alternatives = (("target", "targets"), ("graders", "grader"))
    either = (("num_runs", "epochs"),)

    name: Text = Field(description="What results call the suite.")
    description: str | None = Field(None, description="What the suite is for.")
    version: Text | None = Field(None, description="A version of yours, kept with the results.")
    dataset: Annotated[
        Annotated[Text, Tag("path")] | Annotated[list[Settings], Tag("rows")] | Annotated[DatasetSpec, Tag("files")],
        Discriminator(lambda value: _kind_of_dataset(value)),
    ] = Field(description="A path, rows written here, or a mapping with `path` and names of columns.")
    target: AnyTarget | None = Field(None, description="What is evaluated.")
    targets: Annotated[list[AnyTarget], Field(min_length=1)] | None = Field(
        None, description="Several targets, each with a `name`; each runs the whole suite."
    )
    graders: Annotated[dict[Text, AnyGrader], Field(min_length=1)] | None = Field(
        None, description="Graders by metric key."
    )
    grader: AnyGrader | None = Field(
        None, description="One grader; its metric key is that of the reward or the gate, else `grader`."
    )
    judge: JudgeSpec | None = Field(
        None, description="Which model judges, and how, for all graders of kind `model_judge` that do not say it."
    )
    reward: Annotated[MetricRewardSpec | CustomRewardSpec, Field(discriminator="kind")] | None = Field(
        None, description="What a sample is worth. With one grader: that grader; with several: none."
    )
    gate: GateField | None = Field(None, description="What must hold for the run to pass: a gate or a list of gates.")
    setup_script: Text | None = Field(
        None, description="`file.py:function` marked `@suite_setup`, called before the run."
    )
    teardown_script: Text | None = Field(None, description="`file.py:function`, called after the run.")
    max_samples: Count | None = Field(None, description="Only the first so many, after tags and split.")
    sample_tags: list[Text] | None = Field(None, description="Only rows with any of these tags.")
    exclude_tags: list[Text] | None = Field(None, description="No rows with any of these tags.")
    split: SplitSpec | None = Field(None, description="Holds out a share of the rows by their ids.")
    num_runs: Runs | None = Field(None, description="How often every sample runs; 1 unless given.")
    epochs: Runs | None = Field(None, description="The same as `num_runs`.")
    max_concurrent: Count | None = Field(None, description="Samples in flight; 15 unless given.")
    output: Text | None = Field(None, description="The results directory, relative to the suite file.")
    snapshots: Snapshots = Field(Snapshots.NONE, description="Which of the agent's states are kept beside the last.")
    cleanup: bool = Field(
        False, description="Delete what a sample leaves behind: agents on a Letta server, and their blocks."
    )
    pass_threshold: Score = Field(1.0, description="What the ledger calls passed: a reward of at least this.")
    limits: LimitsSpec = Field(_NO_LIMITS, description="What a run may use before it is stopped.")
    on_error: OnError = Field(OnError.FAIL, description="How a sample with an error counts.")
    backend: Literal["server", "local"] = Field("server", description="Where Letta agents live: on a server.")
    token_data: bool = Field(False, description="Keep token ids and log-probabilities, where the server has them.")
    seed: Whole | None = Field(None, description="Seed for whatever is random.")
    generation: GenerationSpec | None = Field(None, description="How models write, for targets that take it.")

    @field_validator("targets")
    @classmethod
    def _names_differ(cls, targets: list[TargetSpec] | None) -> list[TargetSpec] | None:
        names = [target.name for target in targets or ()]
        if None in names:
            raise ValueError("each of several targets needs a `name`")
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two targets are named {', '.join(f'`{name}`' for name in twice)}")
        return targets

    @field_validator("backend")
    @classmethod
    def _no_local_backend(cls, backend: str) -> str:
        if backend == "local":
            raise ValueError(later.refusal("backend: local", later.KINDS["letta_code"]))
        return backend

    @property
    def all_targets(self) -> list[TargetKind]:
        """The targets, be it one or several."""
        return self.targets or ([self.target] if self.target else [])

    @property
    def all_graders(self) -> dict[str, AnyGrader]:
        """The graders by metric key, be it one or several."""
        return {self.grader_key: self.grader} if self.grader else dict(self.graders or {})

    @property
    def grader_key(self) -> str:
        """The metric key of the field `grader`."""
        if isinstance(self.reward, MetricRewardSpec):
            return self.reward.metric_key
        key = getattr(self.gate, "metric_key", None)
        return key if isinstance(key, str) and key not in _NOT_A_GRADER else "grader"

    @property
    def runs(self) -> int:
        """How often every sample runs."""
        return self.num_runs or self.epochs or 1


_NOT_A_GRADER = ("reward", "latency", "response_time", "cost", "tokens")


def _kind_of_dataset(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "rows"
    return "files" if isinstance(value, dict | DatasetSpec) else "path"
