"""Results directories as letta-evals writes them, of both eras: the same fields in the same places, made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

GRADERS = {"quality": {"kind": "tool", "display_name": None, "extractor": "last_assistant", "function": "contains"}}
REWARD = {"kind": "metric", "metric_key": "quality"}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "cached_input_tokens": 0, "cost": 0.001}


def rows(count: int) -> list[dict[str, Any]]:
    """So many samples, with all fields that letta-evals writes, most of them null."""
    nothing = dict.fromkeys(["agent_args", "rubric_vars", "extra_vars", "rubric", "rubric_path"])
    return [{"id": n, "input": f"say {n}", "ground_truth": str(n), **nothing} for n in range(count)]


def scored(sample_id: int, score: float, *, reward: bool = True, target: float = 1.5) -> dict[str, Any]:
    """A line of the reward era."""
    return {
        "sample_id": sample_id,
        "agent_id": "agent-1",
        "model_handle": "openai/gpt-4.1",
        "trajectory": [[{"id": "m1", "message_type": "assistant_message", "content": f"I say {sample_id}"}]],
        "submissions": {"quality": f"I say {sample_id}"},
        "grades": {"quality": {"score": score, "rationale": "because", "metadata": {"extraction_time": 0.00001}}},
        **({"reward": {"score": score}} if reward else {}),
        "usage": USAGE,
        "timing": {"total": target + 0.5, "target": target, "extraction": 0.00001, "per_grader": {"quality": 0.4}},
    }


def failed(sample_id: int, **error: str) -> dict[str, Any]:
    """A line of the reward era about a target that failed: nothing was graded, no seconds of the target."""
    said = {"category": "target", "exception_type": "RuntimeError", "message": "the server went away"}
    return {
        "sample_id": sample_id,
        "model_handle": "openai/gpt-4.1",
        "trajectory": [],
        "submissions": {},
        "grades": {},
        "timing": {"total": 0.2, "target": 0.0},
        "error": said | error,
    }


def empty(sample_id: int) -> dict[str, Any]:
    """A line of the reward era about an agent that said nothing: a grade of 0, and an error beside it."""
    rationale = "Empty submission - extractor found no content"
    return scored(sample_id, 0.0, reward=False) | {
        "submissions": {"quality": ""},
        "grades": {"quality": {"score": 0.0, "rationale": rationale, "metadata": {}}},
        "error": {"category": "extraction", "exception_type": "ExtractionError", "message": rationale},
    }


def old(sample_id: int, score: float, *, model: str | None = "openai/gpt-4.1", **changes: Any) -> dict[str, Any]:
    """A line of the gate era, before there were seconds in it."""
    grade = {"score": score, "rationale": "because", "metadata": {}, "per_turn_grades": None}
    submission = f"I say {sample_id}"
    result = {
        "sample": {"id": sample_id, "input": f"say {sample_id}", "ground_truth": str(sample_id), "agent_args": None},
        "submission": submission,
        "submissions": {"quality": submission},
        "trajectory": [[{"id": "m1", "message_type": "assistant_message", "content": submission}]],
        "agent_id": "agent-1",
        "grade": grade,
        "grades": {"quality": grade},
        "model_name": model,
        "agent_usage": None,
        "cost": 0.001,
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "cached_input_tokens": None,
    }
    return {"type": "result", "result": result | changes}


def old_failed(sample_id: int, **changes: Any) -> dict[str, Any]:
    """A line of the gate era about a sample that raised: a grade of 0, and no agent."""
    gone = dict.fromkeys(["agent_id", "submissions", "grades", "agent_usage", "cost", "prompt_tokens"])
    grade = {"score": 0.0, "rationale": "Error: the server went away", "metadata": {}}
    return old(sample_id, 0.0, trajectory=[], submission="", grade=grade, **(gone | changes))


def write_reward_era(
    path: Path,
    lines: Sequence[Mapping[str, Any]] | Sequence[Sequence[Mapping[str, Any]]],
    *,
    samples: int | None = None,
    model: str = "openai/gpt-4.1",
    **config: Any,
) -> Path:
    """A directory of the reward era: one run of these lines, or several of these lists of lines."""
    path.mkdir(parents=True)
    runs = lines if lines and isinstance(lines[0], list) else [lines]
    name = model.replace("/", "-")
    said = {"target": {"kind": "letta_code", "model_handles": [model]}, "graders": GRADERS, "reward": REWARD}
    suite = {
        "suite": "new-suite",
        "config": {"name": "new-suite", **said, "num_runs": 1, **config},
        "samples": rows(samples if samples is not None else max(map(len, runs))),
    }
    (path / "suite.json").write_text(json.dumps(suite, indent=2), encoding="utf-8")
    (path / "summary.json").write_text('{"suite": "new-suite", "models": []}', encoding="utf-8")
    (path / "run.log").touch()
    for number, run in enumerate(runs, 1):
        _write_lines(path / (f"{name}/run_{number}.jsonl" if len(runs) > 1 else f"{name}.jsonl"), run)
    return path


def write_gate_era(path: Path, lines: Sequence[Mapping[str, Any]], **config: Any) -> Path:
    """A directory of the gate era, or one of its `run_<n>`."""
    gate = {"kind": "simple", "metric_key": "quality", "aggregation": "accuracy", "op": "gte", "value": 50.0}
    said = {"target": {"kind": "letta_agent"}, "gate": gate | {"pass_threshold": 0.5}, "graders": GRADERS}
    header = {"type": "header", "suite": "old-suite", "config": said | config}
    _write_lines(path / "results.jsonl", lines)
    (path / "header.json").write_text(json.dumps(header, indent=2), encoding="utf-8")
    (path / "summary.json").write_text('{"type": "summary", "metrics": {}}', encoding="utf-8")
    return path


def _write_lines(path: Path, lines: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
