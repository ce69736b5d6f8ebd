"""`stateval judge`: a judge measured against people, a judge under attack, and the answers of judges that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from stateval.cli.files import new_file, require_writable
from stateval.cli.judged_suite import JudgedSuite, read_judged_suite, shown_asking
from stateval.cli.run import absolute
from stateval.cli.screen import screen
from stateval.errors import ExitStatus, ResultsError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stateval.judges import AttackWish, CheckWish, LabelledAnswer, Labels
    from stateval.records.judge_attack import MetricAttack
    from stateval.records.judge_check import JudgeCheck, MetricCheck
    from stateval.records.record import Record
    from stateval.results.reading import Results

_R = TypeVar("_R", bound="Record")

app = typer.Typer(help="Judges: how well they agree with people, how easily they are talked round, what is kept.")

Suite = Annotated[Path, typer.Argument(help="The suite file, or a directory with a suite.yaml.")]
Metric = Annotated[
    list[str] | None, typer.Option(help="Only this metric's judge; may be repeated. [default: all judges]")
]
ResultsOption = Annotated[
    Path | None, typer.Option("--results", metavar="DIR", help="Results that hold the answers that are judged.")
]
Threshold = Annotated[
    float | None,
    typer.Option(help="The score from which on an answer passes. [default: the suite's `pass_threshold`, else 0.5]"),
]
Confidence = Annotated[float, typer.Option(help="Of the intervals, between 0 and 1.")]
Concurrent = Annotated[int | None, typer.Option("--max-concurrent", min=1, help="Answers in flight.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ask judges anew: no kept answer is used, and none is kept.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Any field of the suite, as `field=value`; may be repeated.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and what was found.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")]


@app.command()
def check(
    suite: Suite,
    labels: Annotated[
        Path, typer.Option("--labels", metavar="FILE", help="What people say of answers: a `.csv` or `.jsonl` file.")
    ],
    metric: Metric = None,
    results: ResultsOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each answer is judged.")] = 3,
    threshold: Threshold = None,
    confidence: Confidence = 0.95,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the check is written.")] = Path(
        "judge-check.json"
    ),
    max_concurrent: Concurrent = None,
    no_cache: NoCache = False,
    set_: SetOption = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure judges against people: agreement, kappa, errors of both kinds, and how steady their verdicts are.

    The labels have a column `id` (a row of the dataset), `label` (true or false, pass or fail, or a score), and
    `submission` (the answer), unless `--results` names a run that holds the answers. `label:NAME` is of a criterion.
    A gate with `judge_check: FILE` stands on what is written.

    Exit status: 0 measured, 2 suite or labels wrong, 4 nothing could be graded.
    """
    from stateval.judges import CheckWish, labelled_answers, read_labels

    judged = read_judged_suite(suite, metric, set_, cache=not no_cache)
    file = absolute(output)
    require_writable(file)
    wish = CheckWish(
        threshold=judged.threshold(threshold),
        confidence=_confidence(confidence),
        repeats=repeats,
        max_concurrent=max_concurrent or judged.max_concurrent,
    )
    read = read_labels(_as_given(labels), judged.judges)
    run = _opened(results)
    answers = labelled_answers(read, judged.judges, judged.dataset, run)
    found = judged.asking(partial(_check_all, judged, answers, read, run, wish, quiet=quiet))
    graded = [len(answers[check.metric]) > check.n_errors for check in found]
    if any(graded):
        _write(_judge_check(judged.name, read, found), file)
    _show_checks(found, quiet=quiet)
    if any(graded):
        screen.say(f"wrote {output}")
    if not all(graded):
        nothing = "" if any(graded) else ", so nothing is written"
        screen.complain(f"error: no labelled answer of a judge could be graded{nothing}")
        raise typer.Exit(ExitStatus.UNFINISHED)


