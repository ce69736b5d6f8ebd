"""What was measured of judges, for people: agreement with labels, steadiness, and attempts to talk them round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stateval.records.judge_attack import MetricAttack
from stateval.records.judge_check import Agreement, MetricCheck, Rate
from stateval.reports.judging import judging_line
from stateval.reports.printable import printable, shortened

_FIT = 0.6
_SHOWN_ERRORS = 5
_MEASURES = {
    "accuracy": ("agreement", "judge and people give the same verdict"),
    "kappa": ("kappa", "agreement beyond chance: 1 is perfect, 0 is guessing"),
    "sensitivity": ("sensitivity", "of what people passed, the judge passed"),
    "specificity": ("specificity", "of what people failed, the judge failed"),
    "prevalence": ("people passed", "of the labelled answers"),
    "reported": ("judge passed", "of the answers that it graded"),
    "corrected": ("corrected rate", "the judge's rate, corrected for its errors"),
}
_OF_CRITERIA = ("accuracy", "kappa", "prevalence", "reported")


def check_report(check: MetricCheck, *, encoding: str = "utf-8") -> RenderableType:
    """One judge beside people: a table of rates with their intervals, and sentences on what they mean."""
    lines = [*_heading(check.metric, check.models, check.answered), _setting(check)]
    parts: list[RenderableType] = [Text(printable(line, encoding=encoding)) for line in lines]
    if check.overall is not None:
        parts.append(_whole(check.overall))
    if check.criteria:
        parts.append(_criteria(check.criteria, encoding))
    parts += [Text(printable(line, encoding=encoding)) for line in _sentences(check)]
    return Group(*parts)


def check_meaning(check: MetricCheck) -> str:
    """What the kappa says about a gate that stands on this judge."""
    if check.overall is None:
        return (
            "There is no label of the whole answer, so no gate can stand on this check: label it in a column `label`."
        )
    kappa = check.overall.kappa
    if kappa.value is None:
        return f"There is no kappa ({kappa.reason}), so no gate can stand on this check."
    if kappa.value < _FIT:
        return f"A kappa below {_FIT:g}: not fit to gate on; mend the rubric or take another model, and check it again."
    if kappa.low is not None and kappa.low < _FIT:
        return (
            f"The kappa is at least {_FIT:g}, and its interval reaches below: label more answers before a gate stands "
            "on this judge."
        )
    return f"The kappa is at least {_FIT:g} with its whole interval: fit to gate on."


def kappa_text(check: MetricCheck) -> str:
    """The kappa of the whole answer with its interval; a dash where there is none."""
    return "-" if check.overall is None else rate_text(check.overall.kappa)


def attack_report(attack: MetricAttack, *, encoding: str = "utf-8") -> RenderableType:
    """One judge under attack: how often its score moved, by kind of attack, beside harmless additions."""
    lines = _heading(attack.metric, attack.models, attack.answered)
    parts: list[RenderableType] = [Text(printable(line, encoding=encoding)) for line in lines]
    parts.append(_attacks(attack))
    parts += [Text(printable(line, encoding=encoding)) for line in _attack_sentences(attack)]
    return Group(*parts)


def _heading(metric: str, models: tuple[str, ...], answered: tuple[str, ...]) -> Iterator[str]:
    names = f", answered as {', '.join(answered)}" if answered else ""
    yield f"Judge of {metric}: {', '.join(models)}{names}"


def _setting(check: MetricCheck) -> str:
    return f"Passed is a score of {check.threshold:g} or more; {100 * check.confidence:g} % intervals in brackets"


def _whole(found: Agreement) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_row("labelled answers", str(found.n), "with a grade and a label")
    for name, (measure, meaning) in _MEASURES.items():
        rate: Rate = getattr(found, name)
        table.add_row(measure, rate_text(rate), meaning if rate.reason is None else f"not defined: {rate.reason}")
    return table


def _criteria(criteria: Mapping[str, Agreement], encoding: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("criterion")
    for heading in ("labels", *(_MEASURES[name][0] for name in _OF_CRITERIA)):
        table.add_column(heading, justify="right")
    for name, found in criteria.items():
        rates = (rate_text(getattr(found, measure)) for measure in _OF_CRITERIA)
        table.add_row(Text(printable(name, encoding=encoding)), str(found.n), *rates)
    return table


def rate_text(rate: Rate) -> str:
    """A rate with its interval; a dash where it is not defined."""
    if rate.value is None:
        return "-"
    interval = "" if rate.low is None or rate.high is None else f" [{rate.low:.2f}, {rate.high:.2f}]"
    return f"{rate.value:.2f}{interval}"


def _sentences(check: MetricCheck) -> Iterator[str]:
    yield f"The verdict changed when the judge was asked again: {share_text(check.flip_rate)}"
    yield f"The verdict changed when everything came in the opposite order: {share_text(check.order_swap_rate)}"
    yield from check.notes
    if check.n_errors:
        yield f"Not graded, and in no table: {check.n_errors} labelled answer{'s' if check.n_errors > 1 else ''}"
    yield from _listed_errors(check.errors)
    if check.took is not None:
        yield judging_line(check.metric, check.took)
    yield check_meaning(check)


def share_text(rate: Rate) -> str:
    """A rate as counts and share with its interval."""
    if rate.value is None:
        return f"not known ({rate.reason})"
    return f"{round(rate.value * rate.n)} of {rate.n}, {rate_text(rate)}"


def _listed_errors(errors: dict[str, str]) -> Iterator[str]:
    for name, message in list(errors.items())[:_SHOWN_ERRORS]:
        yield f"  {name}: {shortened(message)}"
    if len(errors) > _SHOWN_ERRORS:
        yield f"  and {len(errors) - _SHOWN_ERRORS} more, which the file holds"


def _attacks(attack: MetricAttack) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("kind of attack")
    table.add_column("score rose", justify="right")
    table.add_column("harmless text instead", justify="right")
    for kind, found in attack.by_kind.items():
        table.add_row(kind, share_text(found.moved), share_text(found.control))
    table.add_row("all", share_text(attack.moved), share_text(attack.control))
    return table


def _attack_sentences(attack: MetricAttack) -> Iterator[str]:
    yield (
        f"A score rose where it is {attack.least_rise:g} or more above that of the same answer without the attack, or "
        f"reaches {attack.threshold:g} where that one does not; {100 * attack.confidence:g} % intervals in brackets"
    )
    for answer in attack.left_out:
        yield f"Left out: {answer}"
    if attack.errors:
        yield f"Not graded, and not counted: {len(attack.errors)}"
        yield from _listed_errors(attack.errors)
    if attack.took is not None:
        yield judging_line(attack.metric, attack.took)
