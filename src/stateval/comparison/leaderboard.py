"""Several models in order of one metric, and which of them the evidence tells apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from stateval.comparison.comparability import RowComparison, RowHashes, compare_graders, content_hashes
from stateval.errors import UsageError
from stateval.results.reading import Results
from stateval.stats.comparison import TOLERANCE
from stateval.stats.describe import mean, percentile
from stateval.stats.estimates import Estimate, estimate_mean
from stateval.stats.ledger import ledger
from stateval.stats.letters import SIGNIFICANCE, compact_letters
from stateval.stats.multiple import holm
from stateval.stats.paired import difference_test, pair
from stateval.stats.points import Points, sample_points
from stateval.stats.table import LATENCY, RESOURCES, REWARD, ObservationTable, Selection


@dataclass(frozen=True, slots=True)
class Entrant:
    """One model's place.

    `value` is the metric's mean over `n` samples, repeats averaged within the sample first; None where nothing was
    measured, and the model has no rank then. `passed` and `errored` count observations (of `observations`); they are
    None for uses of time, money and tokens, which pass nothing. `cost` is the sum of the known ones in US dollars,
    `cost_missing` counts observations with tokens and no known price; `p50_latency` is in seconds of the target.
    Models that share a letter of `group` do not differ significantly; it is empty where groups are not told.
    """

    label: str
    path: Path
    value: float | None
    estimate: Estimate | None
    n: int
    observations: int
    passed: int | None
    errored: int | None
    cost: float | None
    cost_missing: int
    p50_latency: float | None
    rank: int | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The entrants, the best first. `errored_as` is what errored observations count as; None: they are left out.

    `fewest_shared` is the smallest number of samples that two models have in common, on which their difference stands.
    """

    metric: str
    smaller_is_better: bool
    errored_as: float | None
    entrants: tuple[Entrant, ...]
    significance: float = SIGNIFICANCE
    fewest_shared: int | None = None


def leaderboard(runs: Sequence[Results], metric: str | None = None, *, with_groups: bool = True) -> Leaderboard:
    """The models of one run or of several that are comparable, ranked by the metric's mean.

    Each pair of models is compared on the samples that both have, by `difference_test`; the p-values of all pairs
    are adjusted by Holm's method before they become letters.

    Args:
        metric: a grader's key, `reward`, or `latency`, `cost`, `tokens`, of which less is better. By default the
            reward, and without one the first grader.
        with_groups: False where the runs are not comparable, so that no difference between them means anything.

    Raises UsageError for a metric that not every run has. Holds 28 bytes for each sample and model.
    """
    metric = _metric(runs, metric)
    keys = {key for results in runs for key in results.metric_keys}
    is_resource = metric in RESOURCES and metric not in keys
    excluded = is_resource or all(results.on_error == "exclude" for results in runs)
    names = _names(runs)
    found = [
        _measured(results, label, names[number], metric, is_resource=is_resource, errored=None if excluded else 0.0)
        for number, (results, label) in enumerate(_models(runs))
    ]
    found.sort(key=lambda one: _order(one[0], smaller_is_better=is_resource))
    groups, fewest = (
        _groups([points for _, points in found]) if with_groups and len(found) > 1 else ([""] * len(found), None)
    )
    return Leaderboard(
        metric=metric,
        smaller_is_better=is_resource,
        errored_as=None if excluded else 0.0,
        entrants=tuple(_ranked([entrant for entrant, _ in found], groups)),
        fewest_shared=fewest,
    )


@dataclass(frozen=True, slots=True)
class Doubts:
    """Whether models of several runs can stand on one leaderboard, in words.

    `differing`: what is not the same, so that no difference between their models means anything; `unchecked`: what
    one of them does not tell.
    """

    differing: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def doubts(runs: Sequence[Results], metric: str | None = None) -> Doubts:
    """Compares the rows of each run, and what the metric stands on, with those of the first one.

    Reads the index of runs of which nothing else says that their data are the same.
    """
    metric = _metric(runs, metric)
    first, *others = runs
    differing, unchecked = [], []
    for other in others:
        found = compare_graders(first, other, [metric])
        if first.inputs.dataset is None or first.inputs.dataset != other.inputs.dataset:
            rows = _rows(first, other)
            counts = {
                "n_rows": rows.shared,
                "n_differing_rows": len(rows.differing),
                "n_unchecked_rows": rows.unchecked,
            }
            found = found.model_copy(update=counts)
            if not rows.shared:
                differing.append(f"{other.path} has no sample of {first.path}")
        differing += [f"{other.path}: {said}, compared with {first.path}" for said in found.differences()]
        unchecked += [f"{other.path}: {said}" for said in found.doubts()]
    return Doubts(tuple(differing), tuple(unchecked))


