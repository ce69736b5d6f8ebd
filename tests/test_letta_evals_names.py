"""Users' files that import `letta_evals`: served by stateval, to them alone, with real classes of `letta_client`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from stateval.errors import ExitStatus, UserCodeError
from stateval.loading.user_code import UserCode
from stateval.suite.build import SERVED_NAMES
from tests.support.evaltester import EvalTester

OLD_GRADERS = """
from letta_evals.decorators import grader
from letta_evals.models import GradeResult, Sample


@grader
def polite(sample: Sample, submission: str) -> GradeResult:
    from letta_evals.graders.builtin import contains

    grade = contains(sample, submission)
    assert isinstance(grade, GradeResult)
    grade.rationale = f"asked: {sample.input}"
    return grade


@grader(name="named")
def shouted(sample, submission):
    import letta_evals.models as models

    return models.GradeResult(score=float(submission.isupper()), rationale="capitals")
"""

OLD_EXTRACTORS = """
import helper
from letta_evals import extractors
from letta_evals.decorators import extractor
from letta_evals.extractors.builtin import last_assistant
from letta_evals.extractors.utils import get_assistant_messages, get_last_turn_messages, get_tool_calls
from letta_client.types.agents import AssistantMessage, ToolCallMessage


@extractor
def doubled(trajectory, config):
    messages = [message for turn in trajectory for message in turn]
    assert all(isinstance(message, AssistantMessage) for message in messages), messages
    assert get_assistant_messages(trajectory) == messages == get_last_turn_messages(trajectory, AssistantMessage)
    assert get_tool_calls(trajectory) == []
    assert extractors.last_assistant(trajectory, {}) == last_assistant(trajectory, {}) == messages[-1].content
    return helper.twice(messages[-1].content)


@extractor
def remembered(trajectory, config, agent_state):
    from letta_client.types import AgentState
    from letta_evals import models

    assert models.AgentState is AgentState and models.AssistantMessage is AssistantMessage
    assert isinstance(agent_state, AgentState)
    assert [block.label for block in agent_state.memory.blocks] == [block.label for block in agent_state.blocks]
    return extractors.builtin.memory_block(trajectory, {"block_label": "heard"}, agent_state)
"""

HELPER = """
def twice(text):
    from letta_evals.extractors.utils import flatten_content

    return flatten_content([{"type": "text", "text": text}, {"type": "text", "text": text}])
"""

OLD_REWARD = """
from letta_client.types.agents import AssistantMessage
from letta_evals import RewardContext, RewardOutput, reward_composer


@reward_composer
def mean(ctx: RewardContext) -> RewardOutput:
    assert isinstance(ctx.trajectory[0][0], AssistantMessage)
    return RewardOutput(score=sum(grade.score for grade in ctx.grades.values()) / len(ctx.grades), metadata={"n": 2})
