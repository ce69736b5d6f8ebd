"""Gates' verdicts as a tree that shows why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from stateval.gates import overall
from stateval.records.verdict import GateVerdict, Outcome
from stateval.reports.printable import printable

_STYLES = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "bold yellow"}


def verdict_report(verdicts: Sequence[GateVerdict], *, encoding: str = "utf-8") -> RenderableType:
    """One tree per gate, and what all of them come to; the outcome is a word, colour only repeats it."""
    trees: list[RenderableType] = [_tree(verdict, encoding) for verdict in verdicts]
    outcome = overall(verdicts)
    if outcome is not None and len(verdicts) > 1:
        trees.append(Text.assemble("All gates: ", (outcome.upper(), _STYLES[outcome])))
    return Group(*trees)


def _tree(verdict: GateVerdict, encoding: str) -> Tree:
    name = f"Gate {printable(verdict.name, encoding=encoding)}: " if verdict.name else "Gate: "
    tree = Tree(Text(name).append(_label(verdict, encoding)), highlight=False)
    if verdict.on_fail == "warn":
        tree.label = Text.assemble(_text_of(tree), " (a warning only)")
    _add_children(tree, verdict, encoding)
    return tree


def _text_of(tree: Tree) -> Text:
    return tree.label if isinstance(tree.label, Text) else Text(str(tree.label))


def _add_children(tree: Tree, verdict: GateVerdict, encoding: str) -> None:
    for child in verdict.children:
        _add_children(tree.add(_label(child, encoding)), child, encoding)


def _label(verdict: GateVerdict, encoding: str) -> Text:
    label = Text()
    # A part of a weighted average has no operator: it has a value and decides nothing alone.
    if verdict.operator is not None or verdict.children or verdict.measured is None:
        label.append(f"{verdict.outcome.upper()} ", _STYLES[verdict.outcome])
    model = f"[{verdict.model}] " if verdict.model is not None else ""
    details = "; ".join(_details(verdict))
    label.append(printable(f"{model}{verdict.condition}{': ' if details else ''}{details}", encoding=encoding))
    return label


def _details(verdict: GateVerdict) -> Iterator[str]:
    if verdict.measured is not None:
        unit = " %" if verdict.aggregation == "accuracy" else ""
        yield f"measured {verdict.measured:.6g}{unit}"
    if verdict.confidence is not None and (verdict.interval is not None or verdict.bound is not None):
        yield _certainty(verdict, verdict.confidence)
    # Where nothing was measured, the reason says of how many.
    if verdict.n is not None and (verdict.measured is not None or not verdict.reason):
        repeated = verdict.n_samples is not None and verdict.n_samples < verdict.n
        yield f"n = {verdict.n} (of {verdict.n_samples} samples)" if repeated else f"n = {verdict.n}{_pairs(verdict)}"
    if verdict.counted:
        yield verdict.counted
    if verdict.judge_kappa is not None:
        yield f"the judge's kappa {verdict.judge_kappa:.3g}"
    if verdict.runs_total is not None:
        yield f"{verdict.runs_passed} of {verdict.runs_total} runs pass alone"
    if verdict.reason:
        yield verdict.reason
    for mark in verdict.marks or ():
        yield f"NOT COMPARABLE, forced: {mark}"


def interval_text(interval: tuple[float, float] | None) -> str:
    """An interval as reports print it; a dash where there is none."""
    return "-" if interval is None else f"[{interval[0]:.3f}, {interval[1]:.3f}]"


def _certainty(verdict: GateVerdict, confidence: float) -> str:
    percent = f"{100 * confidence:.6g} %"
    if verdict.interval is None:
        return f"with {percent} confidence more than {verdict.bound:.4g}"
    low, high = verdict.interval
    clustered = verdict.n_clusters is not None and verdict.n_clusters < (verdict.n_samples or 0)
    clusters = f", {verdict.n_clusters} clusters" if clustered else ""
    return f"{percent} interval [{low:.4g}, {high:.4g}] ({verdict.method}{clusters})"


def _pairs(verdict: GateVerdict) -> str:
    if verdict.baseline is None:
        return ""
    alone = ((verdict.n_only_here, "here"), (verdict.n_only_baseline, "in the baseline"))
    return "".join([" in both", *(f", {count} only {where}" for count, where in alone if count)])