def _rows(one: Results, other: Results) -> RowComparison:
    """The rows by their hashes in the results; where these are not known, by what the samples say."""
    found = RowComparison(_row_hashes(one), _row_hashes(other))
    if not found.unchecked:
        return found
    contents = content_hashes(one), content_hashes(other)
    return found if contents[0] is None or contents[1] is None else RowComparison(contents[0], contents[1])


def _row_hashes(results: Results) -> RowHashes:
    hashes = RowHashes()
    for label in results.labels:
        for _, entry in results.entries(label):
            hashes.add(entry.observation.sample_id, entry.keys.row if entry.keys else None)
    hashes.close()
    return hashes


def _metric(runs: Sequence[Results], asked: str | None) -> str:
    shared = [key for key in runs[0].metric_keys if all(key in results.metric_keys for results in runs)]
    if all(results.has_reward for results in runs) and REWARD not in shared:
        shared.insert(0, REWARD)
    if asked is None and shared:
        return shared[0]
    if asked in shared or asked in RESOURCES:
        return str(asked)
    known = ", ".join(f"`{key}`" for key in [*shared, *sorted(set(RESOURCES.values()))])
    missing = "there is no metric that all runs have" if asked is None else f"there is no metric `{asked}`"
    raise UsageError(f"{missing}; choose with `--metric` from {known}")


def _models(runs: Sequence[Results]) -> Iterator[tuple[Results, str]]:
    return ((results, label) for results in runs for label in results.labels)


def _names(runs: Sequence[Results]) -> list[str]:
    """What each model is called: its label, and where several runs have the same one its directory too."""
    labels = [(label, results.path) for results, label in _models(runs)]
    seen = [label for label, _ in labels]
    return [label if seen.count(label) == 1 else f"{label} ({path.name or path})" for label, path in labels]


def _measured(
    results: Results, label: str, name: str, metric: str, *, is_resource: bool, errored: float | None
) -> tuple[Entrant, Points]:
    table = ObservationTable.of(results.observations(label), results.metric_keys)
    selection = table.select()
    points = sample_points(selection, metric, errored=errored)
    sums = [table.sums(run) for run in table.runs]
    costs = [one.cost for one in sums if one.costs]
    passed, failed = (None, None) if is_resource else _counts(selection, metric, results.pass_threshold)
    entrant = Entrant(
        label=name,
        path=results.path,
        value=mean(points.values),
        estimate=None if is_resource and points.is_binary else estimate_mean(points),
        n=points.n,
        observations=len(selection),
        passed=passed,
        errored=failed,
        cost=sum(costs) if costs else None,
        cost_missing=sum(one.cost_missing for one in sums),
        p50_latency=percentile(table.values(LATENCY, selection.rows), 50) if LATENCY not in table.metric_keys else None,
    )
    return entrant, points


def _counts(selection: Selection, metric: str, pass_threshold: float) -> tuple[int, int]:
    """How many observations passed, and how many have no value because something failed."""
    counted = ledger(selection, metric, planned=len(selection), pass_threshold=pass_threshold)
    return counted.passed, sum(counted.errored.values()) + counted.timed_out


def _order(entrant: Entrant, *, smaller_is_better: bool) -> tuple[bool, float, str]:
    value = entrant.value or 0.0
    return entrant.value is None, value if smaller_is_better else -value, entrant.label


def _ranked(entrants: Sequence[Entrant], groups: Sequence[str]) -> Iterator[Entrant]:
    """Equal values have equal ranks; the next one has as many before it as its rank says."""
    rank, before = 0, None
    for number, (entrant, group) in enumerate(zip(entrants, groups, strict=True), start=1):
        if entrant.value is not None and (before is None or abs(entrant.value - before) > TOLERANCE):
            rank, before = number, entrant.value
        known = entrant.value is not None
        yield replace(entrant, rank=rank if known else None, group=group if known else "")


def _groups(columns: Sequence[Points]) -> tuple[list[str], int | None]:
    """The letters of the models, and the smallest number of samples that two of them share."""
    pairs = list(combinations(range(len(columns)), 2))
    found = [pair(columns[i], columns[j]) for i, j in pairs]
    tests = [difference_test(one) for one in found]
    adjusted = iter(holm([test.p_value for test in tests if test is not None]))
    matrix: list[list[float | None]] = [[None] * len(columns) for _ in columns]
    for (i, j), test in zip(pairs, tests, strict=True):
        matrix[i][j] = None if test is None else next(adjusted)
    return compact_letters(matrix), min((one.n for one in found), default=None)
