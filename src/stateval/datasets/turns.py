"""The input of a row as turns, with complaints that say which item and which key."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from stateval.datasets.raw import kind_of
from stateval.records.sample import NewConversation, SimulatedInput, Simulation, UserTurn, Wait

Turn = str | UserTurn | NewConversation | Wait

_TURNS: dict[str, tuple[type[UserTurn | NewConversation | Wait], tuple[str, ...]]] = {
    "user": (UserTurn, ("user", "ground_truth", "graders")),
    "new_conversation": (NewConversation, ("new_conversation",)),
    "wait": (Wait, ("wait",)),
}
_WANTED = {
    "user": "text",
    "ground_truth": "text",
    "graders": "a list of grader names",
    "new_conversation": "`true`",
    "wait": "a number of seconds, 0 or more",
    "persona": "text",
    "goal": "text",
    "max_turns": "a whole number, 1 or more",
    "stop_when": "text",
}
_TURN_FORMS = 'a turn is text, {"user": "..."}, {"new_conversation": true} or {"wait": seconds}'


class FieldFault(ValueError):
    """What is wrong with the value of a field. `path` leads from the field to the fault, such as `[2].wait`."""

    def __init__(self, message: str, path: str = "", advice: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.advice = advice


def parse_input(value: Any) -> str | list[Turn] | SimulatedInput:
    """A row's `input` as the records of `records/sample`. Raises FieldFault."""
    match value:
        case str() | SimulatedInput():
            return value
        case list() | tuple():
            return [_parse_turn(item, position) for position, item in enumerate(value)]
        case Mapping() if "simulate" in value:
            return _parse_simulation(value)
        case Mapping():
            raise FieldFault(f"is an object; {_INPUT_FORMS}")
    raise FieldFault(f"is {kind_of(value)}; {_INPUT_FORMS}")


_INPUT_FORMS = 'an input is text, a list of turns, or {"simulate": {...}}'


def _parse_turn(item: Any, position: int) -> Turn:
    if isinstance(item, Turn):
        return item
    where = f"[{position}]"
    if not isinstance(item, Mapping):
        raise FieldFault(f"is {kind_of(item)}; {_TURN_FORMS}", where)
    values = {key: value for key, value in item.items() if value is not None}
    kinds = [kind for kind in _TURNS if kind in values]
    if len(kinds) > 1:
        raise FieldFault(f"has both `{kinds[0]}` and `{kinds[1]}`; make two turns of it", where)
    if not kinds:
        advice = 'write {"user": "..."}' if "content" in values else _did_you_mean(values, tuple(_TURNS))
        raise FieldFault(f"has none of `user`, `new_conversation`, `wait`; {_TURN_FORMS}", where, advice)
    model, allowed = _TURNS[kinds[0]]
    _refuse_unknown(values, allowed, where)
    if kinds[0] == "wait" and not _is_number(values["wait"]):
        raise FieldFault(f"must be {_WANTED['wait']}, not {kind_of(values['wait'])}", f"{where}.wait")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _fault_of(error, where) from None


def _parse_simulation(value: Mapping[str, Any]) -> SimulatedInput:
    _refuse_unknown(value, ("simulate",), "")
    simulation = value["simulate"]
    if not isinstance(simulation, Mapping):
        raise FieldFault(f"must be an object, not {kind_of(simulation)}", ".simulate")
    _refuse_unknown(simulation, tuple(Simulation.model_fields), ".simulate")
    given = {key: item for key, item in simulation.items() if item is not None}
    try:
        return SimulatedInput(simulate=Simulation.model_validate(given))
    except ValidationError as error:
        raise _fault_of(error, ".simulate") from None


def _refuse_unknown(values: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    unknown = [key for key in values if key not in allowed]
    if unknown:
        known = ", ".join(f"`{name}`" for name in allowed)
        advice = _did_you_mean(unknown, allowed) or f"it may have {known}"
        raise FieldFault(f"has the unknown key `{unknown[0]}`", where, advice)


def _did_you_mean(names: Any, known: tuple[str, ...]) -> str | None:
    near = next((match for name in names for match in get_close_matches(str(name), known, n=1)), None)
    return f"did you mean `{near}`?" if near else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fault_of(error: ValidationError, where: str) -> FieldFault:
    first = error.errors(include_url=False)[0]
    key = str(first["loc"][0])
    return FieldFault(f"must be {_WANTED[key]}, not {kind_of(first['input'])}", f"{where}.{key}")
