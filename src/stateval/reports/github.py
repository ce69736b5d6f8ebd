"""What a run says to GitHub: annotations on the suite's own lines, as commands of a workflow.

The format of the commands and their escapes are those that GitHub's runner reads (`ActionCommand` of actions/runner).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from stateval.records.result import ErrorCategory, SampleResult
from stateval.records.summary import Ledger, ModelSummary, Summary
from stateval.records.verdict import GateVerdict, Outcome
from stateval.reports.printable import printable, shortened
from stateval.reports.samples import DEFAULT_LABEL, Noteworthy
from stateval.reports.standing import Rule
from stateval.reports.terminal import plain_text
from stateval.reports.verdicts import verdict_report

LONGEST_SUMMARY = 2**20
"""Bytes that the summary of a step may have."""

MOST_OF_A_KIND = 10
"""Annotations of one level that GitHub shows of one step."""

_LONGEST_MESSAGE = 2_000
_WIDTH = 4_000
_TITLES = {Outcome.PASS: "passed", Outcome.FAIL: "failed", Outcome.INCONCLUSIVE: "is inconclusive"}
_BEFORE_GRADING = (ErrorCategory.TARGET, ErrorCategory.UNKNOWN)

Field = tuple[str | int, ...]
"""Where in a suite something is said: `("gate", "conditions", 0)`, `("graders", "quality")`."""


class Level(StrEnum):
    """How loud an annotation is."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class Annotation:
    """One remark on a field of the suite."""

    level: Level
    title: str
    message: str
    field: Field


@dataclass(frozen=True, slots=True)
class Spot:
    """A file, relative to the root of the repository, and a line of it. Without a file the remark is the run's."""

    file: str | None = None
    line: int | None = None


def remarks(summary: Summary, noteworthy: Mapping[str, Noteworthy], rule: Rule) -> Iterator[Annotation]:
    """What there is to say, the worst first: gates that do not pass, a run that did not finish, errors, failures.

    Failed samples are told at their grader's line only where no gate passes in spite of them.
    """
    if not summary.finished:
        because = summary.stopped_because or "not every planned sample was reached"
        yield Annotation(Level.ERROR, "the run did not finish", because, ("name",))
    for number, verdict in enumerate(summary.gates):
        yield from _of_gate(verdict, ("gate", number))
    passed = bool(summary.gates) and all(verdict.outcome is Outcome.PASS for verdict in summary.gates)
    for model in summary.models:
        yield from _of_model(model, noteworthy.get(model.model), rule, passed)


def commands(
    found: Iterable[Annotation], locate: Callable[[Field], Spot], *, clean: Callable[[str], str] = str
) -> Iterator[str]:
    """The lines to print, at most ten of each level: the last of these counts the rest."""
    by_level: dict[Level, list[Annotation]] = {level: [] for level in Level}
    for annotation in found:
        by_level[annotation.level].append(annotation)
    for level, kept in by_level.items():
        shown = kept if len(kept) <= MOST_OF_A_KIND else kept[: MOST_OF_A_KIND - 1]
        for one in shown:
            spot = locate(one.field)
            properties = {"file": spot.file, "line": None if spot.line is None else str(spot.line), "title": one.title}
            yield command(level, {key: clean(value) for key, value in properties.items() if value}, clean(one.message))
        if len(kept) > len(shown):
            yield command(
                level, {"title": f"{len(kept) - len(shown)} more"}, "GitHub shows ten of a kind; the rest is left out"
            )


def command(name: str, properties: Mapping[str, str], message: str) -> str:
    """One command as one line, whatever is in the texts.

    >>> command("error", {"file": "a,b.yaml", "title": "50%"}, "two\\nlines")
    '::error file=a%2Cb.yaml,title=50%25::two%0Alines'
    """
    said = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name}{' ' if said else ''}{said}::{_data(shortened(message, _LONGEST_MESSAGE))}"


