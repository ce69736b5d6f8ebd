"""The judges of a run: what they have taken since it began, and giving back what they hold."""

from __future__ import annotations

from collections.abc import Iterable

from stateval.graders.spending import judging_summary
from stateval.records.protocols import ModelGrader, Spent
from stateval.records.summary import JudgingSummary
from stateval.records.usage import Usage
from stateval.running.plan import GraderBinding

_NOTHING = Usage(cost=0.0)


class Judges:
    """The graders of a plan that ask models. Made when a run begins: what they took before is not its own."""

    def __init__(self, bindings: Iterable[GraderBinding]) -> None:
        self._graders: dict[str, ModelGrader] = {}
        for binding in bindings:
            if isinstance(binding.grader, ModelGrader) and binding.grader not in self._graders.values():
                self._graders[binding.key] = binding.grader
        self._before = {key: grader.spent for key, grader in self._graders.items()}

    @property
    def usage(self) -> Usage:
        """What all of them have used since the run began."""
        return sum((self._spent(key).usage for key in self._graders), _NOTHING)

    def summary(self) -> dict[str, JudgingSummary] | None:
        """The same by metric; None where no model judges. One grader of two metrics stands under the first."""
        return {key: self._summary_of(key) for key in self._graders} or None

    async def close(self) -> None:
        """Gives back their connections."""
        for grader in self._graders.values():
            await grader.close()

    def _summary_of(self, key: str) -> JudgingSummary:
        return judging_summary(self._graders[key], self._spent(key))

    def _spent(self, key: str) -> Spent:
        return self._graders[key].spent.since(self._before[key])
