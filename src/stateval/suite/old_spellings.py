"""What older suite files write in other words, and how each was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stateval.suite.spec import SuiteSpec
from stateval.suite.yaml_text import Path, dotted


def notes_on_old_spellings(data: dict[str, Any], spec: SuiteSpec) -> Iterator[tuple[Path, str]]:
    """For each old spelling in a suite its place, and a sentence that says what it was read as."""
    yield from _notes_on_targets(data)
    yield from _notes_on_graders(data)
    gates = data.get("gate")
    keys = list(spec.all_graders)
    for position, gate in enumerate(gates if isinstance(gates, list) else [gates]):
        path: Path = ("gate", position) if isinstance(gates, list) else ("gate",)
        yield from _notes_on_gate(gate, path, keys)


def _notes_on_targets(data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    several = dict(enumerate(data.get("targets") or ()))
    places: dict[Path, Any] = {("targets", position): one for position, one in several.items()}
    for place, target in (places | {("target",): data.get("target")}).items():
        if isinstance(target, dict) and target.get("kind") == "agent":
            yield (*place, "kind"), f"`{dotted(place)}.kind: agent` read as `kind: letta_agent`"


def _notes_on_graders(data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    several, single = data.get("graders"), data.get("grader")
    places: dict[Path, Any] = {("graders", key): one for key, one in (several or {}).items()} | {("grader",): single}
    for place, grader in places.items():
        if isinstance(grader, dict) and grader.get("kind") == "rubric":
            yield (*place, "kind"), f"`{dotted(place)}.kind: rubric` read as `kind: model_judge`"


def _notes_on_gate(gate: Any, path: Path, keys: list[str]) -> Iterator[tuple[Path, str]]:
    if not isinstance(gate, dict):
        return
    for position, condition in enumerate(gate.get("conditions") or ()):
        yield from _notes_on_gate(condition, (*path, "conditions", position), keys)
    where = dotted(path)
    if "metric" in gate:
        yield (*path, "metric"), f"`{where}.metric` read as `aggregation`"
    if gate.get("pass_value") is not None:
        operator = gate.get("pass_op") or gate.get("op")
        yield (
            (*path, "pass_value"),
            f"`{where}.pass_value` read as `pass_threshold`: passed is {operator} {gate['pass_value']}",
        )
    is_simple = gate.get("kind", "simple") == "simple" and "op" in gate
    if is_simple and gate.get("metric_key") is None and len(keys) == 1:
        yield path, f"`{where}` without `metric_key` read as `metric_key: {keys[0]}`, the only grader"
