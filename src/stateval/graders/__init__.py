"""What judges a submission.

Each function here makes one of the built-in graders: `graders.contains(whole=True)`. A function of your own
`(sample, submission)` is handed over as it is, or through `make_tool_grader`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from stateval.extractors.patterns import TIMEOUT
from stateval.graders.advice import risky_truth
from stateval.graders.bound import make_tool_grader
from stateval.graders.builtin import BUILTIN, BuiltinGrader
from stateval.graders.judging import Criterion, JudgeModel, JudgeSettings, ModelJudge, read_criteria, read_judges
from stateval.graders.semantic import SemanticOptions, SemanticSimilarity
from stateval.llm.opening import DEFAULT_EMBEDDING_MODEL
from stateval.loading.options import read_options
from stateval.records.protocols import Grader

__all__ = [
    "BUILTIN",
    "BuiltinGrader",
    "ascii_printable_only",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "json_match",
    "make_tool_grader",
    "model_judge",
    "not_contains",
    "numeric_match",
    "regex_match",
    "risky_truth",
    "rubric",
    "semantic_similarity",
    "similarity",
    "tool_sequence",
]

Texts = str | Sequence[str] | None


def exact_match() -> Grader:
    """The submission is the ground truth; space around either does not count."""
    return make_tool_grader("exact_match")


def contains(*, whole: bool = False) -> Grader:
    """The ground truth is in the submission; with `whole` as words of its own."""
    return make_tool_grader("contains", {"whole": whole})


def not_contains(expected: Texts = None, *, whole: bool = False) -> Grader:
    """None of the texts is in the submission: the row's `expected`, else these, else the ground truth."""
    return make_tool_grader("not_contains", {"expected": expected, "whole": whole})


def contains_any(expected: Texts = None, *, whole: bool = False) -> Grader:
    """At least one of the texts is in the submission: the row's `expected`, else these, else the ground truth."""
    return make_tool_grader("contains_any", {"expected": expected, "whole": whole})


def contains_all(expected: Texts = None, *, whole: bool = False) -> Grader:
    """All of the texts are in the submission: the row's `expected`, else these, else the ground truth."""
    return make_tool_grader("contains_all", {"expected": expected, "whole": whole})


def regex_match(*, timeout: float = TIMEOUT) -> Grader:
    """The ground truth is a regular expression that is found in the submission within `timeout` seconds."""
    return make_tool_grader("regex_match", {"timeout": timeout})


def ascii_printable_only() -> Grader:
    """Every character of the submission is printable ASCII or a line end."""
    return make_tool_grader("ascii_printable_only")


def similarity(
    *,
    threshold: float | None = None,
    method: Literal["ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"] = "ratio",
) -> Grader:
    """How alike the submission and the ground truth are, or with `threshold` whether they are alike enough."""
    return make_tool_grader("similarity", {"threshold": threshold, "method": method})


def semantic_similarity(
    *,
    model: str = DEFAULT_EMBEDDING_MODEL,
    provider: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    threshold: float | None = None,
    timeout: float = 120.0,
) -> SemanticSimilarity:
    """How alike the submission and the ground truth are in meaning, or with `threshold` whether they are enough.

    Raises UsageError, MissingKey, MissingExtra; the model's settings are those of `stateval.llm.open_embedding_model`.
    """
    settings = {"model": model, "provider": provider, "base_url": base_url, "api_key": api_key}
    config = settings | {"threshold": threshold, "timeout": timeout}
    return SemanticSimilarity(read_options(SemanticOptions, config, "grader `semantic_similarity`"))


def numeric_match(
    *, tolerance: float = 0.0, relative: float = 0.0, number: Literal["last", "first", "only"] = "last"
) -> Grader:
    """A number in the submission is the ground truth within a tolerance, absolute or as a share of the truth."""
    return make_tool_grader("numeric_match", {"tolerance": tolerance, "relative": relative, "number": number})


def json_match(expected: Any = None, *, mode: Literal["equal", "subset"] = "equal") -> Grader:
    """The submission is JSON and equal to the row's `expected` (else this, else the ground truth), or has it in it."""
    return make_tool_grader("json_match", {"expected": expected, "mode": mode})


def tool_sequence(
    expected: Sequence[Any] | None = None,
    *,
    mode: Literal["strict", "unordered", "subset", "superset"] = "strict",
    arguments: Literal["exact", "subset", "ignore"] = "exact",
) -> Grader:
    """The agent's tool calls (extractor `tool_calls`) are those of the row's `expected`, else these."""
    return make_tool_grader("tool_sequence", {"expected": expected, "mode": mode, "arguments": arguments})


def model_judge(
    prompt: str | None = None,
    *,
    criteria: Mapping[str, Criterion | str | float | Mapping[str, Any]] | None = None,
    judges: Sequence[JudgeModel | str] | None = None,
    system_prompt: str | None = None,
    rubric_vars: Sequence[str] | None = None,
    votes: int = 1,
    scale: tuple[float, float] = (0.0, 1.0),
    criteria_per_call: int = 8,
    cache: bool = True,
    **model: Any,
) -> ModelJudge:
    """A model reads the submission beside a rubric, or beside criteria that are scored one by one.

    Args:
        prompt: the rubric, a template with `{input}`, `{ground_truth}`, `{submission}` and the row's `rubric_vars`.
        criteria: names, each with a description, a weight, or a mapping of both; instead of `prompt`.
        judges: models that are all asked; instead of `model`.
        system_prompt: comes before what every judge is told.
        rubric_vars: the names that the rubric reads from the row.
        votes: how often each model is asked.
        scale: the worst and the best score that a judge gives; the grade is brought to 0 - 1.
        criteria_per_call: how many criteria are asked about at once.
        cache: whether answers are kept and known ones used.
        model: the fields of `JudgeModel`: `model`, `provider`, `base_url`, `api_key`, `temperature`, `max_tokens`, ...

    Raises UsageError, MissingKey, MissingExtra.
    """
    settings = JudgeSettings(
        prompt=prompt,
        criteria=read_criteria(criteria or {}),
        system_prompt=system_prompt,
        rubric_vars=None if rubric_vars is None else tuple(rubric_vars),
        votes=votes,
        scale=(scale[0], scale[1]),
        criteria_per_call=criteria_per_call,
    )
    return ModelJudge(settings, read_judges(judges, model), cache=cache)


def rubric(
    criteria: Mapping[str, Criterion | str | float | Mapping[str, Any]],
    *,
    model: str = JudgeModel().model,
    **settings: Any,
) -> ModelJudge:
    """A model scores and explains each criterion on its own; further settings are those of `model_judge`."""
    return model_judge(criteria=criteria, model=model, **settings)
