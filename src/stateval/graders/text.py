"""Graders that compare text."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from stateval.errors import GradingError
from stateval.extractors.patterns import TIMEOUT, compiled
from stateval.graders.folding import folded, holds
from stateval.graders.inputs import expected_of, shown, texts_in, truth_of
from stateval.loading.options import Options
from stateval.records.grade import GradeResult
from stateval.records.protocols import GradeRequest

_PRINTABLE = frozenset(map(chr, range(32, 127))) | {"\n", "\r"}


class NoOptions(Options):
    """Nothing can be set."""


class ContainsOptions(Options):
    """How the truth is looked for."""

    whole: bool = Field(default=False, description="only as whole words: `4` is not in `14`")


class TextsOptions(ContainsOptions):
    """Which texts are looked for, where the row does not say."""

    expected: Any = Field(default=None, description="a text or a list of texts, for rows without `expected`")

    @field_validator("expected")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        return None if value is None else texts_in(value)


class RegexOptions(Options):
    """How long a search may take."""

    timeout: float = Field(default=TIMEOUT, gt=0, allow_inf_nan=False, description="seconds until a search is an error")


class SimilarityOptions(Options):
    """How alike two texts are, and how alike is enough."""

    method: Literal["ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"] = Field(
        default="ratio", description="rapidfuzz's `ratio`, `partial_ratio`, `token_sort_ratio` or `token_set_ratio`"
    )
    threshold: float | None = Field(
        default=None, gt=0, le=1, description="score 1 from this similarity on and 0 below; without it the similarity"
    )


def exact_match(request: GradeRequest, options: NoOptions) -> GradeResult:
    """The submission is the ground truth, character for character; space around either does not count."""
    truth, submission = truth_of(request).strip(), request.submission.strip()
    if submission == truth:
        return GradeResult(score=1.0, rationale=f"the submission is exactly {shown(truth)}")
    return GradeResult(score=0.0, rationale=f"expected exactly {shown(truth)}, found {shown(submission)}")


def contains(request: GradeRequest, options: ContainsOptions) -> GradeResult:
    """The ground truth is somewhere in the submission; case and the spelling of accents do not count."""
    truth = truth_of(request)
    if not truth.strip():
        raise GradingError("the ground truth is empty, and every text contains an empty one")
    what = f"{shown(truth)} as whole words" if options.whole else shown(truth)
    if holds(folded(request.submission), folded(truth), whole=options.whole):
        return GradeResult(score=1.0, rationale=f"the submission contains {what}")
    return GradeResult(score=0.0, rationale=f"{what} is not in the submission {shown(request.submission)}")


def not_contains(request: GradeRequest, options: TextsOptions) -> GradeResult:
    """None of the texts is in the submission: those of `expected`, else the ground truth."""
    found, _, said = _sought(request, options)
    if found:
        return GradeResult(score=0.0, rationale=f"the submission contains {said}", metadata={"found": found})
    return GradeResult(score=1.0, rationale=f"the submission contains none of {said}", metadata={"found": found})


def contains_any(request: GradeRequest, options: TextsOptions) -> GradeResult:
    """At least one of the texts is in the submission: those of `expected`, else the ground truth."""
    found, _, said = _sought(request, options)
    if found:
        return GradeResult(score=1.0, rationale=f"the submission contains {said}", metadata={"found": found})
    rationale = f"none of {said} is in the submission {shown(request.submission)}"
    return GradeResult(score=0.0, rationale=rationale, metadata={"found": found})


def contains_all(request: GradeRequest, options: TextsOptions) -> GradeResult:
    """All of the texts are in the submission: those of `expected`, else the ground truth."""
    found, missing, _ = _sought(request, options)
    metadata = {"found": found, "missing": missing}
    if not missing:
        return GradeResult(score=1.0, rationale=f"the submission contains all of {_list(found)}", metadata=metadata)
    rationale = f"{_list(missing)} is not in the submission {shown(request.submission)}"
    return GradeResult(score=0.0, rationale=rationale, metadata=metadata)


def regex_match(request: GradeRequest, options: RegexOptions) -> GradeResult:
    """The ground truth is a regular expression that is found somewhere in the submission."""
    pattern = truth_of(request)
    try:
        match = compiled(pattern).search(request.submission, timeout=options.timeout)
    except ValueError as error:
        raise GradingError(str(error)) from None
    except TimeoutError:
        raise GradingError(f"searching for `{pattern}` took longer than {options.timeout:g} s") from None
    if match:
        return GradeResult(score=1.0, rationale=f"`{pattern}` matches {shown(match.group())}")
    return GradeResult(score=0.0, rationale=f"`{pattern}` matches nothing in {shown(request.submission)}")


def ascii_printable_only(request: GradeRequest, options: NoOptions) -> GradeResult:
    """Every character of the submission is printable ASCII (codes 32 to 126); line ends do not count."""
    for position, character in enumerate(request.submission):
        if character not in _PRINTABLE:
            rationale = f"character {position} is U+{ord(character):04X}, which is not printable ASCII"
            return GradeResult(score=0.0, rationale=rationale, metadata={"position": position})
    return GradeResult(score=1.0, rationale=f"all {len(request.submission)} characters are printable ASCII")


def similarity(request: GradeRequest, options: SimilarityOptions) -> GradeResult:
    """How alike the submission and the ground truth are, from 0 to 1 (rapidfuzz); case does not count."""
    from rapidfuzz import fuzz

    truth = truth_of(request)
    value = getattr(fuzz, options.method)(folded(request.submission), folded(truth)) / 100
    compared = f"{shown(request.submission)} is {value:.3f} like {shown(truth)} ({options.method})"
    if options.threshold is None:
        return GradeResult(score=value, rationale=compared)
    enough = value >= options.threshold - 1e-9
    rationale = f"{compared}, which is {'at least' if enough else 'below'} {options.threshold:g}"
    return GradeResult(score=float(enough), rationale=rationale, metadata={"similarity": value})


def regex_problem(truth: str) -> str | None:
    """What is wrong with a truth as a regular expression."""
    try:
        compiled(truth)
    except ValueError as error:
        return str(error)
    return None


def empty_problem(truth: str) -> str | None:
    """What is wrong with a truth that is looked for."""
    return None if truth.strip() else "the ground truth is empty, and every text contains an empty one"


def _sought(request: GradeRequest, options: TextsOptions) -> tuple[list[str], list[str], str]:
    """(the texts that were found, those that were not, what to say: the found ones, or all of them)."""
    texts, _ = expected_of(request, options.expected, texts_in)
    submission = folded(request.submission)
    found = [text for text in texts if holds(submission, folded(text), whole=options.whole)]
    missing = [text for text in texts if text not in found]
    return found, missing, _list(found or texts)


def _list(texts: list[str]) -> str:
    return ", ".join(shown(text) for text in texts)
