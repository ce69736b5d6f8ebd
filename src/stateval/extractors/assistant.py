"""Extractors that look at what the agent said or thought."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from stateval.errors import ExtractionError
from stateval.extractors.json_answer import json_in
from stateval.extractors.patterns import TIMEOUT, compiled
from stateval.loading.options import Options, read_options
from stateval.records.encoding import json_text
from stateval.records.marks import extractor
from stateval.records.message import AssistantMessage, ReasoningMessage, Trajectory, messages_of, text_of
from stateval.records.protocols import Extraction
from stateval.records.rollout import Rollout

Config = Mapping[str, Any] | Options
"""What a plain extractor is handed: a dict, or settings that were read already."""


class NoOptions(Options):
    """Nothing can be set."""


class JoinOptions(Options):
    """How several messages become one text."""

    separator: str = Field(default="\n", description="what stands between the messages")


class PatternOptions(Options):
    """A regular expression and what to take of its match."""

    pattern: str = Field(description="a regular expression")
    group: int | str = Field(default=0, description="the group to take; 0 is the whole match")
    search_all: bool = Field(default=False, description="take all matches of that message, joined by a space")

    @model_validator(mode="after")
    def _has_the_group(self) -> PatternOptions:
        expression = compiled(self.pattern)
        known = self.group in expression.groupindex if isinstance(self.group, str) else self.group <= expression.groups
        if not known or (isinstance(self.group, int) and self.group < 0):
            raise ValueError(f"`{self.pattern}` has no group {self.group!r}")
        return self


class MarkerOptions(Options):
    """The text after which the answer stands."""

    marker: str = Field(min_length=1, description="the text to look for")
    include_marker: bool = Field(default=False, description="whether the marker is part of what is taken")


class JsonOptions(Options):
    """Which part of the JSON to take: exactly one of the two."""

    field: str | None = Field(default=None, description="a key of the JSON object")
    path: str | None = Field(default=None, description="a JSONPath, such as `$.user.name`")

    @model_validator(mode="after")
    def _one_way(self) -> JsonOptions:
        if (self.field is None) == (self.path is None):
            raise ValueError("write exactly one of `field` and `path`")
        if self.path is not None:
            _compiled_path(self.path)
        return self


@extractor
def last_assistant(trajectory: Trajectory, config: Config) -> str:
    """The text of the agent's last message to the user; empty where it sent none."""
    for turn in reversed(trajectory):
        for message in reversed(turn):
            if isinstance(message, AssistantMessage):
                return text_of(message.content)
    return ""


@extractor
def first_assistant(trajectory: Trajectory, config: Config) -> str:
    """The text of the agent's first message to the user; empty where it sent none."""
    return next(iter(_assistant_texts(trajectory)), "")


@extractor
def all_assistant(trajectory: Trajectory, config: Config) -> str:
    """All messages of the agent to the user, joined."""
    return read_options(JoinOptions, config, "extractor `all_assistant`").separator.join(_assistant_texts(trajectory))


@extractor
def last_turn(trajectory: Trajectory, config: Config) -> str:
    """All messages of the agent to the user in the last turn, joined."""
    separator = read_options(JoinOptions, config, "extractor `last_turn`").separator
    return separator.join(_assistant_texts(trajectory[-1:]))


@extractor
def pattern(trajectory: Trajectory, config: Config) -> str:
    """What a regular expression finds in the latest message of the agent that it matches; else empty.

    With `search_all` the matches are those of `re.findall`: the groups where the pattern has any, of several groups
    the one that `group` counts from 0.
    """
    options = read_options(PatternOptions, config, "extractor `pattern`")
    expression = compiled(options.pattern)
    try:
        for text in reversed(_assistant_texts(trajectory)):
            if options.search_all:
                found = expression.findall(text, timeout=TIMEOUT)
                if found:
                    return " ".join(_of_groups(match, options.group, expression.groupindex) for match in found)
            elif match := expression.search(text, timeout=TIMEOUT):
                return match.group(options.group) or ""
    except TimeoutError:
        raise ExtractionError(f"searching `{options.pattern}` took longer than {TIMEOUT:g} s") from None
    return ""


@extractor
def after_marker(trajectory: Trajectory, config: Config) -> str:
    """What stands after a marker in the latest message of the agent that has it; else empty."""
    options = read_options(MarkerOptions, config, "extractor `after_marker`")
    for text in reversed(_assistant_texts(trajectory)):
        position = text.find(options.marker)
        if position >= 0:
            return text[position + (0 if options.include_marker else len(options.marker)) :].strip()
    return ""


@extractor
def json(trajectory: Trajectory, config: Config) -> str:
    """A field of the JSON in the agent's last message, or what a JSONPath finds in it.

    A fenced block is read too. Text is taken as it is, another value as JSON, several matches of a path as a list;
    empty where the message holds no JSON or no such field.
    """
    return _json(trajectory, read_options(JsonOptions, config, "extractor `json`")).submission


def take_json(rollout: Rollout, options: JsonOptions) -> Extraction:
    """As `json`; the metadata says why the submission is empty, where it is."""
    return _json(rollout.trajectory, options)


@extractor
def reasoning(trajectory: Trajectory, config: Config) -> str:
    """All that the agent wrote as its reasoning, joined."""
    separator = read_options(JoinOptions, config, "extractor `reasoning`").separator
    return separator.join(message.reasoning for _, message in messages_of(trajectory, ReasoningMessage))


def _assistant_texts(trajectory: Sequence[Sequence[Any]]) -> list[str]:
    return [text_of(message.content) for _, message in messages_of(trajectory, AssistantMessage)]


def _of_groups(match: str | tuple[str, ...], group: int | str, names: Mapping[str, int]) -> str:
    if isinstance(match, str):
        return match
    position = names[group] - 1 if isinstance(group, str) else group
    return match[min(position, len(match) - 1)]


def _json(trajectory: Trajectory, options: JsonOptions) -> Extraction:
    try:
        value = json_in(last_assistant(trajectory, {}))
    except ValueError as error:
        return Extraction("", {"missing": True, "reason": f"the last message: {error}"})
    if options.path is not None:
        found = _found_at(options.path, value)
        if not found:
            return Extraction("", {"missing": True, "reason": f"nothing at {options.path}"})
        return Extraction(json_text(found[0] if len(found) == 1 else found))
    if not isinstance(value, dict) or options.field not in value:
        return Extraction("", {"missing": True, "reason": f"no field `{options.field}`"})
    return Extraction(json_text(value[options.field]))


def _found_at(path: str, value: Any) -> list[Any]:
    import jsonpath

    try:
        return list(_compiled_path(path).findall(value))
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise ExtractionError(f"`{path}` cannot be applied: {error}", cause_type=type(error).__name__) from None


@functools.lru_cache(maxsize=128)
def _compiled_path(path: str) -> Any:
    import jsonpath

    try:
        return jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"`{path}` is no JSONPath: {str(error).splitlines()[0]}") from None
