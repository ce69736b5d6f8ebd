"""From the answers of judges to one grade."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stateval.errors import GradingError
from stateval.graders.judging.answers import Scale, Verdict
from stateval.graders.judging.settings import JudgeSettings
from stateval.records.grade import GradeResult, Judging

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Ballot:
    """What one judge said in one vote: of each criterion, or where there are none under the name "".

    `member` is the judge's place among the judges, from 0; votes are counted from 1.
    """

    member: int
    judge: str
    vote: int
    verdicts: Mapping[str, Verdict]


def graded(settings: JudgeSettings, ballots: Sequence[Ballot], judging: Judging) -> GradeResult:
    """The mean over judges of the means over their votes.

    Raises GradingError where one of them could tell no criterion that counts.
    """
    scores = [_score(settings, ballot) for ballot in ballots]
    score = mean_over_judges(ballots, scores)
    metadata: dict[str, Any] = {}
    if settings.criteria:
        criteria = {name: _criterion(settings, name, ballots) for name in settings.criteria}
        metadata["criteria"] = {name: found for name, found in criteria.items() if found is not None}
        metadata["left_out"] = [name for name, found in criteria.items() if found is None]
    if len(ballots) > 1:
        metadata |= _spread(settings, ballots, scores)
    low, high = settings.scale
    if (low, high) != (0.0, 1.0):
        metadata["raw_score"] = low + score * (high - low)
    return GradeResult(score=score, rationale=_rationale(settings, ballots, scores), metadata=metadata, judging=judging)


def mean_over_judges(ballots: Sequence[Ballot], scores: Sequence[float]) -> float:
    """The mean over judges of the means over their votes, all judges counting alike."""
    by_judge: dict[int, list[float]] = {}
    for ballot, score in zip(ballots, scores, strict=True):
        by_judge.setdefault(ballot.member, []).append(score)
    return _mean([_mean(votes) for votes in by_judge.values()])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _score(settings: JudgeSettings, ballot: Ballot) -> float:
    if not settings.criteria:
        return _normalised(ballot.verdicts[""]["score"], settings.scale)
    told = [
        (criterion.weight, _normalised(score, settings.scale))
        for name, criterion in settings.criteria.items()
        if criterion.weight and (score := ballot.verdicts[name]["score"]) is not None
    ]
    if not told:
        counted = ", ".join(f"`{name}`" for name, criterion in settings.criteria.items() if criterion.weight)
        raise GradingError(
            f"judge `{ballot.judge}` could not tell any criterion that counts ({counted}), so there is no score; see "
            "whether the extractor takes out what the criteria ask about"
        )
    total = math.fsum(weight for weight, _ in told)
    return min(1.0, math.fsum(weight * score for weight, score in told) / total)


def _normalised(score: float, scale: Scale) -> float:
    low, high = scale
    return min(1.0, max(0.0, (score - low) / (high - low)))


def _criterion(settings: JudgeSettings, name: str, ballots: Sequence[Ballot]) -> dict[str, Any] | None:
    """The mean of those who could tell; None where nobody could."""
    told = [ballot for ballot in ballots if ballot.verdicts[name]["score"] is not None]
    if not told:
        return None
    scores = [_normalised(ballot.verdicts[name]["score"], settings.scale) for ballot in told]
    return {
        "score": mean_over_judges(told, scores),
        "weight": settings.criteria[name].weight,
        "rationale": _joined((ballot, ballot.verdicts[name]["rationale"]) for ballot in ballots),
    }


def _joined(told: Iterable[tuple[Ballot, str | None]]) -> str | None:
    """One rationale as it is; several under the names of their judges."""
    given = list(told)
    if len(given) == 1:
        return given[0][1]
    lines = [f"{ballot.judge}, vote {ballot.vote}: {rationale}" for ballot, rationale in given if rationale]
    return "\n".join(lines) or None


def _spread(settings: JudgeSettings, ballots: Sequence[Ballot], scores: Sequence[float]) -> dict[str, Any]:
    """Each vote, greatest minus smallest, and whether as many are for (at least one half) as against."""
    votes = [
        {"judge": ballot.judge, "vote": ballot.vote, "score": score, **_left_out(settings, ballot)}
        for ballot, score in zip(ballots, scores, strict=True)
    ]
    in_favour = sum(score >= _HALF for score in scores)
    return {"votes": votes, "spread": max(scores) - min(scores), "tie": 2 * in_favour == len(scores)}


def _left_out(settings: JudgeSettings, ballot: Ballot) -> dict[str, list[str]]:
    names = [name for name in settings.criteria if ballot.verdicts[name]["score"] is None]
    return {"left_out": names} if names else {}


def _rationale(settings: JudgeSettings, ballots: Sequence[Ballot], scores: Sequence[float]) -> str | None:
    texts = [_rationale_of(settings, ballot) for ballot in ballots]
    if len(ballots) == 1:
        return texts[0]
    told = zip(ballots, scores, texts, strict=True)
    return "\n".join(f"{ballot.judge}, vote {ballot.vote} ({score:.3g}): {text or ''}" for ballot, score, text in told)


def _rationale_of(settings: JudgeSettings, ballot: Ballot) -> str | None:
    if not settings.criteria:
        rationale: str | None = ballot.verdicts[""]["rationale"]
        return rationale
    lines = []
    for name in settings.criteria:
        verdict = ballot.verdicts[name]
        shown = "cannot tell" if verdict["score"] is None else f"{_normalised(verdict['score'], settings.scale):.3g}"
        lines.append(f"{name} ({shown}): {verdict['rationale'] or ''}")
    return "\n".join(lines)
