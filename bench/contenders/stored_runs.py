"""Writes two finished runs of N samples, some 2 KB a result, as stateval writes them: `stored_runs.py N DIRECTORY`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from stateval.records.grade import GradeResult, RewardOutput
from stateval.records.message import AssistantMessage
from stateval.records.result import SampleResult, StageKeys
from stateval.records.usage import Timing, Usage
from stateval.results.directory import ResultsDirectory
from stateval.results.run_record import RunInputs

ANSWER = "You told me that you like apples, and bananas less. " * 23
INPUTS = RunInputs(graders={"quality": "5" * 24}, reward="6" * 24)


def write_run(path: Path, samples: int, *, share: float, seed: int) -> None:
    """A run of which this share of samples passes."""
    chance = random.Random(seed)
    fixed = {"suite": "bench", "identity": "bench", "labels": ["model"], "num_runs": 1, "version": "0"}
    with ResultsDirectory.begin(path, planned=samples, inputs=INPUTS, **fixed) as directory:
        with directory.journal("model") as journal:
            for number in range(samples):
                journal.append(_result(number, float(chance.random() < share), chance.uniform(0.5, 2.0)))
        directory.finish()


def _result(number: int, score: float, seconds: float) -> SampleResult:
    return SampleResult(
        sample_id=f"sample-{number}",
        agent_id=f"agent-{number}",
        model_handle="model",
        trajectory=[[AssistantMessage(id="message", content=ANSWER)]],
        submissions={"quality": ANSWER[:200]},
        grades={"quality": GradeResult(score=score, rationale="the answer contains `apples`")},
        reward=RewardOutput(score=score),
        usage=Usage(prompt_tokens=900 + number % 100, completion_tokens=40, cost=0.0004),
        timing=Timing(total=seconds + 0.1, target=seconds, extraction=0.0001, per_grader={"quality": 0.0001}),
        stage_keys=StageKeys(
            target="1" * 24, row=f"{number:024x}", grades={"quality": f"{number + 1:024x}"}, reward="4" * 24
        ),
    )


if __name__ == "__main__":
    count, place = int(sys.argv[1]), Path(sys.argv[2])
    write_run(place / "a", count, share=0.70, seed=1)
    write_run(place / "b", count, share=0.71, seed=2)
