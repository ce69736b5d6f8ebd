"""What the models of a suite file have in common: words that are not known, and fields of which one must be given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ModelWrapValidatorHandler, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, ValidationError

from stateval.suite.later import refusal
from stateval.suite.plain_words import SAID, sentence, unknown_field


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {str(value).lower()}")
    return value


_GREATEST = 2**63 - 1
_NoBoolean = BeforeValidator(_no_boolean)
Text = Annotated[str, Field(min_length=1)]
Settings = dict[Any, Any]
"""A mapping that the part it belongs to understands. YAML's keys are text, in which half an emoji may stand."""

Count = Annotated[int, Field(ge=1, le=_GREATEST), _NoBoolean]
Retries = Annotated[int, Field(ge=0, le=_GREATEST), _NoBoolean]
Whole = Annotated[int, Field(ge=-_GREATEST, le=_GREATEST), _NoBoolean]
Runs = Annotated[int, Field(ge=1, le=1_000_000), _NoBoolean]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), _NoBoolean]
Seconds = Positive
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), _NoBoolean]
Number = Annotated[float, Field(allow_inf_nan=False), _NoBoolean]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _NoBoolean]


class SpecModel(BaseModel):
    """A mapping of a suite file. Unknown keys are errors that name the nearest known one.

    A subclass lists in `alternatives` fields of which exactly one must be given, in `either` fields of which one at
    most may be, in `later` the words that a later release understands, and in `elsewhere` those that mean something in
    another place, each with what to say of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = ()
    either: ClassVar[tuple[tuple[str, ...], ...]] = ()
    later: ClassVar[Mapping[str, str]] = {}
    elsewhere: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        errors = list(cls._wrong_alternatives(data)) if isinstance(data, Mapping) else []
        try:
            model = handler(data)
        except ValidationError as error:
            errors = cls._all_explained(error.errors(include_url=False), errors)
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return model

    @classmethod
    def _all_explained(cls, details: list[ErrorDetails], own: list[InitErrorDetails]) -> list[InitErrorDetails]:
        """Where the kind itself is wrong, nothing else can be said of the fields beside it."""
        wrong_kind = [detail for detail in details if detail["type"] == "literal_error" and detail["loc"] == ("kind",)]
        return [cls._explained(detail) for detail in wrong_kind or details] + ([] if wrong_kind else own)

    @classmethod
    def _explained(cls, error: ErrorDetails) -> InitErrorDetails:
        if error["type"] == "missing":
            return InitErrorDetails(type="missing", loc=error["loc"], input=error["input"])
        if error["type"] == "extra_forbidden" and len(error["loc"]) == 1:
            word = str(error["loc"][0])
            return _said(cls._told_of(word), error["loc"], error["input"])
        return _said(sentence(error), error["loc"], error["input"])

    @classmethod
    def _told_of(cls, word: str) -> str:
        if word in cls.later:
            return refusal(word, cls.later[word])
        if word in cls.elsewhere:
            return f"`{word}` {cls.elsewhere[word]}"
        return unknown_field(word, cls.model_fields)

    @classmethod
    def _wrong_alternatives(cls, data: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        for names in (*cls.alternatives, *cls.either):
            given = [name for name in names if data.get(name) is not None]
            for name in given[1:]:
                yield _said(f"stands beside `{given[0]}`; give one of them", (name,), data[name])
            if not given and names in cls.alternatives:
                others = " or ".join(f"`{name}`" for name in names[1:])
                yield _said(f"`{names[0]}` is required (or {others})", (), data)


def _said(message: str, loc: tuple[int | str, ...], value: Any) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError(SAID, "{said}", {"said": message}), loc=loc, input=value)
