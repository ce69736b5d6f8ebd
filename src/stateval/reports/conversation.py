"""One sample turn by turn: what was said and done, what changed in memory, and how it was judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from stateval.records.encoding import json_text
from stateval.records.grade import GradeResult, PerTurnGrade
from stateval.records.message import (
    ApprovalRequestMessage,
    AssistantMessage,
    EventMessage,
    HiddenReasoningMessage,
    Message,
    MessageRecord,
    ReasoningMessage,
    SummaryMessage,
    SystemMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturn,
    ToolReturnMessage,
    UserMessage,
    text_of,
)
from stateval.records.result import ErrorCategory, SampleError, SampleResult
from stateval.records.sample import Sample
from stateval.records.usage import Timing, Usage
from stateval.reports.judging import judge_passages, judged_passages
from stateval.reports.memory import Change, change_passage, memory_changes, state_passages
from stateval.reports.passages import Passage, Writing
from stateval.reports.samples import result_line

HOW_TO_KEEP = "`snapshots: every_turn` in the suite keeps it after each turn"


def conversation_report(
    result: SampleResult,
    sample: Sample | None,
    *,
    label: str | None = None,
    encoding: str = "utf-8",
    full: bool = False,
) -> RenderableType:
    """The whole sample. Texts that others wrote are data: each stands in a column of its own.

    Args:
        sample: the row, which has what the user says; None where it is not known any more.
        label: what tables call the model.
        encoding: what the console can show (`console.encoding`).
        full: long texts are not cut.
    """
    report = _Conversation(result, sample, Writing(encoding, full))
    name = Text(report.writing.safe(result_line(result, label)), style="bold")
    return Group(
        name, *report.particulars(), *report.turns(), *report.memory(), *report.judgement(), *report.resources()
    )


@dataclass(frozen=True, slots=True)
class _Conversation:
    result: SampleResult
    sample: Sample | None
    writing: Writing

    def particulars(self) -> Iterator[Passage]:
        result, sample = self.result, self.sample
        truth = None if sample is None or isinstance(sample.ground_truth, list) else sample.ground_truth
        expected = None if sample is None or sample.expected is None else json_text(sample.expected)
        tags = ", ".join(result.tags or ()) or None
        said = {"agent": result.agent_id, "tags": tags, "cluster": result.cluster, "truth": truth, "expected": expected}
        for name, value in said.items():
            if value is not None:
                yield self.writing.passage(name, value)
        if sample is None:
            yield Passage("note", [Text("the row is not known any more, so what the user said is not shown")])

    def turns(self) -> Iterator[RenderableType]:
        changes = {change.last_turn: change for change in memory_changes(self.result.snapshots or ())}
        said = _user_messages(self.sample)
        for number, messages in enumerate(self.result.trajectory):
            yield self._turn_heading(number)
            yield from self._user(said[number] if number < len(said) else None, messages)
            yield from (passage for message in messages for passage in _passages(message, self.writing))
            if number in changes:
                yield from self._change(changes[number])
        yield from self._unfinished_turn(said)
        if self.result.error is None and len(self.result.trajectory) in (self.result.conversations or ()):
            yield Text("\nA new conversation began after the last turn.", style="bold")

    def memory(self) -> Iterator[RenderableType]:
        """What is left to say of the memory: what there was at the end, and how to keep more."""
        result = self.result
        kept = {snapshot.turn for snapshot in result.snapshots or ()}
        if kept.issuperset(range(-1, len(result.trajectory))):
            return
        yield self._section("Memory")
        if kept:
            states = ", ".join("before the first turn" if turn < 0 else f"after turn {turn}" for turn in sorted(kept))
            yield Passage("note", [Text(f"only the memory {states} was kept; {HOW_TO_KEEP}")])
        elif result.agent_state is None:
            yield Passage("note", [Text(f"none was kept; for an agent that shows its memory, {HOW_TO_KEEP}")])
        else:
            yield Passage("note", [Text(f"only the memory at the end was kept; {HOW_TO_KEEP}")])
            yield from state_passages(result.agent_state, self.writing)

    def judgement(self) -> Iterator[RenderableType]:
        result = self.result
        errors = result.grade_errors or {}
        for metric in {**result.grades, **errors, **result.submissions}:
            grade = result.grades.get(metric)
            score = "no grade" if grade is None else f"{grade.score:.3g}"
            yield self._section(f"{metric}: {score}")
            yield from self._grade(metric, grade)
            if metric in errors:
                yield self._error(errors[metric])
        if result.reward is not None:
            yield self._section(f"reward: {result.reward.score:.3g}")
            if result.reward.metadata:
                yield self.writing.passage("metadata", json_text(result.reward.metadata))
        if result.error is not None:
            yield self._section("Error")
            yield self._error(result.error)

    def resources(self) -> Iterator[RenderableType]:
        yield self._section("Usage")
        yield self.writing.passage("seconds", _seconds(self.result.timing))
        if self.result.usage is not None:
            yield self.writing.passage("tokens", _tokens(self.result.usage))
            cost = self.result.usage.cost
            yield self.writing.passage("cost", "not known" if cost is None else f"{cost:.6g} USD")

    def _turn_heading(self, number: int) -> Text:
        anew = ", in a new conversation" if number in (self.result.conversations or ()) else ""
        return self._section(f"Turn {number}{anew}")

    def _unfinished_turn(self, said: Sequence[str]) -> Iterator[RenderableType]:
        number, error = len(self.result.trajectory), self.result.error
        if error is not None and error.category is ErrorCategory.TARGET and number < len(said):
            yield self._turn_heading(number)
            yield from self._user(said[number], [])
            yield Passage("note", [Text("the target failed in this turn", style="red")])

    def _user(self, said: str | None, messages: Sequence[MessageRecord]) -> Iterator[Passage]:
        """What the user said, unless the turn's messages hold it too."""
        echoed = any(isinstance(message, UserMessage) and text_of(message.content) == said for message in messages)
        if said is not None and not echoed:
            yield self.writing.passage("user", said, "cyan")

    def _change(self, change: Change) -> Iterator[Passage]:
        if change.first_turn < change.last_turn:
            turns = f"over turns {change.first_turn} to {change.last_turn}"
            yield Passage("memory", [Text(f"what changed {turns}; the states between them were not kept", style="dim")])
        yield change_passage(change, self.writing)

    def _grade(self, metric: str, grade: GradeResult | None) -> Iterator[Passage]:
        turns = (grade.per_turn_grades if grade else None) or []
        if metric in self.result.submissions and not turns:
            yield self.writing.passage("submission", self.result.submissions[metric])
        if grade is not None:
            yield from self._reasons(grade, is_judged=grade.judging is not None)
        for turn in turns:
            yield from self._grade_of_turn(turn, is_judged=grade is not None and grade.judging is not None)
        if grade is not None and grade.judging is not None:
            yield from judge_passages(grade.judging, self.writing)

    def _reasons(self, grade: GradeResult | PerTurnGrade, *, is_judged: bool) -> Iterator[Passage]:
        if is_judged:
            yield from judged_passages(grade.metadata, grade.rationale, self.writing)
            return
        if grade.rationale:
            yield self.writing.passage("rationale", grade.rationale)
        if grade.metadata and isinstance(grade, GradeResult):
            yield self.writing.passage("metadata", json_text(grade.metadata))

    def _grade_of_turn(self, grade: PerTurnGrade, *, is_judged: bool) -> Iterator[Passage]:
        yield Passage(f"turn {grade.turn}", [Text(f"{grade.score:.3g}")])
        truths = (self.sample.turn_truths if self.sample else None) or ()
        truth = truths[grade.turn] if grade.turn < len(truths) else None
        yield self.writing.passage("submission", grade.submission)
        if truth is not None:
            yield self.writing.passage("truth", truth)
        yield from self._reasons(grade, is_judged=is_judged)

    def _error(self, error: SampleError) -> Passage:
        timed_out = " (timed out)" if error.timed_out else ""
        return self.writing.passage(
            "error", f"{error.category}{timed_out}: {error.exception_type}: {error.message}", "red"
        )

    def _section(self, heading: str) -> Text:
        return Text("\n").append(self.writing.safe(heading), "bold")