@app.command()
def attack(
    suite: Suite,
    metric: Metric = None,
    samples: Annotated[int, typer.Option(min=1, help="How many wrong answers are tried.")] = 5,
    results: ResultsOption = None,
    threshold: Threshold = None,
    confidence: Confidence = 0.95,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write everything to this file, as JSON.")
    ] = None,
    max_concurrent: Concurrent = None,
    no_cache: NoCache = False,
    set_: SetOption = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure how often judges are talked round: wrong answers, with and without attempts to get a better score.

    The wrong answers are "I do not know." to the first rows; with `--results` they are the answers of that run with
    the lowest grades. Each is judged alone, with every attack, and with harmless texts of like length as control.

    Exit status: 0 measured, 2 suite wrong, 4 nothing could be graded.
    """
    from stateval import __version__
    from stateval.judges import AttackWish
    from stateval.records.judge_attack import JudgeAttack

    judged = read_judged_suite(suite, metric, set_, cache=not no_cache)
    file = None if output is None else absolute(output)
    if file is not None:
        require_writable(file)
    wish = AttackWish(
        threshold=judged.threshold(threshold),
        confidence=_confidence(confidence),
        max_concurrent=max_concurrent or judged.max_concurrent,
    )
    found = judged.asking(partial(_attack_all, judged, _opened(results), samples, wish, quiet=quiet))
    if file is not None:
        record = JudgeAttack(
            stateval=__version__,
            created=datetime.now(UTC),
            suite=judged.name,
            metrics={attack.metric: attack for attack in found},
        )
        _write(record, file)
    _show_attacks(found, quiet=quiet)
    if file is not None:
        screen.say(f"wrote {output}")
    if not all(any(answer.score is not None for answer in attacked.answers) for attacked in found):
        screen.complain("error: no wrong answer of a judge could be graded")
        raise typer.Exit(ExitStatus.UNFINISHED)


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Drop all answers that are kept.")] = False,
) -> None:
    """Say where the answers of judges are kept and how many there are, or drop them."""
    from stateval.llm.cache import answer_cache

    kept = answer_cache()
    if kept is None:
        screen.say("no answers are kept: STATEVAL_JUDGE_CACHE is off")
        return
    if clear:
        dropped = kept.clear()
        screen.say(f"dropped {_counted(dropped, 'answer')} of {kept.path}")
        return
    answers, size = kept.size
    screen.say(kept.path)
    screen.say(f"{_counted(answers, 'answer')}, {size / 1e6:,.1f} MB of at most {kept.most_bytes / 1e6:,.0f} MB")


async def _check_all(
    judged: JudgedSuite,
    answers: Mapping[str, Sequence[LabelledAnswer]],
    labels: Labels,
    run: Results | None,
    wish: CheckWish,
    *,
    quiet: bool,
) -> list[MetricCheck]:
    from stateval.judges import calls_of_check, check_judge, reported_by

    calls = sum(calls_of_check(judge, answers[judge.key], wish) for judge in judged.judges)
    found = []
    with shown_asking(calls, quiet=quiet) as on_answer:
        for judge in judged.judges:
            reported = None
            if run is not None:
                named = [name for name in run.labels if name in {row.model for row in labels.rows}]
                reported = reported_by(run, named or run.labels, judge, wish.threshold)
            found.append(await check_judge(judge, answers[judge.key], wish, reported=reported, on_answer=on_answer))
    return found


async def _attack_all(
    judged: JudgedSuite, run: Results | None, count: int, wish: AttackWish, *, quiet: bool
) -> list[MetricAttack]:
    from stateval.judges import attack_judge, calls_of_attack, lowest_graded, wrong_answers

    answers = {
        judge.key: wrong_answers(judge, judged.dataset, count)
        if run is None
        else lowest_graded(judge, judged.dataset, run, count)
        for judge in judged.judges
    }
    for key, wrong in answers.items():
        if not wrong:
            raise UsageError(f"the results hold no grade of `{key}` for a row of this suite's dataset")
    calls = sum(calls_of_attack(wrong) for wrong in answers.values())
    with shown_asking(calls, quiet=quiet) as on_answer:
        return [await attack_judge(judge, answers[judge.key], wish, on_answer=on_answer) for judge in judged.judges]


def _judge_check(suite: str, labels: Labels, found: Sequence[MetricCheck]) -> JudgeCheck:
    from stateval import __version__
    from stateval.records.judge_check import JudgeCheck

    return JudgeCheck(
        stateval=__version__,
        created=datetime.now(UTC),
        suite=suite,
        labels={"path": labels.path, "sha256": labels.sha256},
        metrics={check.metric: check for check in found},
    )


def _confidence(asked: float) -> float:
    if not 0 < asked < 1:
        raise UsageError(f"`--confidence {asked:g}`: a confidence lies between 0 and 1, such as 0.95")
    return asked


def _opened(path: Path | None) -> Results | None:
    """The results; what is wrong with them is wrong input here."""
    from stateval.results.opening import open_results

    if path is None:
        return None
    try:
        return open_results(_as_given(path))
    except ResultsError as error:
        raise UsageError(str(error)) from error


def _as_given(path: Path) -> Path:
    """The path as it is to be shown; `~` is the home directory."""
    return absolute(path) if path.parts and path.parts[0].startswith("~") else path


def _write(record: Record, file: Path) -> None:
    from stateval.records.encoding import dump_json

    with new_file(file) as stream:
        stream.write(screen.redaction.scrub_json(dump_json(record.to_dict(), indent=True)) + b"\n")


def _show_checks(found: Sequence[MetricCheck], *, quiet: bool) -> None:
    from stateval.reports.judge_check import check_meaning, check_report, kappa_text

    for check in found:
        if quiet:
            screen.say(screen.one_line(f"{check.metric}: kappa {kappa_text(check)}. {check_meaning(check)}"))
        else:
            _print(check_report(_clean(check), encoding=screen.out.encoding))


def _show_attacks(found: Sequence[MetricAttack], *, quiet: bool) -> None:
    from stateval.reports.judge_check import attack_report, share_text

    for attacked in found:
        if quiet:
            moved, control = share_text(attacked.moved), share_text(attacked.control)
            screen.say(screen.one_line(f"{attacked.metric}: {moved} rose; with harmless text {control}"))
        else:
            _print(attack_report(_clean(attacked), encoding=screen.out.encoding))


def _clean(record: _R) -> _R:
    """The record without secrets."""
    return type(record).from_json(screen.redaction.scrub_json(record.to_json()))


def _print(report: RenderableType) -> None:
    from stateval.reports.terminal import report_console

    report_console(screen.out).print(report)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
