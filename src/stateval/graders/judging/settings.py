"""What can be set of a judge, and what is wrong with settings."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pydantic import ValidationError

from stateval.errors import UsageError
from stateval.graders.judging.template import RESERVED
from stateval.llm import ChatModel, Generation, Retries, open_model

CRITERIA_PER_CALL = 8


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that is scored on its own. One of weight 0 is scored and does not count."""

    weight: float = 1.0
    description: str = ""


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """A model that judges, and how it is asked.

    `temperature` None leaves it to the model. `timeout` is in seconds for one try; a try that failed in a way that may
    pass is repeated up to `max_retries` times.
    """

    model: str = "gpt-4o-mini"
    provider: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = 0.0
    max_tokens: int | None = None
    seed: int | None = None
    timeout: float = 120.0
    max_retries: int = 5
    max_concurrent: int | None = None
    requests_per_minute: float | None = None

    @property
    def name(self) -> str:
        """How the suite names it."""
        return f"{self.provider}/{self.model}" if self.provider else self.model

    @property
    def generation(self) -> Generation:
        """How it writes. Raises UsageError."""
        try:
            return Generation(temperature=self.temperature, max_tokens=self.max_tokens, seed=self.seed)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise UsageError(f"judge `{self.name}`: `{problem['loc'][0]}`: {problem['msg']}") from None

    def open(self) -> ChatModel:
        """The model, not yet called. A bare name is one of OpenAI's. Raises UsageError, MissingKey, MissingExtra."""
        if not self.model.strip():
            raise UsageError("a judge's `model` is empty; write for instance `openai/gpt-4o-mini`")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise UsageError(f"judge `{self.name}`: `timeout` is {self.timeout}; it must be more than 0 seconds")
        if self.max_retries < 0:
            raise UsageError(f"judge `{self.name}`: `max_retries` is {self.max_retries}; it must be at least 0")
        is_bare = self.provider is None and self.base_url is None and "/" not in self.model
        return open_model(
            self.model,
            provider="openai" if is_bare else self.provider,
            base_url=self.base_url,
            api_key=self.api_key,
            max_concurrent=self.max_concurrent,
            requests_per_minute=self.requests_per_minute,
            retries=Retries(tries=self.max_retries + 1),
        )


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """What is judged, and by what.

    Either `prompt`, a rubric (see `stateval.graders.judging.template`), or `criteria`. `system_prompt` comes before
    what every judge is told. `rubric_vars` are the names that a rubric reads from the row. Each judge is asked `votes`
    times, scores within `scale`, and is asked at most `criteria_per_call` criteria at once.
    """

    prompt: str | None = None
    criteria: Mapping[str, Criterion] = field(default_factory=dict)
    system_prompt: str | None = None
    rubric_vars: tuple[str, ...] | None = None
    votes: int = 1
    scale: tuple[float, float] = (0.0, 1.0)
    criteria_per_call: int = CRITERIA_PER_CALL

    def require_valid(self) -> None:
        """Raises UsageError that says what is wrong and what to write."""
        if self.prompt is not None and self.criteria:
            raise UsageError("a judge has a `prompt` or `criteria`, not both; put the criteria into the prompt")
        if self.prompt is None:
            self._require_criteria()
        elif not self.prompt.strip():
            raise UsageError("the judge's `prompt` is empty; write what is asked of the submission")
        self._require_counts()
        low, high = self.scale
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UsageError(f"`scale` is [{low:g}, {high:g}]; write the worst score and then a greater, best one")
        taken = sorted(set(self.rubric_vars or ()).intersection(RESERVED))
        if taken:
            raise UsageError(f"`rubric_vars` may not name `{taken[0]}`, which the sample fills; choose another name")

    def _require_criteria(self) -> None:
        if not self.criteria:
            raise UsageError("a judge needs a `prompt` or at least one criterion in `criteria`")
        for name, criterion in self.criteria.items():
            if not name.strip():
                raise UsageError("a criterion has an empty name")
            if not (math.isfinite(criterion.weight) and criterion.weight >= 0):
                raise UsageError(f"criterion `{name}` has the weight {criterion.weight}; it must be 0 or more")
        if not any(criterion.weight for criterion in self.criteria.values()):
            raise UsageError("the weights of all `criteria` are 0; at least one must count")

    def _require_counts(self) -> None:
        for name, count in (("votes", self.votes), ("criteria_per_call", self.criteria_per_call)):
            if count < 1:
                raise UsageError(f"`{name}` is {count}; it must be at least 1")

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All of it; the order of the criteria counts."""
        return {
            "rubric": self.prompt,
            "criteria": [[name, asdict(criterion)] for name, criterion in self.criteria.items()],
            "system_prompt": self.system_prompt,
            "rubric_vars": None if self.rubric_vars is None else sorted(self.rubric_vars),
            "votes": self.votes,
            "scale": [float(bound) for bound in self.scale],
            "criteria_per_call": self.criteria_per_call,
        }


def read_criteria(given: Mapping[str, Any]) -> dict[str, Criterion]:
    """Criteria as people write them: each a `Criterion`, a description, a weight, or a mapping of both.

    Raises UsageError.
    """
    if not isinstance(given, Mapping):
        raise UsageError("`criteria` must be a mapping from names to descriptions or weights")
    return {str(name): _criterion(str(name), value) for name, value in given.items()}


def _criterion(name: str, value: Any) -> Criterion:
    match value:
        case Criterion():
            return value
        case str():
            return Criterion(description=value)
        case int() | float() if not isinstance(value, bool):
            return Criterion(weight=float(value))
        case Mapping():
            unknown = sorted(map(str, value.keys() - {"weight", "description"}))
            if unknown:
                raise UsageError(f"criterion `{name}` has no `{unknown[0]}`; it has `weight` and `description`")
            return _criterion_of(name, value.get("weight", 1.0), value.get("description", ""))
    raise UsageError(f"criterion `{name}` is {value!r}; write a description, or `weight` and `description`")


def _criterion_of(name: str, weight: Any, description: Any) -> Criterion:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise UsageError(f"the weight of criterion `{name}` is {weight!r}; it must be a number")
    if not isinstance(description, str):
        raise UsageError(f"the description of criterion `{name}` is {description!r}; it must be a text")
    return Criterion(float(weight), description)


def read_judges(judges: Sequence[JudgeModel | str] | None, model: Mapping[str, Any]) -> tuple[JudgeModel, ...]:
    """The judges: the one that `model` describes by fields of `JudgeModel`, or several.

    The fields in `model` hold for those of several that are given by name. Raises UsageError.
    """
    known = {one.name for one in fields(JudgeModel)}
    unknown = sorted(model.keys() - known)
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        raise UsageError(f"a judge has no setting `{unknown[0]}`" + (f"; did you mean `{near[0]}`?" if near else ""))
    if judges is None:
        return (JudgeModel(**model),)
    if "model" in model:
        raise UsageError("a judge has a `model` or several `judges`, not both")
    return tuple(judge if isinstance(judge, JudgeModel) else JudgeModel(judge, **model) for judge in judges)


def require_different(judges: Sequence[JudgeModel]) -> None:
    """Raises UsageError where there is no judge, or one of them twice."""
    if not judges:
        raise UsageError("`judges` is empty; name at least one model")
    seen = set()
    for judge in judges:
        asked = (judge.name, judge.base_url, judge.generation)
        if asked in seen:
            raise UsageError(f"`judges` names `{judge.name}` twice; to ask it more than once use `votes`")
        seen.add(asked)