def _user_messages(sample: Sample | None) -> list[str]:
    """What the user says turn by turn; nothing where a simulated user said it."""
    if sample is None or not isinstance(sample.input, str | list):
        return []
    return [turn.user for turn in sample.user_turns]


def _passages(message: Message, writing: Writing) -> Iterator[Passage]:
    """The passages of one message."""
    match message:
        case UserMessage():
            yield writing.passage("user", _content(message.content), "cyan")
        case SystemMessage():
            yield writing.passage("system", _content(message.content))
        case AssistantMessage():
            yield writing.passage("assistant", _content(message.content), "green")
        case ReasoningMessage():
            yield writing.passage("reasoning", message.reasoning, "dim")
        case HiddenReasoningMessage():
            yield writing.passage("reasoning", message.hidden_reasoning or f"({message.state})", "dim")
        case ToolCallMessage():
            yield from (writing.passage("call", _call(call)) for call in message.calls)
        case ApprovalRequestMessage():
            yield from (writing.passage("asks to call", _call(call)) for call in message.calls)
        case ToolReturnMessage():
            yield from (_return(value, writing) for value in message.returns)
            yield from _streams(message, writing)
        case SummaryMessage():
            yield writing.passage("summary", message.summary)
        case EventMessage():
            yield writing.passage("event", f"{message.event_type} {json_text(message.event_data)}")
        case _:
            yield writing.passage("other", json_text(message.to_dict()))