"""


def test_graders_extractors_and_rewards_of_old_files_run_unchanged(evaltester: EvalTester) -> None:
    for name, content in (
        ("graders.py", OLD_GRADERS),
        ("extractors.py", OLD_EXTRACTORS),
        ("helper.py", HELPER),
        ("reward.py", OLD_REWARD),
    ):
        evaltester.write(name, content)
    tool = {"kind": "tool", "extractor": "extractors.py:doubled"}
    graders = {
        "polite": tool | {"function": "graders.py:polite"},
        "loud": tool | {"function": "graders.py:shouted"},
        "memory": {"kind": "tool", "function": "contains", "extractor": "extractors.py:remembered"},
    }
    reward = {"kind": "custom", "function": "reward.py:mean"}
    suite = evaltester.write_suite([{"input": "RED", "ground_truth": "red"}], graders=graders, reward=reward)
    validated = evaltester.command("validate", suite)
    assert validated.status == ExitStatus.PASSED, validated.output
    finished = evaltester.run(suite)
    assert finished.status == ExitStatus.PASSED, finished.output
    (result,) = evaltester.results().values()
    assert result.error is None
    assert result.submissions["polite"] == "REDRED"
    assert {key: grade.score for key, grade in result.grades.items()} == {"polite": 1.0, "loud": 1.0, "memory": 1.0}
    assert result.grades["polite"].rationale == "asked: RED"
    assert result.reward.score == 1.0


def loaded(directory: Path, source: str, name: str = "function"):
    (directory / "user.py").write_text(source, encoding="utf-8")
    return UserCode(directory, SERVED_NAMES).load(f"user.py:{name}").function


def test_the_names_are_served_to_users_files_and_to_nobody_else(tmp_path: Path) -> None:
    real = tmp_path / "site" / "letta_evals"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("real = True\n", encoding="utf-8")
    source = "import letta_evals\nimport letta_evals.models\n\ndef function():\n    return letta_evals\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(real.parent))
        before = import_module("letta_evals")
        try:
            served = loaded(tmp_path, source)()
            assert served.__name__ == "stateval.compat.letta_evals"
            assert served.models.Sample is import_module("stateval").Sample
            assert import_module("letta_evals") is before is sys.modules["letta_evals"]
        finally:
            del sys.modules["letta_evals"]


MODULES = {
    "": ("EvalSuite", "AgentEvalTarget", "EvalGate", "extractors", "graders", "Sample", "GradeResult", "RewardOutput"),
    ".decorators": ("grader", "extractor", "agent_factory", "suite_setup", "reward_composer"),
    ".models": (
        "Sample",
        "GradeResult",
        "PerTurnGrade",
        "SampleResult",
        "RewardOutput",
        "AgentState",
        "LettaMessageUnion",
        "ToolReturnMessage",
        "Usage",
        "Timing",
    ),
    ".extractors": ("last_assistant", "memory_block", "tool_arguments", "tool_output", "pattern"),
    ".extractors.builtin": ("last_assistant", "first_assistant", "all_assistant", "last_turn", "after_marker"),
    ".extractors.registry": ("get_extractor", "extractor_requires_agent_state"),
    ".extractors.utils": ("flatten_content", "get_messages_by_type", "get_tool_calls"),
    ".graders": ("contains", "exact_match", "ascii_printable_only"),
    ".rewards": ("RewardContext", "RewardOutput", "coerce_reward_output"),
    ".types": ("GraderKind", "LLMProvider", "Aggregation", "MetricOp"),
}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_its_names_in_every_form_of_import(tmp_path: Path, module: str) -> None:
    names = ", ".join(MODULES[module])
    source = f"def function():\n    from letta_evals{module} import {names}\n    return [{names}]\n"
    assert all(value is not None for value in loaded(tmp_path, source)())
    star = f"from letta_evals{module} import *\n\ndef function():\n    return [{names}]\n"
    assert len(loaded(tmp_path, star)()) == len(MODULES[module])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import importlib\nimportlib.import_module('letta_evals.runner')", "there is: decorators, extractors"),
        ("from letta_evals.models import SampleX", "no `SampleX`"),
        ("from letta_evals.modles import Sample", "serves no `letta_evals.modles`.*; did you mean `models`"),
        ("import letta_evals.runner", "serves no `letta_evals.runner`"),
    ],
)
def test_what_is_not_served_is_said(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(UserCodeError, match=words):
        loaded(tmp_path, f"{line}\n\ndef function():\n    pass\n")


def test_the_graders_and_extractors_of_the_guides_make_objects(tmp_path: Path) -> None:
    source = """
from letta_evals import EvalGate, extractors, graders

def function():
    block = extractors.memory_block("user_info")
    return graders.contains(), extractors.last_assistant(), block, EvalGate(min_score=0.5)
"""
    grader, last, block, gate = loaded(tmp_path, source)()
    assert (grader.kind, last.name, block.name, gate.min_score) == ("tool", "last_assistant", "memory_block", 0.5)


def test_names_that_are_asked_for_by_their_text_are_served_too(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("from letta_evals.models import Sample\n", encoding="utf-8")
    source = """
import importlib
import importlib.util
from importlib import import_module, resources

