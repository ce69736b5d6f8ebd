"""JUnit XML, as CI systems read it: the elements and attributes of Jenkins' schema, written as a stream.

A suite for each model and run with a case for each planned sample, and one suite with the gates.
"""

from __future__ import annotations

import math
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from stateval.records.digest import digest_of
from stateval.records.result import Observation, SampleResult
from stateval.records.summary import ModelSummary, Summary
from stateval.records.verdict import GateVerdict, Outcome
from stateval.reports import xml
from stateval.reports.asked import known_samples
from stateval.reports.printable import printable, shortened
from stateval.reports.samples import DEFAULT_LABEL
from stateval.reports.standing import Rule, Standing
from stateval.reports.terminal import ledger_line, plain_text
from stateval.reports.verdicts import verdict_report
from stateval.results.lines import DigestSet
from stateval.results.reading import Results
from stateval.stats.ledger import ledger
from stateval.stats.table import REWARD, ObservationTable, Selection

_LONGEST_MESSAGE = 500
_LONGEST_TEXT = 4_000
GATE_SUITE = "gate"
"""What the suite of the gates is called."""


def write_junit(
    file: BinaryIO, results: Results, summary: Summary, rule: Rule, *, clean: Callable[[str], str] = str
) -> None:
    """The whole document in UTF-8. It is well-formed whatever agents wrote, of which it shows the beginnings.

    Cases lie in a temporary file until they are counted, for the counts stand before them.

    Args:
        rule: which samples pass.
        clean: called on every text that an agent, a grader or a dataset may have written.
    """
    with tempfile.TemporaryFile() as cases:
        suites = list(_Cases(results, summary, rule, clean, cases).suites())
        _write(file, '<?xml version="1.0" encoding="UTF-8"?>\n', _root(results.suite_name, suites))
        cases.seek(0)
        for suite in suites:
            _write(file, _head(suite))
            _copy(cases, file, suite.size)
            _write(file, "  </testsuite>\n")
        _write(file, "</testsuites>\n")


@dataclass
class _Suite:
    """What is said before the cases of a suite.

    `properties` are the means and the ledger of each metric; `size` is the length of the cases in bytes.
    """

    name: str
    properties: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    size: int = 0


@dataclass(frozen=True)
class _Cases:
    results: Results
    summary: Summary
    rule: Rule
    clean: Callable[[str], str]
    file: BinaryIO

    def suites(self) -> Iterator[_Suite]:
        for model in self.summary.models:
            for run in range(1, self.results.num_runs + 1):
                yield self._of_run(model, run)
        if self.summary.gates or not self.summary.finished:
            yield self._of_gates()

    def _of_run(self, model: ModelSummary, run: int) -> _Suite:
        name, label = self.results.suite_name, model.model
        group = name if label == DEFAULT_LABEL else f"{name} [{label}]"
        after = f" (run {run})" if self.results.num_runs > 1 else ""
        suite = _Suite(f"{group}{after}")
        digests, table = array("Q"), ObservationTable(self.results.metric_keys)
        for result in self.results.results(label, run):
            digests.append(digest_of(str(result.sample_id)))
            self._add(suite, group, f"{result.sample_id}{after}", result.timing.total, *self._outcome(result))
            table.add(Observation.of(result))
        suite.properties = self._properties(table.select(), model)
        if model.n_total > len(digests):
            seen = DigestSet(digests)
            for sample in known_samples(self.results):
                if digest_of(sample.key) not in seen:
                    self._add(suite, group, f"{sample.key}{after}", 0.0, "skipped", *_skipped("not reached"))
        return suite

    def _properties(self, selection: Selection, model: ModelSummary) -> dict[str, str]:
        """Both means of each metric, each with its n, and where every planned observation went."""
        said: dict[str, str] = {}
        leaves_out = self.results.on_error == "exclude"
        has_reward = self.results.has_reward and REWARD not in self.results.metric_keys
        for metric in (*([REWARD] if has_reward else []), *self.results.metric_keys):
            values = selection.values(metric)
            total, n = math.fsum(values), len(values) if leaves_out else len(selection)
            said |= {f"{metric}.mean": f"{total / len(values):.6g}"} if len(values) else {}
            said |= {f"{metric}.n": str(len(values))}
            said |= {f"{metric}.counted.mean": f"{total / n:.6g}"} if n else {}
            said |= {f"{metric}.counted.n": str(n)}
            planned = max(model.n_total, len(selection))
            found = ledger(selection, metric, planned=planned, pass_threshold=self.results.pass_threshold)
            said[f"{metric}.ledger"] = ledger_line(found)
        return said

    def _of_gates(self) -> _Suite:
        suite = _Suite(GATE_SUITE)
        group = f"{self.results.suite_name} {GATE_SUITE}"
        for number, verdict in enumerate(self.summary.gates, 1):
            name = verdict.name or (verdict.condition if len(self.summary.gates) == 1 else f"gate {number}")
            self._add(suite, group, name, 0.0, *_verdict(verdict))
        if not self.summary.finished:
            because = self.summary.stopped_because or "not every planned sample was reached"
            self._add(suite, group, "the run finished", 0.0, "error", "unfinished", because, "")
        return suite

    def _add(self, suite: _Suite, group: str, name: str, seconds: float, kind: str, *said: str) -> None:
        """`said` is the type, the message and the text of a case that has not passed."""
        known = not math.isnan(seconds)  # what another tool did not measure is not 0
        case = xml.tag("testcase", classname=printable(group), name=printable(name), time=seconds if known else None)
        suite.seconds += seconds if known else 0.0
        if kind == "passed":
            lines = f"    {xml.empty(case)}\n"
        else:
            what, message, told = (self.clean(part) for part in said)
            inner = xml.tag(kind, type=what, message=shortened(message, _LONGEST_MESSAGE))
            lines = f"    {case}\n      {inner}{xml.text(told)}</{kind}>\n    </testcase>\n"
        suite.counts[kind] += 1
        suite.size += self.file.write(lines.encode("utf-8"))

    def _outcome(self, result: SampleResult) -> tuple[str, ...]:
        match self.rule.standing(Observation.of(result)):
            case Standing.PASSED:
                return ("passed",)
            case Standing.UNSCORED:
                return "skipped", *_skipped("no score")
            case Standing.FAILED:
                return "failure", "failed", self._scores(result), _judged(result)
        return "error", *_error(result)

    def _scores(self, result: SampleResult) -> str:
        parts = [f"reward {result.reward.score:.6g}"] if result.reward and self.rule.has_reward else []
        parts += [f"{metric} {grade.score:.6g}" for metric, grade in result.grades.items()]
        return f"{', '.join(parts)}; passes from {self.rule.threshold:.6g} on"


