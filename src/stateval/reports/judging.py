"""What is shown of judges: what they said of each criterion, who they were, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stateval.records.encoding import json_text
from stateval.records.grade import Judging
from stateval.records.summary import JudgingSummary
from stateval.records.usage import Usage
from stateval.reports.passages import Passage, Writing

_SHOWN_APART = ("criteria", "left_out", "votes", "spread", "tie")


def judged_passages(metadata: Mapping[str, Any], rationale: str | None, writing: Writing) -> Iterator[Passage]:
    """A judge's grade: each criterion with its score and reasons, each vote, and whatever else is known."""
    criteria = metadata.get("criteria") or {}
    for name, found in criteria.items():
        reasons = f": {found['rationale']}" if found.get("rationale") else ""
        yield writing.passage("criterion", f"{name} {found['score']:.3g} (weight {found['weight']:g}){reasons}")
    if metadata.get("left_out"):
        yield writing.passage("left out", f"{', '.join(metadata['left_out'])} (the judge could not tell)")
    if rationale and not criteria:
        yield writing.passage("rationale", rationale)
    if metadata.get("votes"):
        yield writing.passage("votes", _votes(metadata))
    rest = {name: value for name, value in metadata.items() if name not in _SHOWN_APART}
    if rest:
        yield writing.passage("metadata", json_text(rest))


def judge_passages(judging: Judging, writing: Writing) -> Iterator[Passage]:
    """Who judged, by what, and what that took."""
    answered = f", answered as {', '.join(judging.answered)}" if judging.answered else ""
    yield writing.passage("judge", f"{', '.join(judging.models)}{answered}")
    yield writing.passage("prompt", f"{judging.prompt} (hash), judge {judging.fingerprint} (hash)")
    yield writing.passage("took", _taken(judging.calls, judging.cached, judging.usage))


def judging_line(metric: str, judging: JudgingSummary) -> str:
    """What the judges of a metric took, in one line."""
    return f"judging {metric} ({', '.join(judging.models)}): {_taken(judging.calls, judging.cached, judging.usage)}"


def _votes(metadata: Mapping[str, Any]) -> str:
    votes = [f"{vote['judge']}, vote {vote['vote']}: {vote['score']:.3g}" for vote in metadata["votes"]]
    tie = "; a tie" if metadata.get("tie") else ""
    return "\n".join([*votes, f"spread {metadata.get('spread', 0.0):.3g}{tie}"])


def _taken(calls: int, cached: int, usage: Usage) -> str:
    parts = [f"{calls:,} call{'' if calls == 1 else 's'}"]
    if cached:
        parts.append(f"{cached:,} of them answered from the cache")
    parts.append(f"tokens: {usage.prompt_tokens:,} in, {usage.completion_tokens:,} out")
    parts.append("price not known" if usage.cost is None else f"cost: {usage.cost:.4f} USD")
    return "; ".join(parts)
