"""What stateval does not bring along: how to get at the profile, and how much of it is right."""

import json
import re

from stateval import GradeResult, extractor, grader
from stateval.extractors.builtin import last_assistant


@extractor
def fenced_json(trajectory, config):
    """The last JSON block between fences in what the agent said last, or an empty text where there is none."""
    blocks = re.findall(r"```json\s*(.*?)```", last_assistant(trajectory, {}), re.DOTALL)
    return blocks[-1].strip() if blocks else ""


@grader
def profile_fields(sample, submission):
    """The share of expected fields that are right, less one field for each that was invented."""
    try:
        profile = json.loads(submission)
    except ValueError as error:
        return GradeResult(score=0, rationale=f"not JSON: {error}")
    expected = sample.expected
    wrong = {field: profile.get(field) for field, value in expected.items() if profile.get(field) != value}
    invented = sorted(set(profile) - set(expected))
    right = len(expected) - len(wrong)
    rationale = f"{right} of {len(expected)} fields right; wrong or missing: {wrong}; invented: {invented}"
    return GradeResult(
        score=max(0, right - len(invented)) / len(expected),
        rationale=rationale,
        metadata={"wrong": list(wrong), "invented": invented},
    )
