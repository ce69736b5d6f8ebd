"""What a suite file may say of graders: functions, and models that judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from stateval.graders.judging.template import RESERVED
from stateval.letta.judge_agent import SUBMIT_GRADE
from stateval.suite import later
from stateval.suite.model import (
    Count,
    NotNegative,
    Number,
    Positive,
    Retries,
    Seconds,
    Settings,
    SpecModel,
    Text,
    Whole,
)

Provider = Literal["openai", "anthropic", "google", "gemini", "litellm", "embedded"]


class GraderSpec(SpecModel):
    """What all kinds of grader have in common."""

    later: ClassVar = later.GRADER

    display_name: str | None = Field(None, description="What tables call the metric.")
    extractor: Text = Field(
        "last_assistant", description="What is graded (`stateval list-extractors`), or `file.py:function`."
    )
    extractor_config: Settings | None = Field(None, description="The extractor's settings.")
    ground_truth_field: Text | None = Field(None, description="Another field of the row that holds the truth.")


class JudgeSpec(SpecModel):
    """A model that judges, and how it is asked."""

    model: Text | None = Field(None, description="`openai/gpt-4o-mini`, `anthropic/...`; a bare name is OpenAI's.")
    provider: Provider | None = Field(None, description="Whose model it is, instead of a prefix of its name.")
    base_url: Text | None = Field(None, description="The judge's endpoint, where it is not the provider's own.")
    api_key: Text | None = Field(None, description="The key for it; better `${NAME}` of a variable.")
    temperature: NotNegative | None = Field(
        0.0, description="0 for the most likely words; null leaves it to the model."
    )
    max_tokens: Count | None = Field(None, description="The judge's longest answer.")
    seed: Whole | None = Field(None, description="The judge's seed.")
    timeout: Seconds = Field(120.0, description="Seconds for one try of one call.")
    max_retries: Retries = Field(5, description="Further tries of a call that failed in a way that may pass.")
    max_concurrent: Count | None = Field(None, description="Calls in flight at the endpoint; 128 unless given.")
    requests_per_minute: Positive | None = Field(None, description="The most calls a minute at the endpoint.")

    def said(self) -> dict[str, Any]:
        """What was said of the model; null says something of the fields that are null by themselves."""
        given = {name: getattr(self, name) for name in self.model_fields_set & JudgeSpec.model_fields.keys()}
        return {name: value for name, value in given.items() if value is not None or name in _NULL_SAYS_SOMETHING}


_NULL_SAYS_SOMETHING = ("temperature", "max_tokens", "seed", "max_concurrent", "requests_per_minute")


class PanelJudgeSpec(JudgeSpec):
    """One of several judges."""

    model: Text = Field(description="`openai/gpt-4o-mini`, `anthropic/...`; a bare name is OpenAI's.")


class CriterionSpec(SpecModel):
    """One thing that is scored on its own."""

    weight: NotNegative = Field(1.0, description="How much it counts beside the others; 0: scored, and not counted.")
    description: str = Field("", description="What the judge is asked.")


def _kind_of_criterion(value: Any) -> str:
    return "criterion" if isinstance(value, Mapping | CriterionSpec) else "description"


def _kind_of_judge(value: Any) -> str:
    return "judge" if isinstance(value, Mapping | JudgeSpec) else "name"


AnyCriterion = Annotated[
    Annotated[str, Tag("description")] | Annotated[CriterionSpec, Tag("criterion")], Discriminator(_kind_of_criterion)
]
AnyJudge = Annotated[
    Annotated[Text, Tag("name")] | Annotated[PanelJudgeSpec, Tag("judge")], Discriminator(_kind_of_judge)
]


class ModelJudgeSpec(GraderSpec, JudgeSpec):
    """A grader that is a model: it reads the submission beside a rubric, or beside criteria that it scores."""

    alternatives = (("prompt", "prompt_path", "criteria"),)
    either = (("model", "judges"),)
    elsewhere: ClassVar = {
        **dict.fromkeys(
            ("function", "grader_config"), "belongs to graders of `kind: tool`; this one is of `kind: model_judge`"
        ),
        **dict.fromkeys(
            ("agent_file", "agent_id", "judge_tool_name"),
            "belongs to graders of `kind: letta_judge`; this one is of `kind: model_judge`",
        ),
    }

    kind: Literal["model_judge", "rubric"]
    prompt: str | None = Field(
        None, description="The rubric; `{input}`, `{ground_truth}`, `{submission}` are filled in."
    )
    prompt_path: Text | None = Field(None, description="A file that holds the rubric.")
    criteria: Annotated[dict[Text, AnyCriterion], Field(min_length=1)] | None = Field(
        None, description="What is scored one by one: a description, or `weight` and `description`."
    )
    system_prompt: str | None = Field(None, description="Stands before what every judge is told.")
    rubric_vars: list[Text] | None = Field(
        None, description="Names that the rubric takes from the row's `rubric_vars`."
    )
    votes: Count = Field(1, description="How often each judge is asked.")
    judges: Annotated[list[AnyJudge], Field(min_length=1)] | None = Field(
        None, description="Several judges instead of `model`: names, or mappings with their own settings."
    )
    scale: tuple[Number, Number] = Field((0.0, 1.0), description="The judge's worst and best score.")
    criteria_per_call: Count = Field(8, description="The most criteria in one call.")

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, prompt: str | None) -> str | None:
        if prompt is not None and not prompt.strip():
            raise ValueError("is empty; write what is asked of the submission")
        return prompt

    @field_validator("criteria")
    @classmethod
    def _one_counts(cls, criteria: dict[str, str | CriterionSpec] | None) -> dict[str, str | CriterionSpec] | None:
        written = [criterion for criterion in (criteria or {}).values() if isinstance(criterion, CriterionSpec)]
        if criteria and len(written) == len(criteria) and not any(criterion.weight for criterion in written):
            raise ValueError("all weights are 0; at least one criterion must count")
        return criteria

    @field_validator("scale")
    @classmethod
    def _increases(cls, scale: tuple[float, float]) -> tuple[float, float]:
        if scale[0] >= scale[1]:
            raise ValueError(f"must be the worst and then a greater, best score, got [{scale[0]:g}, {scale[1]:g}]")
        return scale

    @field_validator("rubric_vars")
    @classmethod
    def _not_reserved(cls, names: list[str] | None) -> list[str] | None:
        taken = [name for name in names or () if name in RESERVED]
        if taken:
            raise ValueError(f"`{taken[0]}` is filled in from the sample itself; choose another name")
        return names

    @property
    def all_criteria(self) -> dict[str, CriterionSpec]:
        """The criteria, each in full."""
        return {
            name: criterion if isinstance(criterion, CriterionSpec) else CriterionSpec(description=criterion)
            for name, criterion in (self.criteria or {}).items()
        }


class LettaJudgeSpec(GraderSpec):
    """A grader that is an agent on a Letta server; it hands in its grade by calling a tool."""

    alternatives = (("prompt", "prompt_path"),)
    either = (("agent_file", "agent_id"),)

    kind: Literal["letta_judge"]
    prompt: str | None = Field(None, description="The rubric, as that of `model_judge`.")
    prompt_path: Text | None = Field(None, description="A file that holds the rubric.")
    agent_file: Text | None = Field(None, description="The judge, as an agent file; every grade is a fresh clone's.")
    agent_id: Text | None = Field(None, description="A live agent that judges.")
    judge_tool_name: Text = Field(SUBMIT_GRADE, description="The tool whose arguments are the grade.")
    rubric_vars: list[Text] | None = Field(
        None, description="Names that the rubric takes from the row's `rubric_vars`."
    )
    model: Text | None = Field(None, description="The model of the judge that is made where none is named.")
    embedding: Text | None = Field(None, description="The embedding of that judge.")
    base_url: Text | None = Field(None, description="The server; the target's, else `LETTA_BASE_URL`.")
    api_key: Text | None = Field(None, description="The key for it; better `LETTA_API_KEY` in the environment.")
    project_id: Text | None = Field(None, description="The project; `LETTA_PROJECT_ID` unless given.")
    timeout: Seconds = Field(120.0, description="Seconds for one grade.")


_OF_JUDGES = sorted(ModelJudgeSpec.model_fields.keys() - GraderSpec.model_fields.keys() - {"kind"})


class ToolGraderSpec(GraderSpec):
    """A grader that is a function: a built-in one, a plug-in's, or one in a file of yours."""

    elsewhere: ClassVar = dict.fromkeys(
        _OF_JUDGES, "belongs to graders of `kind: model_judge`; this one is of `kind: tool`"
    )

    kind: Literal["tool"]
    function: Text = Field(description="A built-in grader (`stateval list-graders`), or `file.py:function`.")
    grader_config: Settings | None = Field(None, description="The grader's settings.")


AnyGrader = Annotated[ToolGraderSpec | ModelJudgeSpec | LettaJudgeSpec, Field(discriminator="kind")]