def _error(result: SampleResult) -> tuple[str, str, str]:
    errors = result.grade_errors or {}
    first = result.error or next(iter(errors.values()))
    lines = [shortened(first.message, _LONGEST_TEXT)]
    lines += [f"{metric}: {error.category}: {shortened(error.message)}" for metric, error in errors.items()]
    return first.exception_type, f"{first.category}: {first.message}", "\n".join([*lines, _judged(result)]).rstrip()


def _judged(result: SampleResult) -> str:
    """Each grade with its rationale and what was judged."""
    lines = []
    for metric, grade in result.grades.items():
        lines.append(f"{metric} {grade.score:.6g}: {shortened(grade.rationale or '-', _LONGEST_TEXT)}")
        if metric in result.submissions:
            lines.append(f"submission: {shortened(result.submissions[metric], _LONGEST_TEXT)}")
    return "\n".join(lines)


def _verdict(verdict: GateVerdict) -> tuple[str, ...]:
    """A gate that is not decided fails too: a build must not be green for want of evidence."""
    if verdict.outcome is Outcome.PASS:
        return ("passed",)
    tree = plain_text(verdict_report([verdict])).rstrip()
    told = f"{verdict.outcome}: {verdict.condition}"
    if verdict.on_fail == "warn":
        return "skipped", *_skipped(f"a warning only: {told}", tree)
    return "failure", str(verdict.outcome), told, tree


def _skipped(why: str, text: str = "") -> tuple[str, str, str]:
    return "skipped", why, text


def _root(name: str, suites: list[_Suite]) -> str:
    counts = sum((suite.counts for suite in suites), Counter[str]())
    seconds = sum((suite.seconds for suite in suites), 0.0)
    totals = {"tests": counts.total(), "failures": counts["failure"], "errors": counts["error"]}
    return xml.tag("testsuites", name=printable(name), **totals, time=seconds) + "\n"


def _head(suite: _Suite) -> str:
    counts = {"failures": suite.counts["failure"], "errors": suite.counts["error"], "skipped": suite.counts["skipped"]}
    head = xml.tag("testsuite", name=printable(suite.name), tests=suite.counts.total(), **counts, time=suite.seconds)
    if not suite.properties:
        return f"  {head}\n"
    said = (xml.tag("property", name=printable(key), value=value) for key, value in suite.properties.items())
    inner = "".join(f"      {xml.empty(one)}\n" for one in said)
    return f"  {head}\n    <properties>\n{inner}    </properties>\n"


def _write(file: BinaryIO, *texts: str) -> None:
    for text in texts:
        file.write(text.encode("utf-8"))


def _copy(source: BinaryIO, file: BinaryIO, size: int) -> None:
    while size and (piece := source.read(min(size, 2**16))):
        file.write(piece)
        size -= len(piece)
