"""A run as one comment in Markdown: the verdict first, then the numbers, the reasons, and a few samples.

What agents wrote stands in code spans, in which nothing is markup, a mention, a reference, a link or an image.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from stateval.gates import overall
from stateval.records.result import Observation, SampleResult
from stateval.records.summary import MetricSummary, ModelSummary, Summary
from stateval.records.verdict import Outcome
from stateval.reports.printable import number, printable, shortened
from stateval.reports.samples import DEFAULT_LABEL, Noteworthy
from stateval.reports.standing import Rule, Standing
from stateval.reports.terminal import ledger_line, plain_text
from stateval.reports.verdicts import verdict_report
from stateval.stats.table import REWARD

LONGEST_COMMENT = 65_536
"""Characters that GitHub takes in the body of a comment; counted as bytes here, which are never fewer."""

_VERDICTS = {Outcome.PASS: "passed", Outcome.FAIL: "FAILED", Outcome.INCONCLUSIVE: "INCONCLUSIVE"}
_LONGEST_NAME = 100
_ROOM_FOR_A_NOTE = 200
_MOST_SAMPLES = 5


def comment(
    summary: Summary,
    noteworthy: Mapping[str, Noteworthy],
    rule: Rule,
    *,
    marker: str | None,
    limit: int = LONGEST_COMMENT,
    clean: Callable[[str], str] = str,
) -> str:
    """The comment, in no more than `limit` bytes of UTF-8; what did not fit is said at its end.

    Args:
        noteworthy: by model, the results of which some are shown.
        rule: which samples pass.
        marker: what the hidden first line names, by which the comment is found again; None for no such line.
        clean: called on every text that an agent, a grader or a dataset may have written.
    """
    blocks = [_heading(summary), _metrics(summary), _ledgers(summary), _gates(summary, clean)]
    blocks.append(_samples(noteworthy, rule, clean))
    first = "" if marker is None else f"{marker_line(marker)}\n"
    return first + _fitting([block for block in blocks if block.lines], limit - len(first.encode("utf-8")))


def marker_line(name: str) -> str:
    """The hidden line that begins a comment; no name can end it early.

    >>> marker_line("my suite --> x")
    '<!-- stateval: my suite %2D%2D%3E x -->'
    """
    return f"<!-- stateval: {quote(escaped(name), safe=' ._:/@()[]+,=-').replace('--', '%2D%2D')} -->"


def escaped(text: str) -> str:
    """One line without control characters and halves of characters."""
    return printable(text)


def code(text: str, longest: int = 240) -> str:
    """The beginning of any text as a code span that shows it as it is, on one line.

    >>> code("@all ![](x) `y`")
    '`` @all ![](x) `y` ``'
    """
    shown = printable(shortened(text, longest))
    if not shown.strip():
        return "(empty)" if not shown else "(spaces)"
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    # A code span ends at the first run of as many backticks, and one space at either end is taken away.
    padded = f" {shown} " if shown[0] in "` " or shown[-1] in "` " else shown
    return f"{fence}{padded}{fence}"


@dataclass(frozen=True)
class _Block:
    """Lines that belong together; between `fence`s where they are a code block."""

    lines: Sequence[str]
    fence: str = ""


def _heading(summary: Summary) -> _Block:
    outcome = overall(summary.gates)
    verdict = "no gate" if outcome is None else f"gate {_VERDICTS[outcome]}"
    if not summary.finished:
        verdict = f"did not finish, {verdict}"
    lines = [f"## {code(summary.suite, _LONGEST_NAME)}: {verdict}"]
    if summary.stopped_because:
        lines += ["", f"Stopped: {code(summary.stopped_because)}"]
    return _Block(lines)


def _metrics(summary: Summary) -> _Block:
    found = [(model, key, metric) for model in summary.models for key, metric in model.metrics.items()]
    counted = any(metric.n_counted != metric.n_scored for _, _, metric in found)
    headings = ["Model", "Metric", "n", "Mean", "95 % interval", "Std dev", "Errors"]
    headings += ["Counted n", "Counted mean", "95 % interval"] if counted else []
    lines = [_row(headings), _row(["---", "---", *("---:" for _ in headings[2:])])]
    return _Block([*lines, *(_row(_cells(model, key, metric, counted)) for model, key, metric in found)])


def _cells(model: ModelSummary, key: str, metric: MetricSummary, counted: bool) -> Iterator[str]:
    yield from (_in_table(model.model), _in_table(key), str(metric.n_scored))
    yield from (number(metric.mean_scored), _interval(metric.interval))
    yield from (number(metric.std_dev), str(metric.n_errors))
    if counted:
        # Where both means are the same there is one interval.
        interval = metric.counted_interval or (metric.interval if metric.n_counted == metric.n_scored else None)
        yield from (str(metric.n_counted), number(metric.mean_counted), _interval(interval))


def _interval(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _ledgers(summary: Summary) -> _Block:
    lines = ["**Ledger**", ""]
    for model in summary.models:
        for key in [REWARD] if REWARD in model.ledgers else model.ledgers:
            names = f"{code(model.model, _LONGEST_NAME)}, {code(key, _LONGEST_NAME)}"
            lines.append(f"* {names}: {ledger_line(model.ledgers[key])}")
    return _Block(lines if len(lines) > 2 else [])


def _gates(summary: Summary, clean: Callable[[str], str]) -> _Block:
    if not summary.gates:
        return _Block([])
    tree = clean(plain_text(verdict_report(summary.gates), width=110)).rstrip()
    # Where this is printed in a workflow of GitHub, a line that begins so would be a command.
    lines = [re.sub(r"^(\s*)::", r"\1\\x3a:", line) for line in tree.split("\n")]
    return _Block(lines, "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall("`+|$", line))))


def _samples(noteworthy: Mapping[str, Noteworthy], rule: Rule, clean: Callable[[str], str]) -> _Block:
    lines = [line for label, found in noteworthy.items() for line in _samples_of(label, found, rule, clean)]
    return _Block(["**Samples to look at**", "", *lines] if lines else [])


def _samples_of(label: str, found: Noteworthy, rule: Rule, clean: Callable[[str], str]) -> Iterator[str]:
    model = "" if label == DEFAULT_LABEL else f" of {code(label, _LONGEST_NAME)}"
    for result in found.errored[:_MOST_SAMPLES]:
        yield f"* sample {_name(result)}{model} errored: {code(clean(_message(result)))}"
    for result in _failed(found.lowest, rule)[:_MOST_SAMPLES]:
        yield f"* sample {_name(result)}{model} did not pass{_reward(result)}"
        yield from _grades(result, clean)


def _failed(results: Iterable[SampleResult], rule: Rule) -> list[SampleResult]:
    return [result for result in results if rule.standing(Observation.of(result)) is Standing.FAILED]


def _grades(result: SampleResult, clean: Callable[[str], str]) -> Iterator[str]:
    for metric, grade in result.grades.items():
        why = f": {code(clean(grade.rationale))}" if grade.rationale else ""
        yield f"  * {code(metric, _LONGEST_NAME)} {grade.score:.3g}{why}"
        if metric in result.submissions:
            yield f"    submission {code(clean(result.submissions[metric]))}"


def _name(result: SampleResult) -> str:
    run = f" run {result.run}" if result.run > 1 else ""
    return f"{code(str(result.sample_id), _LONGEST_NAME)}{run}"


def _reward(result: SampleResult) -> str:
    return f", reward {result.reward.score:.3g}" if result.reward else ""


def _message(result: SampleResult) -> str:
    return f"{result.error.category}: {result.error.message}" if result.error else "no message"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _in_table(text: str) -> str:
    """A bar ends a cell even in a code span, unless a backslash stands before it, which then is not shown."""
    return code(text, _LONGEST_NAME).replace("|", r"\|")


def _fitting(blocks: Sequence[_Block], limit: int) -> str:
    lines: list[str] = []
    left = limit - _ROOM_FOR_A_NOTE
    skipped = 0
    for block in blocks:
        fence = [block.fence] if block.fence else []
        left -= 2 * (len(block.fence) + 1) + 1
        kept = []
        for line in block.lines:
            left -= len(line.encode("utf-8")) + 1
            if left < 0:
                break
            kept.append(line)
        skipped += len(block.lines) - len(kept)
        lines += [*fence, *kept, *fence, ""] if kept else []
    if skipped:
        lines.append(f"{skipped} further lines do not fit here; `stateval report` shows all.")
    return "\n".join(lines).rstrip("\n") + "\n"
