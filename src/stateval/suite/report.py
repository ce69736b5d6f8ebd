"""Everything that can be said of a suite without asking a model: what `stateval validate` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stateval.errors import InputError, UsageError
from stateval.gates import judge_check_uses, parse_gates, with_paths_below
from stateval.records.source import Problem
from stateval.redaction import Redaction, secrets_of_environment
from stateval.running.judge_checks import load_judge_checks, read_judge_check
from stateval.suite.advice import Survey, advice, warnings
from stateval.suite.build import Built, build, check_rows
from stateval.suite.load import LoadedSuite, load_suite
from stateval.suite.overrides import Override


@dataclass(slots=True)
class SuiteReport:
    """What is wrong with a suite, what its old spellings were read as, what is missing here, what could be better.

    `summary` says in one line what would run; it is empty where there are problems, and so is `advice`.
    """

    path: Path
    summary: str = ""
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The report as lines of text; known secrets are taken out."""
        lines = [self.summary] if self.summary else []
        for title, said in self._sections():
            lines += [title, *(f"  {line}" for one in said for line in str(one).splitlines())]
        return Redaction(secrets_of_environment()).scrub("".join(f"{line}\n" for line in lines))

    def _sections(self) -> Iterator[tuple[str, Sequence[object]]]:
        count = len(self.problems)
        sections: list[tuple[str, Sequence[object]]] = [
            (f"{self.path}: {count} problem{'s' if count > 1 else ''}:", self.problems),
            ("old spellings:", self.notes),
            ("warnings:", self.warnings),
            ("advice:", self.advice),
        ]
        yield from ((title, said) for title, said in sections if said)


def examine(path: Path, overrides: Sequence[Override] = ()) -> SuiteReport:
    """Looks at a suite file and at all that it names: rows, user code, graders. No model is asked.

    Raises UsageError for overrides that fit nowhere.
    """
    report = SuiteReport(path)
    try:
        loaded = load_suite(path, overrides)
    except InputError as error:
        report.problems = [_named_once(problem) for problem in error.problems]
        return report
    built = build(loaded)
    survey = Survey(built.bindings, loaded.spec)
    report.notes = list(loaded.notes)
    report.warnings = [str(problem) for problem in built.missing]
    report.problems = [_named_once(problem) for problem in built.problems]
    _examine_rows(loaded, built, survey, report)
    _examine_judge_checks(loaded, built, report)
    if not report.problems:
        report.warnings += warnings(loaded, survey)
        report.summary = _summary(path, loaded, survey)
        report.advice = advice(loaded, survey)
    return report


def _examine_rows(loaded: LoadedSuite, built: Built, survey: Survey, report: SuiteReport) -> None:
    if built.dataset is None:
        return
    try:
        with built.dataset as dataset:
            metrics = list(loaded.spec.all_graders)
            checked = check_rows(dataset, built.bindings, metrics=metrics, further=[*built.checks, survey.look])
    except InputError as error:
        report.problems += error.problems
    except UsageError as error:
        report.problems.append(Problem(str(error), loaded.sources.of("dataset")))
    else:
        report.warnings += map(str, checked.warnings)


def _examine_judge_checks(loaded: LoadedSuite, built: Built, report: SuiteReport) -> None:
    """Whether the gates can stand on the checks of judges that they name; one that is not there yet is a warning."""
    gates = with_paths_below(parse_gates(loaded.spec.gate), loaded.directory)
    uses = list(judge_check_uses(gates, list(loaded.spec.all_graders)))
    there = [file for file in dict.fromkeys(Path(use.file) for use in uses) if file.exists()]
    try:
        for file in there:
            read_judge_check(file)
        if built.plan is not None and not built.missing and len(there) == len({use.file for use in uses}):
            found = load_judge_checks(built.plan).values()
            report.warnings += dict.fromkeys(standing.void for standing in found if standing.void)
    except UsageError as error:
        report.problems.append(Problem(str(error), loaded.sources.of("gate")))


def _named_once(problem: Problem) -> Problem:
    """`--set max_concurrent` is a place that names its field already."""
    source = problem.source
    named = source.path is not None and source.path == f"--set {source.field}"
    return replace(problem, source=replace(source, field=None)) if named else problem


def _summary(path: Path, loaded: LoadedSuite, survey: Survey) -> str:
    spec = loaded.spec
    kinds = ", ".join(dict.fromkeys(target.kind for target in spec.all_targets))
    models = sum(len(target.model_handles or [None]) for target in spec.all_targets)
    runs = f", {spec.runs} runs" if spec.runs > 1 else ""
    several = f" ({models} models)" if models > 1 else ""
    keys = ", ".join(spec.all_graders)
    return f"{path}: all is well: {survey.samples:,} samples, target {kinds}{several}{runs}, metrics {keys}"
