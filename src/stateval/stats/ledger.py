"""Where every planned observation went. The parts add up to what was planned, exactly and always."""

from __future__ import annotations

from collections import Counter

from stateval.records.result import ErrorCategory
from stateval.records.summary import Ledger
from stateval.stats.comparison import Operator, holds
from stateval.stats.table import Selection


def ledger(selection: Selection, metric: str, *, planned: int, pass_threshold: float = 1.0, skipped: int = 0) -> Ledger:
    """The ledger of one metric (or of `reward`) over these observations.

    Each observation has one place: one with a value has passed (value >= `pass_threshold`) or failed, whatever else
    happened to it; one without has timed out, errored (by the category of what went wrong), or is unscored. What was
    planned and neither observed nor `skipped` was not reached. Raises ValueError where there is more than planned.
    """
    if len(selection) + skipped > planned:
        raise ValueError(f"{len(selection)} observations and {skipped} skipped are more than the {planned} planned")
    counts: Counter[str] = Counter()
    errored: Counter[ErrorCategory] = Counter()
    values = selection.values(metric)
    counts["passed"] = sum(holds(value, Operator.GTE, pass_threshold) for value in values)
    counts["failed"] = len(values) - counts["passed"]
    cells = selection.cells(metric) if len(values) < len(selection) else ()
    for cell in (cell for cell in cells if cell.value is None):
        if cell.timed_out:
            counts["timed_out"] += 1
        elif cell.error is not None:
            errored[cell.error] += 1
        else:
            counts["unscored"] += 1
    return Ledger(
        planned=planned,
        passed=counts["passed"],
        failed=counts["failed"],
        unscored=counts["unscored"],
        errored={category: errored[category] for category in ErrorCategory if errored[category]},
        timed_out=counts["timed_out"],
        skipped=skipped,
        not_reached=planned - len(selection) - skipped,
    )
