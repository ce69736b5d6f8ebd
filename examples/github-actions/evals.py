"""The same suite in Python. The script ends with the exit status of `stateval run`."""

import sys
from pathlib import Path

from agent import make_agent

from stateval import AgentEvalTarget, EvalGate, EvalSuite, graders

suite = EvalSuite(
    name="help-desk",
    dataset=Path(__file__).with_name("dataset.jsonl"),
    target=AgentEvalTarget(agent_factory=make_agent),
    graders={"answer": graders.contains()},
    gate=EvalGate(min_score=0.8, metric_key="answer"),
    output=".stateval/ci",
)

if __name__ == "__main__":
    results = suite.run(check=False)
    print(f"average score {results.average_score}, {results.error_count} errors")
    sys.exit(results.exit_status)
