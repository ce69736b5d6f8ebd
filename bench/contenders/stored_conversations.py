"""Writes N finished conversations of three messages, some 2 KB each: `stored_conversations.py N DIRECTORY`.

Below the directory: `letta-evals`, results as letta-evals 0.26 writes and reads them, and `rows.jsonl`, their dataset.
No package is needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TEXT = "The user has told me what they like, and what they like no more. " * 8
DATE = "2026-01-01T00:00:00Z"
USAGE = {"prompt_tokens": 0, "completion_tokens": 0}
TIMES = {"mean_total": 1.2, "mean_target": 1.1, "p50_total": 1.2, "p95_total": 1.2}
TIMING = {"total": 1.2, "target": 1.1, "extraction": 0.01, "per_grader": {"said": 0.01}}
MODEL = {"model": "default", "reward": 0.0, "per_metric": {"said": 0.0}, "usage": USAGE, "timing": TIMES}
CONFIG = {
    "name": "regrade",
    "dataset": "rows.jsonl",
    "target": {"kind": "letta_code"},
    "graders": {"said": {"kind": "tool", "function": "contains"}},
    "reward": {"kind": "metric", "metric_key": "said"},
}


def rows(count: int) -> Iterator[dict[str, Any]]:
    """The dataset, with the ids that letta-evals gives to rows: their positions."""
    return ({"id": n, "input": f"Question {n}: what do I like?", "ground_truth": "apples"} for n in range(count))


def result(row: dict[str, Any]) -> dict[str, Any]:
    """A conversation of one turn: the agent thinks, looks into its memory, and answers."""
    said = [
        {"message_type": "reasoning_message", "reasoning": TEXT},
        {"message_type": "reasoning_message", "reasoning": TEXT},
        {"message_type": "assistant_message", "content": "You like apples. " + TEXT[:300]},
    ]
    messages = [{"id": f"message-{n}", "date": DATE, **message} for n, message in enumerate(said)]
    return {
        "sample_id": row["id"],
        "agent_id": f"agent-{row['id']}",
        "trajectory": [messages],
        "submissions": {"said": "You like apples."},
        "grades": {"said": {"score": 0.0, "rationale": "graded by an older grader"}},
        "reward": {"score": 0.0},
        "timing": TIMING,
    }


def main(count: int, place: Path) -> None:
    """Writes everything below `place`."""
    theirs = place / "letta-evals"
    theirs.mkdir(parents=True)
    suite = {"suite": "regrade", "config": CONFIG, "samples": list(rows(count))}
    summary = {"suite": "regrade", "models": [{**MODEL, "n_total": count, "n_attempted": count}]}
    (theirs / "suite.json").write_text(json.dumps(suite), encoding="utf-8")
    (theirs / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    with (theirs / "default.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(result(row)) + "\n" for row in rows(count))
    with (place / "rows.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(count))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
