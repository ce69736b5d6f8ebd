"""The built-in graders as plain functions of a sample and a submission."""

from __future__ import annotations

from stateval.compat.letta_evals.decorators import grader
from stateval.compat.letta_evals.models import GradeResult
from stateval.graders.bound import make_tool_grader
from stateval.graders.builtin import BUILTIN
from stateval.records.protocols import GradeRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample

__all__ = ["GradeResult", "Sample", "ascii_printable_only", "contains", "exact_match", "grader", "regex_match"]


@grader
def contains(sample: Sample, submission: str) -> GradeResult:
    """1 where the truth stands in the submission, whatever the case of its letters."""
    return _grade("contains", sample, submission)


@grader
def exact_match(sample: Sample, submission: str) -> GradeResult:
    """1 where truth and submission are the same but for white space around them."""
    return _grade("exact_match", sample, submission)


@grader
def regex_match(sample: Sample, submission: str) -> GradeResult:
    """1 where the truth, as a regular expression, is found in the submission."""
    return _grade("regex_match", sample, submission)


@grader
def ascii_printable_only(sample: Sample, submission: str) -> GradeResult:
    """1 where the submission has printable ASCII characters and line ends only."""
    return _grade("ascii_printable_only", sample, submission)


def _grade(name: str, sample: Sample, submission: str) -> GradeResult:
    """Raises GradingError, and ValueError for a sample without the truth that is needed."""
    bound = make_tool_grader(name)
    if complaint := bound.check(sample):
        raise ValueError(complaint)
    truth = sample.ground_truth if isinstance(sample.ground_truth, str) else None
    request = GradeRequest(sample, submission, Rollout(), ground_truth=truth, expected=sample.expected)
    builtin = BUILTIN[name]
    return GradeResult(**dict(builtin.function(request, builtin.options())))
