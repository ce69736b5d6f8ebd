"""pydantic-evals with a task that answers at once and `Contains`: `pydantic_evals_run.py SAMPLES`, a report saved."""

import json
import sys
import time
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains
from pydantic_evals.reporting import EvaluationReport


async def answer(question: str) -> str:
    return "You like apples."


count = int(sys.argv[1])
cases = [Case(name=str(n), inputs=f"Question {n}: what do I like?", expected_output="apples") for n in range(count)]
dataset = Dataset(name="throughput", cases=cases, evaluators=[Contains(value="apples", case_sensitive=False)])
started = time.perf_counter()
report = dataset.evaluate_sync(answer, max_concurrency=15, progress=False)
Path("report.json").write_bytes(TypeAdapter(EvaluationReport).dump_json(report))
seconds = time.perf_counter() - started
if len(report.cases) != count or report.averages().assertions != 1.0:
    sys.exit(f"pydantic-evals: {len(report.cases)} of {count} cases")
print(json.dumps({"seconds": seconds}))
