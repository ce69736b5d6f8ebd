"""Whether a limit in dollars can be kept: only where every model that is paid for has a price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from stateval.records.protocols import ModelGrader
from stateval.running.plan import GraderBinding, ModelPlan


def price_problems(models: Iterable[ModelPlan], bindings: Iterable[GraderBinding]) -> Iterator[str]:
    """A sentence for each model of which no price is known. An agent of one's own reports its costs itself."""
    for model in models:
        if not getattr(model.target, "has_price", True):
            yield _told(f"model `{model.target.model_handle}`")
    for binding in bindings:
        if isinstance(binding.grader, ModelGrader):
            for name in binding.grader.unpriced_models:
                yield _told(f"model `{name}`, which judges metric `{binding.key}`,")


def _told(model: str) -> str:
    advice = "limit the `tokens`"
    if find_spec("genai_prices") is None:
        advice = f"install `stateval[prices]`, which knows the prices of many models, or {advice}"
    return f"{model} has no known price, so a limit in dollars cannot be kept; {advice}"
