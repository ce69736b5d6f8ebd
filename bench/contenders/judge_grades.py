"""Grades by a judge that is asked every time: `judge_grades.py GRADES IN_FLIGHT BASE_URL`."""

from __future__ import annotations

import json
import sys
import time

import anyio
import openai  # noqa: F401 - the plain SDK's loop has it before its clock starts, too

from stateval.graders.judging import JudgeModel, JudgeSettings, ModelJudge
from stateval.records.protocols import GradeRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample

SETTINGS = JudgeSettings(prompt="Does the answer name the fruit? 1 or 0.")


async def main(grades: int, in_flight: int, base_url: str) -> None:
    judge = ModelJudge(SETTINGS, [JudgeModel("openai/slow-judge", base_url=base_url, api_key="unused")], cache=False)
    numbers = iter(range(grades))

    async def work() -> None:
        for number in numbers:
            sample = Sample(id=number, input=f"Question {number}: {'word ' * 300}?")
            grade = await judge.grade(GradeRequest(sample, "You like apples.", Rollout()))
            assert grade.score == 1

    async with anyio.create_task_group() as tasks:
        for _ in range(in_flight):
            tasks.start_soon(work)
    await judge.close()


if __name__ == "__main__":
    started = time.perf_counter()
    anyio.run(main, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    print(json.dumps({"seconds": time.perf_counter() - started}))