def _content(content: Any) -> str:
    """The text; what has none is counted."""
    text = text_of(content)
    others = [part for part in content if not text_of([part])] if isinstance(content, list | tuple) else []
    kinds = ", ".join(sorted({str(part.get("type")) for part in others if isinstance(part, dict)}))
    noted = f"({len(others)} without text{': ' if kinds else ''}{kinds})" if others else ""
    return "\n".join(part for part in (text, noted) if part)


def _call(call: ToolCall) -> str:
    return f"{call.name}({call.arguments})"


def _return(value: ToolReturn, writing: Writing) -> Passage:
    failed = value.status != "success"
    of = f"{value.name}: " if value.name else ""
    status = f"[{value.status}] " if failed else ""
    text = json_text(value.tool_return) if value.tool_return is not None else ""
    return writing.passage("return", f"{of}{status}{text}" or "", "red" if failed else "dim")


def _streams(message: ToolReturnMessage, writing: Writing) -> Iterator[Passage]:
    for name, lines in (("stdout", message.stdout), ("stderr", message.stderr)):
        if lines:
            yield writing.passage(name, "\n".join(lines), "dim")


def _seconds(timing: Timing) -> str:
    """All that was taken; other tools do not take all, which is NaN."""
    taken = {"in all": timing.total, "target": timing.target, "extraction": timing.extraction}
    named = {**taken, **(timing.per_grader or {})}
    known = [f"{name} {seconds:.2f}" for name, seconds in named.items() if seconds is not None and isfinite(seconds)]
    return ", ".join(known) or "not known"


def _tokens(usage: Usage) -> str:
    details = {
        "from a cache": usage.cached_input_tokens,
        "into a cache": usage.cache_write_tokens,
        "of reasoning": usage.reasoning_tokens,
    }
    known = [f"{count:,} {name}" for name, count in details.items() if count]
    return ", ".join([f"{usage.prompt_tokens:,} in", f"{usage.completion_tokens:,} out", *known])
