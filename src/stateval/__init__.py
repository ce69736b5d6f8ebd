"""stateval: find out whether an agent that has memory really remembers, corrects itself and keeps to its policy.

The public names are imported when they are first used, so that `import stateval` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "stateval.api.suite": ("AgentEvalTarget", "EvalGate", "EvalSuite"),
    "stateval.api.results": ("EvalObservation", "EvalResults"),
    "stateval.errors": (
        "DatasetError",
        "ExitStatus",
        "GateFailed",
        "GateInconclusive",
        "GradingError",
        "RewardError",
        "RunUnfinished",
        "StatevalError",
        "SuiteError",
        "TargetError",
        "UsageError",
    ),
    "stateval.records.grade": ("GradeResult", "RewardOutput"),
    "stateval.records.marks": ("agent_factory", "extractor", "grader", "reward_composer", "suite_setup"),
    "stateval.records.message": ("Trajectory",),
    "stateval.records.protocols": ("RewardContext",),
    "stateval.records.result": ("SampleResult",),
    "stateval.records.sample": ("Sample",),
    "stateval.records.state": ("AgentState", "Block"),
    "stateval.records.usage": ("Timing", "Usage"),
    "stateval.targets.local_agent": ("LocalAgentTarget",),
    "stateval.targets.python_target": ("PythonTarget",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("extractors", "graders")

__all__ = [*sorted([*_HOME_OF, *_MODULES]), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in _MODULES:
        value = import_module(f"stateval.{name}")
    else:
        raise AttributeError(f"module 'stateval' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from stateval import extractors as extractors
    from stateval import graders as graders
    from stateval.api.results import EvalObservation as EvalObservation
    from stateval.api.results import EvalResults as EvalResults
    from stateval.api.suite import AgentEvalTarget as AgentEvalTarget
    from stateval.api.suite import EvalGate as EvalGate
    from stateval.api.suite import EvalSuite as EvalSuite
    from stateval.errors import DatasetError as DatasetError
    from stateval.errors import ExitStatus as ExitStatus
    from stateval.errors import GateFailed as GateFailed
    from stateval.errors import GateInconclusive as GateInconclusive
    from stateval.errors import GradingError as GradingError
    from stateval.errors import RewardError as RewardError
    from stateval.errors import RunUnfinished as RunUnfinished
    from stateval.errors import StatevalError as StatevalError
    from stateval.errors import SuiteError as SuiteError
    from stateval.errors import TargetError as TargetError
    from stateval.errors import UsageError as UsageError
    from stateval.records.grade import GradeResult as GradeResult
    from stateval.records.grade import RewardOutput as RewardOutput
    from stateval.records.marks import agent_factory as agent_factory
    from stateval.records.marks import extractor as extractor
    from stateval.records.marks import grader as grader
    from stateval.records.marks import reward_composer as reward_composer
    from stateval.records.marks import suite_setup as suite_setup
    from stateval.records.message import Trajectory as Trajectory
    from stateval.records.protocols import RewardContext as RewardContext
    from stateval.records.result import SampleResult as SampleResult
    from stateval.records.sample import Sample as Sample
    from stateval.records.state import AgentState as AgentState
    from stateval.records.state import Block as Block
    from stateval.records.usage import Timing as Timing
    from stateval.records.usage import Usage as Usage
    from stateval.targets.local_agent import LocalAgentTarget as LocalAgentTarget
    from stateval.targets.python_target import PythonTarget as PythonTarget