def _of_gate(verdict: GateVerdict, field: Field) -> Iterator[Annotation]:
    """One remark on each condition that decided; parts that came out otherwise are not to blame."""
    level = _level(verdict)
    title = (
        f"gate {verdict.name} {_TITLES[verdict.outcome]}" if verdict.name else f"the gate {_TITLES[verdict.outcome]}"
    )
    if level is Level.NOTICE:
        yield Annotation(level, title, _told(verdict, whole=True), field)
        return
    for leaf, place in _deciding(verdict, field):
        yield Annotation(level, title, _told(leaf), place)


def _level(verdict: GateVerdict) -> Level:
    """An inconclusive gate ends the run with an exit status of its own, and fails the job just so."""
    if verdict.outcome is Outcome.PASS:
        return Level.NOTICE
    return Level.WARNING if verdict.on_fail == "warn" else Level.ERROR


def _deciding(verdict: GateVerdict, field: Field) -> Iterator[tuple[GateVerdict, Field]]:
    # The parts of a weighted average have no operator: none of them decides.
    if all(child.operator is None for child in verdict.children):
        yield verdict, field
        return
    over_models = all(child.model is not None for child in verdict.children)
    for number, child in enumerate(verdict.children):
        if child.outcome is verdict.outcome:
            yield from _deciding(child, field if over_models else (*field, "conditions", number))


def _told(verdict: GateVerdict, *, whole: bool = False) -> str:
    """One node in a line, or with all that is below it."""
    bare = verdict.model_copy(update={"name": None, "on_fail": None} | ({} if whole else {"children": []}))
    return plain_text(verdict_report([bare]), width=_WIDTH).strip().removeprefix("Gate: ")


def _of_model(model: ModelSummary, found: Noteworthy | None, rule: Rule, passed: bool) -> Iterator[Annotation]:
    name = "" if model.model == DEFAULT_LABEL else f"{model.model}: "
    samples = found.errored if found else []
    errors = model.errors
    before = {} if errors is None else {key: errors.by_category.get(key, 0) for key in _BEFORE_GRADING}
    if count := sum(before.values()):
        first = next((result for result in samples if result.error and result.error.category in _BEFORE_GRADING), None)
        message = f"{name}{count} of {_planned(model)} observations errored{_why(first)}"
        yield Annotation(Level.WARNING, "the target failed", message, ("target",))
    for metric in rule.metrics:
        ledger = model.ledgers.get(metric)
        if ledger is not None:
            yield from _of_metric(metric, ledger, found, name, rule, passed)


def _of_metric(
    metric: str, ledger: Ledger, found: Noteworthy | None, name: str, rule: Rule, passed: bool
) -> Iterator[Annotation]:
    field = ("graders", metric)
    broken = sum(count for category, count in ledger.errored.items() if category not in _BEFORE_GRADING)
    if broken:
        failed = found.errored if found else []
        first = next((result for result in failed if metric in (result.grade_errors or {})), None)
        message = f"{name}{broken} of {ledger.planned} observations have no grade{_why(first, metric)}"
        yield Annotation(Level.WARNING, f"{metric} could not grade", message, field)
    if ledger.failed and not passed:
        worst = _lowest(metric, found.lowest if found else [], rule)
        message = f"{name}{ledger.failed} of {ledger.planned} observations are below {rule.threshold:.6g}{worst}"
        yield Annotation(Level.WARNING, f"{metric} failed samples", message, field)


def _why(first: SampleResult | None, metric: str | None = None) -> str:
    if first is None:
        return ""
    error = (first.grade_errors or {}).get(metric) if metric is not None else first.error
    return f"; sample {first.sample_id}: {shortened(error.message)}" if error else ""


def _lowest(metric: str, results: Iterable[SampleResult], rule: Rule) -> str:
    graded = [result for result in results if metric in result.grades]
    worst = min(graded, key=lambda result: result.grades[metric].score, default=None)
    if worst is None or rule.passes(worst.grades[metric].score):
        return ""
    grade = worst.grades[metric]
    why = f": {shortened(grade.rationale)}" if grade.rationale else ""
    return f"; sample {worst.sample_id} has {grade.score:.3g}{why}"


def _planned(model: ModelSummary) -> int:
    return next((ledger.planned for ledger in model.ledgers.values()), model.n_total)


def _data(text: str) -> str:
    safe = "\n".join(printable(line) for line in text.split("\n"))
    return safe.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
