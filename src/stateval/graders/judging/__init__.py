"""Judging by models: rubrics, the fence around what is judged, answers, and the grader that asks."""

from __future__ import annotations

from stateval.graders.judging.judge import ModelJudge
from stateval.graders.judging.settings import (
    CRITERIA_PER_CALL,
    Criterion,
    JudgeModel,
    JudgeSettings,
    read_criteria,
    read_judges,
)

__all__ = [
    "CRITERIA_PER_CALL",
    "Criterion",
    "JudgeModel",
    "JudgeSettings",
    "ModelJudge",
    "read_criteria",
    "read_judges",
]
