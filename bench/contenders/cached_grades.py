"""Grades by a judge whose answers are all in the cache: `cached_grades.py GRADES BASE_URL`."""

from __future__ import annotations

import json
import sys
import time

import anyio

from stateval.graders.judging import JudgeModel, JudgeSettings, ModelJudge
from stateval.records.protocols import GradeRequest
from stateval.records.rollout import Rollout
from stateval.records.sample import Sample

SETTINGS = JudgeSettings(prompt="Does the answer name the fruit? 1 or 0.")


async def main(grades: int, base_url: str) -> None:
    judge = ModelJudge(SETTINGS, [JudgeModel("slow-judge", base_url=base_url)])
    requests = [
        GradeRequest(Sample(id=number, input=f"Question {number}?"), f"Apples {number}.", Rollout())
        for number in range(grades)
    ]
    async with anyio.create_task_group() as tasks:  # the first time they are asked
        for request in requests:
            tasks.start_soon(judge.grade, request)
    started = time.perf_counter()
    for request in requests:
        grade = await judge.grade(request)
        assert grade.judging is not None
        assert grade.judging.cached == 1
    print(json.dumps({"seconds": time.perf_counter() - started}))
    await judge.close()


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]), sys.argv[2])
