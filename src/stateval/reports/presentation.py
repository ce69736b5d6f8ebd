"""How a report is shown: without secrets, with what the console can encode, whole or cut short."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from rich.text import Text

from stateval.records.record import Record
from stateval.records.result import SampleResult
from stateval.records.usage import Timing
from stateval.redaction import Redaction
from stateval.reports.printable import printable

_R = TypeVar("_R", bound=Record)

_NO_TIME = Timing(total=0, target=0)

DEFAULT_LIMIT = 5
"""How many samples are shown where many could be."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """What all parts of a report have in common.

    Args:
        redaction: the secrets that are kept off the screen.
        encoding: what the console can show (`console.encoding`).
        limit: how many samples are shown; None: as many as is usual for the part.
        full: no text is cut.
    """

    redaction: Redaction = field(default_factory=Redaction)
    encoding: str = "utf-8"
    limit: int | None = None
    full: bool = False

    def clean(self, record: _R) -> _R:
        """The record without secrets."""
        text = record.to_json()
        scrubbed = self.redaction.scrub_json(text)
        return record if scrubbed == text else type(record).from_json(scrubbed)

    def clean_result(self, result: SampleResult) -> SampleResult:
        """The same of a result, whose seconds need not be known and have no JSON then."""
        without = result.model_copy(update={"timing": _NO_TIME})
        return self.clean(without).model_copy(update={"timing": result.timing})

    def line(self, text: str, style: str = "") -> Text:
        """One line without secrets and without anything that a terminal obeys."""
        return Text(printable(self.redaction.scrub(text), encoding=self.encoding), style=style)

    def unwrapped(self, text: str) -> Text:
        """The same, never wrapped, so that a path in it can be copied."""
        return Text(self.line(text).plain, no_wrap=True, overflow="ignore")
