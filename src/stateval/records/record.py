"""What all records have in common."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from stateval.records.encoding import dump_json, is_plainly_finite, load_json


class Record(BaseModel):
    """Plain, frozen data that is written by `to_json` as one JSON object and read back equal.

    A field that is None is left out of the JSON; keys that this release does not know are ignored on reading, so
    that files of other releases and tools can be read.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, strings and numbers."""
        return self.model_dump(mode="python", exclude_none=True)

    def to_json(self) -> bytes:
        """The record as one line of JSON in UTF-8, without the newline."""
        return dump_json(self.to_dict())

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """The record that `to_json` wrote. Raises ValueError where the text is something else."""
        if is_plainly_finite(text):
            # What fails here is read by the slower reader, which accepts more and says what it does not.
            with suppress(ValueError):
                return cls.model_validate_json(text)
        return cls.model_validate(load_json(text))
