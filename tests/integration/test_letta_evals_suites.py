"""Suites in the shape of each era of letta-evals, written for this project, run without a change on real servers."""

from __future__ import annotations

from typing import Any

import pytest

from stateval.errors import ExitStatus
from tests.integration.letta_servers import RunningServer
from tests.integration.test_letta_agent import agent_file, left_on
from tests.support.evaltester import EvalTester

FIRST_GATES = """
name: remembers
description: the shape of releases 0.2
dataset: dataset.csv
target:
  kind: agent
  agent_file: ada.af
  base_url: {url}
graders:
  memory:
    kind: tool
    function: contains
    extractor: memory_block
    extractor_config:
      block_label: human
gate:
  metric: avg_score
  op: gte
  value: 0.9
  pass_op: gte
  pass_value: 1.0
"""

LATER_GATES = """
name: remembers and says so
description: the shape of releases 0.9 - 0.19
dataset: dataset.csv
target:
  kind: letta_agent
  agent_script: agents.py:make
  base_url: {url}
  timeout: 120.0
  max_retries: 1
setup_script: agents.py:prepare
num_runs: 2
graders:
  memory:
    kind: tool
    function: contains
    extractor: extractors.py:human_block
  stored:
    kind: tool
    function: graders.py:stored_something
    extractor: extractors.py:tools_used
    display_name: stored
gate:
  kind: logical
  operator: and
  conditions:
    - {{kind: simple, metric_key: memory, aggregation: avg_score, op: gte, value: 0.9}}
    - kind: weighted_average
      aggregation: avg_score
      weights: {{memory: 0.7, stored: 0.3}}
      op: gte
      value: 0.9
"""

REWARDS = """
name: rewarded
description: the shape of releases 0.20 - 0.26
dataset: dataset.jsonl
target:
  kind: letta_agent
  agent_file: ada.af
  base_url: {url}
graders:
  memory: {{kind: tool, function: contains, extractor: memory_block, extractor_config: {{block_label: human}}}}
  said: {{kind: tool, function: contains}}
reward: {{kind: custom, function: "reward.py:both"}}
max_concurrent: 3
output: results
cleanup: true
"""

FILES = {
    "dataset.csv": 'input,ground_truth\n"remember likes tea",likes tea\n"remember likes milk",likes milk\n',
    "dataset.jsonl": '{"id": "tea", "input": "remember likes tea", "ground_truth": "tea"}\n'
    '{"id": "two", "input": ["remember likes tea", "correct tea -> milk"], "ground_truth": "milk"}\n',
    "agents.py": """
from letta_client import AsyncLetta
from letta_evals.decorators import agent_factory, suite_setup
from letta_evals.models import Sample


@suite_setup
async def prepare(client: AsyncLetta) -> None:
    assert (await client.health()).status == "ok"


@agent_factory
async def make(client: AsyncLetta, sample: Sample) -> str:
    blocks = [{{"label": "human", "value": ""}}]
    agent = await client.agents.create(name=f"agent-{{sample.id}}", memory_blocks=blocks, **{fields!r})
    return agent.id
""",
    "extractors.py": """
from letta_client.types import AgentState
from letta_client.types.agents import ToolCallMessage
from letta_evals.decorators import extractor


@extractor
def human_block(trajectory, config: dict, agent_state: AgentState) -> str:
    return next(block.value for block in agent_state.memory.blocks if block.label == "human")


@extractor
def tools_used(trajectory, config: dict) -> str:
    calls = [message for turn in trajectory for message in turn if isinstance(message, ToolCallMessage)]
    return ",".join(message.tool_call.name for message in calls)
""",
    "graders.py": """
from letta_evals.decorators import grader
from letta_evals.models import GradeResult, Sample


@grader
def stored_something(sample: Sample, submission: str) -> GradeResult:
    return GradeResult(score=1.0 if "memory_insert" in submission else 0.0, rationale=submission)
""",
    "reward.py": """
from letta_evals import RewardContext, RewardOutput, reward_composer


@reward_composer
def both(ctx: RewardContext) -> RewardOutput:
    return RewardOutput(score=ctx.grades["memory"].score, metadata={"said": ctx.grades["said"].score})
""",
}


def project(tester: EvalTester, server: RunningServer, suite: str) -> None:
    """Writes the suite and the files that it names."""
    fields: dict[str, Any] = {"agent_type": server.agent_type, **server.model_settings}
    for name, content in FILES.items():
        tester.write(name, content.format(fields=fields) if name == "agents.py" else content)
    agent_file(server, tester.path)
    tester.write("suite.yaml", suite.format(url=server.base_url))


@pytest.mark.parametrize("suite", [FIRST_GATES, LATER_GATES, REWARDS], ids=["0.2", "0.9", "0.26"])
def test_a_suite_of_each_era_runs_as_it_stands(evaltester: EvalTester, server: RunningServer, suite: str) -> None:
    project(evaltester, server, suite)
    validated = evaltester.command("validate", "suite.yaml")
    assert validated.status == ExitStatus.PASSED, validated.output
    before = left_on(server)
    finished = evaltester.run("suite.yaml")
    assert finished.status == ExitStatus.PASSED, finished.output
    runs = (1, 2) if "num_runs" in suite else (None,)
    for run in runs:
        results = evaltester.results(run=run)
        assert len(results) == 2
        assert all(result.error is None for result in results.values()), finished.output
        assert all(result.grades["memory"].score == 1.0 for result in results.values())
    if suite is FIRST_GATES:
        assert "read as" in validated.output
    if suite is REWARDS:
        assert left_on(server) == before
        assert results["tea"].reward.score == 1.0