def function():
    models = import_module("letta_evals.models")
    assert importlib.import_module("letta_evals").models is models
    assert importlib.import_module("helper").Sample is models.Sample
    assert importlib.import_module(".helper", __package__) is importlib.import_module("helper")
    assert importlib.import_module("os.path").join and importlib.util.find_spec("json") and resources.files
    return importlib, models
"""
    own, models = loaded(tmp_path, source)()
    assert models.__name__ == "stateval.compat.letta_evals.models"
    assert own is not sys.modules["importlib"] and "letta_evals" not in sys.modules


def test_calls_and_returns_of_tools_are_paired_by_their_ids(tmp_path: Path) -> None:
    source = """
from letta_client.types import ToolReturnMessage
from letta_client.types.agents import ToolCallMessage
from letta_evals.extractors.utils import get_tool_calls

def call(id):
    return ToolCallMessage.construct(
        message_type="tool_call_message", tool_call={"name": "f", "arguments": "{}", "tool_call_id": id}
    )

def answer(id):
    return ToolReturnMessage.construct(message_type="tool_return_message", tool_call_id=id, tool_return=id)

def function():
    turns = [[call("a"), call("b"), answer("b"), answer("a")], [call("other"), answer("c")], [call("none")]]
    return [(call.tool_call.tool_call_id, answer.tool_return) for call, answer in get_tool_calls(turns)]
"""
    assert loaded(tmp_path, source)() == [("a", "a"), ("b", "b"), ("other", "c")]


def test_extractors_by_name_are_functions_with_their_settings(tmp_path: Path) -> None:
    source = """
from letta_client.types import AgentState
from letta_client.types.agents import AssistantMessage
from letta_evals.decorators import extractor
from letta_evals.extractors import extractor_requires_agent_state, get_extractor

@extractor
def shout(trajectory, config):
    return get_extractor("last_assistant")(trajectory) + config["end"]

def function(directory):
    said = [AssistantMessage.construct(message_type="assistant_message", content=text) for text in "ab"]
    state = AgentState.construct(blocks=[{"label": "human", "value": "Ada"}])
    assert extractor_requires_agent_state("memory_block") and not extractor_requires_agent_state("pattern")
    return (
        get_extractor("all_assistant", {"separator": "+"})([said]),
        get_extractor("memory_block", {"block_label": "human"})([said], state),
        get_extractor("user.py:shout", {"end": "!"}, directory)([said]),
        get_extractor("last_asistant")([said]),
    )
"""
    with pytest.raises(ValueError, match="did you mean `last_assistant`"):
        loaded(tmp_path, source)(tmp_path)
    known = loaded(tmp_path, source.replace("last_asistant", "last_assistant"))(tmp_path)
    assert known == ("a+b", "Ada", "b!", "b")


def test_a_reward_is_made_of_whatever_composers_return(tmp_path: Path) -> None:
    source = """
from letta_evals.rewards import RewardOutput, coerce_reward_output

def function():
    values = (0.5, 1, {"score": 0.25, "metadata": {"a": 1}}, RewardOutput(score=0.75))
    return [coerce_reward_output(value) for value in values]
"""
    rewards = loaded(tmp_path, source)()
    assert [reward.score for reward in rewards] == [0.5, 1.0, 0.25, 0.75]
    assert [reward.metadata for reward in rewards] == [None, None, {"a": 1}, None]


def test_files_that_do_not_import_them_get_the_records_of_stateval(evaltester: EvalTester) -> None:
    evaltester.write(
        "extractors.py",
        """
        from stateval import extractor

        @extractor
        def kind(trajectory, config):
            return type(trajectory[0][0]).__module__
        """,
    )
    graders = {"q": {"kind": "tool", "function": "contains", "extractor": "extractors.py:kind"}}
    suite = evaltester.write_suite([{"input": "a", "ground_truth": "stateval.records"}], graders=graders)
    assert evaltester.run(suite).status == ExitStatus.PASSED
    assert evaltester.results()["0"].grades["q"].score == 1.0
