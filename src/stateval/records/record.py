"""What all records have in common."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from stateval.records.encoding import dump_json, load_json


class Record(BaseModel):
    """Plain, frozen data that is written as one JSON object and read back equal.

    A field that is None is left out of the JSON; keys that this release does not know are ignored on reading, so
    that files of other releases and tools can be read.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True)

    @model_serializer(mode="wrap")
    def _leave_out_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, strings and numbers."""
        return self.model_dump(mode="python")

    def to_json(self) -> bytes:
        """The record as one line of JSON in UTF-8, without the newline."""
        return dump_json(self.to_dict())

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """The record that `to_json` wrote. Raises ValueError where the text is something else."""
        return cls.model_validate(load_json(text))
