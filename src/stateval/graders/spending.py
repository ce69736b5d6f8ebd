"""What judging has taken, as a summary shows it."""

from __future__ import annotations

from stateval.records.protocols import ModelGrader, Spent
from stateval.records.summary import JudgingSummary


def judging_summary(grader: ModelGrader, spent: Spent) -> JudgingSummary:
    """What this grader's calls took. No cost is known of models without a price, answered or not."""
    is_priced = not grader.unpriced_models or spent.calls == spent.cached
    usage = spent.usage if is_priced else spent.usage.model_copy(update={"cost": None})
    return JudgingSummary(models=list(grader.models), calls=spent.calls, cached=spent.cached, usage=usage)
