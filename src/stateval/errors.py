"""Everything that can go wrong, on one screen, and the exit status each thing leads to.

StatevalError                       what is wrong, where, what to do next
├── UsageError                      2    the command or an argument of the Python API is wrong
│   ├── MissingExtra                2    an optional part of stateval is not installed
│   └── MissingKey                  2    the key that a model's endpoint wants is not set
├── InputError                      2    files given to stateval are wrong; holds every Problem found
│   ├── SuiteError                  2    the suite file
│   ├── DatasetError                2    the dataset
│   ├── UserCodeError               2    a user's Python file cannot be loaded or lacks a mark
│   └── SetupError                  2    the suite's set-up script raised
├── ResultsError                    4    results cannot be written or read
│   ├── ResultsLocked               2    another process works in the same directory
│   └── StorageFull                 4    the disk is full; everything finished is kept
├── ModelError                      -    a model call failed; becomes the error of one sample
│   ├── ModelUnavailable            2    a model's file or server cannot be had; nothing can run
│   ├── TransientModelError         -    may succeed when tried again (5xx, time-out)
│   │   └── TooManyCalls            -    the endpoint wants fewer calls (429)
│   └── PermanentModelError         -    will fail again (400, 401, 404, context overflow)
├── StageError                      -    one stage of one sample failed; stored with that sample
│   ├── TargetError                 -    the agent, its factory or its model
│   │   └── TargetTimeout           -    the target took longer than its `timeout`
│   ├── ExtractionError             -    there was nothing to extract from
│   ├── GradingError                -    a grader raised or returned no valid grade
│   └── RewardError                 -    the reward composer raised or returned no valid reward
├── RunUnfinished                   4    the run stopped at a limit, or every sample errored; carries the results
├── GateFailed                      1    the gate failed; carries the results
│   └── GateInconclusive            3    the evidence does not decide; carries the results
└── RunInterrupted                  130  SIGINT or SIGTERM; everything finished is kept
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stateval.records.rollout import Rollout
    from stateval.records.source import Problem
    from stateval.records.usage import Usage


class ExitStatus(IntEnum):
    """What the command `stateval` returns to the shell.

    When several apply the first of this order wins: interrupted, input wrong, unfinished, gate failed,
    inconclusive, passed.
    """

    PASSED = 0
    GATE_FAILED = 1
    INPUT_WRONG = 2
    INCONCLUSIVE = 3
    UNFINISHED = 4
    INTERRUPTED = 130


class StatevalError(Exception):
    """The root of the tree. `str(error)` is one plain sentence or a list of them, fit for the screen."""

    exit_status = ExitStatus.INPUT_WRONG


class UsageError(StatevalError):
    """The command line or a call of the Python API is wrong."""


class MissingExtra(UsageError):
    """A feature needs a package that is not installed.

    Args:
        feature: what was asked for, for instance "Parquet datasets".
        extra: the name of the extra that brings it, for instance "parquet".
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} need the extra `{extra}`: run `pip install 'stateval[{extra}]'`")
        self.feature = feature
        self.extra = extra


class MissingKey(UsageError):
    """The key that a model's endpoint wants is not set. `variable` is the environment variable that may hold it."""

    def __init__(self, model: str, variable: str, advice: str) -> None:
        super().__init__(f"model `{model}` needs a key: set `{variable}` or `api_key`, or {advice}")
        self.variable = variable


class InputError(StatevalError):
    """Files given to stateval are wrong. All problems that were found are in `problems`, in file order."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        super().__init__(problems if isinstance(problems, str) else "\n".join(str(p) for p in self.problems))


class SuiteError(InputError):
    """The suite file is wrong."""


class DatasetError(InputError):
    """The dataset is wrong."""


class UserCodeError(InputError):
    """A user's Python file cannot be loaded, lacks the function that was named, or lacks its mark."""


class SetupError(InputError):
    """The suite's `setup_script` raised, so no sample was run."""


class ResultsError(StatevalError):
    """Results cannot be written or read."""

    exit_status = ExitStatus.UNFINISHED


class ResultsLocked(ResultsError):
    """Another process works in this results directory."""

    exit_status = ExitStatus.INPUT_WRONG


class StorageFull(ResultsError):
    """The disk (or quota) is full. Whole records written so far are intact."""


class ModelError(StatevalError):
    """A call to a language model failed. `usage` is what its answers before the failure took, where there were any."""

    usage: Usage | None = None


class ModelUnavailable(ModelError):
    """A model's file or server cannot be had at all, so no sample can run."""


class TransientModelError(ModelError):
    """A model call failed in a way that may pass. `retry_after` is the server's wish in seconds, if it sent one."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyCalls(TransientModelError):
    """The endpoint wants fewer calls, or none for a while (429, 529, or 503 with the time to wait)."""


class PermanentModelError(ModelError):
    """A model call failed in a way that trying again cannot mend."""


class StageError(StatevalError):
    """One stage of one sample failed. Stored with that sample; other samples go on.

    `cause_type` is the class name of the exception that a user's code or a server raised, where there was one.
    """

    category = "unknown"

    def __init__(self, message: str, *, cause_type: str | None = None) -> None:
        super().__init__(message)
        self.cause_type = cause_type or type(self).__name__


class TargetError(StageError):
    """The agent could not be made, did not answer, or answered with something that is no message.

    `rollout` holds what was finished before the failure, if anything was.
    """

    category = "target"

    def __init__(self, message: str, *, cause_type: str | None = None, rollout: Rollout | None = None) -> None:
        super().__init__(message, cause_type=cause_type)
        self.rollout = rollout


class TargetTimeout(TargetError):
    """The target took longer than its `timeout`."""


class ExtractionError(StageError):
    """Nothing can be extracted: no message at all, or no state where one is needed."""

    category = "extraction"


class GradingError(StageError):
    """A grader raised, or returned something that is not a finite score in [0, 1]."""

    category = "grading"


class RewardError(StageError):
    """The reward composer raised, or returned something that is not a finite score in [0, 1]."""

    category = "reward"


class RunUnfinished(StatevalError):
    """The run did not reach every sample, or every sample errored. `results` are what there is, already saved."""

    exit_status = ExitStatus.UNFINISHED

    def __init__(self, message: str, results: Any = None) -> None:
        super().__init__(message)
        self.results = results


class GateFailed(StatevalError):
    """The gate failed. `results` are the run's results, already saved."""

    exit_status = ExitStatus.GATE_FAILED

    def __init__(self, message: str, results: Any = None) -> None:
        super().__init__(message)
        self.results = results


class GateInconclusive(GateFailed):
    """There is not enough evidence to say whether the gate passes."""

    exit_status = ExitStatus.INCONCLUSIVE


class RunInterrupted(StatevalError):
    """The run was stopped by SIGINT or SIGTERM. Finished samples are kept; run the command again to go on."""

    exit_status = ExitStatus.INTERRUPTED
