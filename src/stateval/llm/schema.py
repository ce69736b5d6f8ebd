"""Reading the one JSON value out of what a model wrote, and comparing it with a JSON Schema.

Only the words of JSON Schema that stateval's own requests use are understood; a schema with another one is refused
rather than half checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stateval.errors import UsageError
from stateval.llm.chat import Schema
from stateval.records.encoding import dump_json, finite_float, refuse_constant

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_NOTES = frozenset({"$schema", "$defs", "title", "description", "default", "examples"})
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == int(value),
}


class InvalidAnswer(ValueError):
    """A model's text holds no value that follows the schema, or several different ones. The message says which."""


def read_answer(text: str, schema: Schema, accept: Callable[[Any], Any] | None = None) -> Any:
    """The one valid value in the text.

    The text may be the JSON itself, or hold it between other words or in a code fence; what a model thought aloud
    before it, in `<think>`, is no answer. Valid is what follows the
    schema; with `accept` instead what that returns, for each value that it does not refuse by InvalidAnswer. Values
    that are not valid do not count, nor do those that give one key two values; the same one twice is one. Nothing is
    ever repaired.

    Raises InvalidAnswer.
    """
    candidates = _candidates(_THOUGHTS.sub("", text).strip())
    if not candidates:
        raise InvalidAnswer("it holds no JSON object" if text.strip() else "it is empty")
    valid: dict[bytes, Any] = {}
    complaint = ""
    for value, contradicted in candidates:
        try:
            if contradicted:
                raise InvalidAnswer(f"it gives `{contradicted[0]}` twice, with different values")
            meant = accept(value) if accept is not None else _following(schema, value)
        except InvalidAnswer as error:
            complaint = complaint or str(error)
        else:
            valid[dump_json(meant, sort_keys=True)] = meant
    if len(valid) > 1:
        raise InvalidAnswer(f"it holds {len(valid)} different answers")
    if not valid:
        raise InvalidAnswer(complaint)
    return next(iter(valid.values()))


def _following(schema: Schema, value: Any) -> Any:
    if found := violation(value, schema):
        raise InvalidAnswer(found)
    return value


def violation(value: Any, schema: Schema) -> str | None:
    """The first thing in which a value does not follow the schema, in words, or None. Raises UsageError."""
    return next(_violations(value, schema, schema, "the answer"), None)


def _candidates(text: str) -> list[tuple[Any, list[str]]]:
    """The JSON values that a text is or holds, each with the keys to which it gives two values."""
    with suppress(ValueError, RecursionError):
        value, contradicted, end = _decoded(text, 0)
        if end == len(text):
            return [(value, contradicted)]
    return list(_objects_in(text))


def _objects_in(text: str) -> Iterator[tuple[Any, list[str]]]:
    position = text.find("{")
    while position >= 0:
        try:
            value, contradicted, end = _decoded(text, position)
            yield value, contradicted
        except (ValueError, RecursionError):
            end = position + 1
        position = text.find("{", end)


def _decoded(text: str, position: int) -> tuple[Any, list[str], int]:
    contradicted: list[str] = []

    def fields_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            contradicted.extend(key for key, value in pairs if repr(value) != repr(fields[key]))
        return fields

    decoder = json.JSONDecoder(object_pairs_hook=fields_of, parse_constant=refuse_constant, parse_float=finite_float)
    value, end = decoder.raw_decode(text, position)
    return value, contradicted, end


def _violations(value: Any, schema: Schema, root: Schema, place: str) -> Iterator[str]:
    for word, rule in schema.items():
        if word in _NOTES:
            continue
        check = _CHECKS.get(word)
        if check is None:
            raise UsageError(f"stateval does not understand `{word}` in the JSON schema of an answer")
        yield from check(value, rule, schema, root, place)


def _reference(value: Any, rule: str, schema: Schema, root: Schema, place: str) -> Iterator[str]:
    name = rule.removeprefix("#/$defs/")
    if name not in root.get("$defs", {}):
        raise UsageError(f"the JSON schema of an answer refers to `{rule}`, which it does not define")
    yield from _violations(value, root["$defs"][name], root, place)


def _type(value: Any, rule: Any, schema: Schema, root: Schema, place: str) -> Iterator[str]:
    names = [rule] if isinstance(rule, str) else rule
    if not any(_TYPES[name](value) for name in names):
        yield f"{place} is not of type {' or '.join(names)}"


def _enum(value: Any, rule: Sequence[Any], schema: Schema, root: Schema, place: str) -> Iterator[str]:
    if not any(type(value) is type(item) and value == item for item in rule):
        yield f"{place} is none of {', '.join(map(repr, rule))}"


def _const(value: Any, rule: Any, schema: Schema, root: Schema, place: str) -> Iterator[str]:
    yield from _enum(value, [rule], schema, root, place)


def _properties(value: Any, rule: Mapping[str, Schema], schema: Schema, root: Schema, place: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in rule.items():
            if name in value:
                yield from _violations(value[name], inner, root, f"`{name}`")


def _required(value: Any, rule: Sequence[str], schema: Schema, root: Schema, place: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{place} has no `{name}`" for name in rule if name not in value)


def _additional(value: Any, rule: Any, schema: Schema, root: Schema, place: str) -> Iterator[str]:
    if not isinstance(value, Mapping) or rule is True:
        return
    for name in value.keys() - schema.get("properties", {}).keys():
        if rule is False:
            yield f"{place} has the unknown key `{name}`"
        else:
            yield from _violations(value[name], rule, root, f"`{name}`")


def _items(value: Any, rule: Schema, schema: Schema, root: Schema, place: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _violations(item, rule, root, f"item {number} of {place}")


def _any_of(value: Any, rule: Sequence[Schema], schema: Schema, root: Schema, place: str) -> Iterator[str]:
    complaints = [next(_violations(value, inner, root, place), None) for inner in rule]
    if all(complaints):
        yield f"{place} follows none of {len(rule)} alternatives"


def _size(kind: type, fits: Callable[[Any, Any], bool], words: str, size: Callable[[Any], Any]) -> Callable[..., Any]:
    def check(value: Any, rule: Any, schema: Schema, root: Schema, place: str) -> Iterator[str]:
        right_kind = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if right_kind and not isinstance(value, bool) and not fits(size(value), rule):
            yield f"{place} is {words} {rule}"

    return check


_CHECKS: Mapping[str, Callable[..., Iterator[str]]] = {
    "$ref": _reference,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "minimum": _size(float, lambda size, rule: size >= rule, "below", float),
    "maximum": _size(float, lambda size, rule: size <= rule, "above", float),
    "exclusiveMinimum": _size(float, lambda size, rule: size > rule, "not above", float),
    "exclusiveMaximum": _size(float, lambda size, rule: size < rule, "not below", float),
    "minLength": _size(str, lambda size, rule: size >= rule, "shorter than", len),
    "maxLength": _size(str, lambda size, rule: size <= rule, "longer than", len),
    "minItems": _size(list, lambda size, rule: size >= rule, "shorter than", len),
    "maxItems": _size(list, lambda size, rule: size <= rule, "longer than", len),
}
