"""Inspect with its mock model and its `includes` scorer: `inspect_run.py SAMPLES`, the log written below the cwd."""

import json
import sys
import time

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import includes


def answers():
    while True:
        yield ModelOutput.from_content("mockllm/model", "You like apples.")


count = int(sys.argv[1])
samples = [Sample(id=str(n), input=f"Question {n}: what do I like?", target="apples") for n in range(count)]
started = time.perf_counter()
model = get_model("mockllm/model", custom_outputs=answers())
(log,) = evaluate(Task(dataset=samples, scorer=includes()), model=model, log_dir="logs", display="none", max_samples=15)
seconds = time.perf_counter() - started
if log.status != "success" or log.results.completed_samples != count:
    sys.exit(f"Inspect: {log.status}, {log.results}")
print(json.dumps({"seconds": seconds}))
