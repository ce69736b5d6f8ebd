"""Tool graders bound to their settings, as the runner calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from stateval.errors import GradingError, UsageError
from stateval.graders.builtin import BUILTIN, BuiltinGrader, Reads
from stateval.loading.calling import call_user, own_copy, scored
from stateval.loading.fingerprint import digest_of_module, fingerprint_of
from stateval.loading.options import Options, read_options
from stateval.loading.registry import unknown_name
from stateval.loading.user_code import LoadedFunction
from stateval.records.grade import GradeResult
from stateval.records.protocols import Grader, GradeRequest, Needs
from stateval.records.sample import Sample
from stateval.threads import in_thread


def make_tool_grader(
    function: str | BuiltinGrader | LoadedFunction | Callable[..., Any], config: Mapping[str, Any] | None = None
) -> Grader:
    """A tool grader with its settings.

    Args:
        function: the name of a built-in one, or a function `(sample, submission)`, sync or async, that returns a
            `GradeResult`, a number, a boolean, or a dict or object with a `score`.
        config: the settings of a built-in one.

    Raises UsageError for an unknown name, an unknown or wrong setting, or a function of another signature.
    """
    if isinstance(function, str):
        if function not in BUILTIN:
            raise UsageError(unknown_name("grader", function, list(BUILTIN)))
        function = BUILTIN[function]
    if isinstance(function, BuiltinGrader):
        options = read_options(function.options, config, f"grader `{function.name}`")
        if function.is_class:
            grader: Grader = function.function(options)
            return grader
        return BoundGrader(function, options)
    if isinstance(function, LoadedFunction):
        return CustomGrader(function.function, function.reference, function.fingerprint, config)
    name = getattr(function, "__name__", type(function).__name__)
    return CustomGrader(function, name, fingerprint_of(function), config)


class BoundGrader:
    """A built-in tool grader with its settings."""

    kind = "tool"
    needs = Needs.NOTHING

    def __init__(self, builtin: BuiltinGrader, options: Options) -> None:
        self.name = builtin.name
        self._builtin = builtin
        self._function, self._slow = builtin.function, builtin.slow
        self._options = options

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The name, the settings, and the source of the module it is written in."""
        digest = digest_of_module(self._builtin.function.__module__)
        return {"grader": self.name, "config": self._options.model_dump(), "sha256": digest}

    async def grade(self, request: GradeRequest) -> GradeResult:
        """The grade. Raises GradingError where there is nothing to compare with, or comparing takes too long."""
        grade: GradeResult = (
            await in_thread(self._function, request, self._options)
            if self._slow
            else self._function(request, self._options)
        )
        return grade

    def check(self, sample: Sample) -> str | None:
        """What this sample lacks: a truth, one for each graded turn, or an `expected` of the right shape."""
        reads = self._builtin.reads
        if reads is Reads.NOTHING:
            return None
        if reads in (Reads.EXPECTED, Reads.EITHER):
            if sample.expected is not None:
                return self._expected_problem(sample.expected)
            if getattr(self._options, "expected", None) is not None:
                return None
        if reads is Reads.EXPECTED:
            return f"grader `{self.name}` needs `expected`, in the row or in `grader_config`"
        return self._truths_problem(sample)

    def _expected_problem(self, expected: Any) -> str | None:
        if self._builtin.read_expected is None or isinstance(expected, dict):
            return None
        try:
            self._builtin.read_expected(expected)
        except ValueError as error:
            return f"grader `{self.name}` cannot use `expected`: {error}"
        return None

    def _truths_problem(self, sample: Sample) -> str | None:
        per_turn = sample.turn_truths
        truths = [sample.ground_truth] if per_turn is None else [truth for truth in per_turn if truth is not None]
        given = [truth for truth in truths if isinstance(truth, str)]
        if not given:
            return f"grader `{self.name}` needs a `ground_truth`" + self._or_expected()
        problem = self._builtin.truth_problem
        found = (problem(truth) for truth in given) if problem else ()
        complaint = next((text for text in found if text), None)
        return f"grader `{self.name}`: {complaint}" if complaint else None

    def _or_expected(self) -> str:
        return ", or `expected` in the row or in `grader_config`" if self._builtin.reads is Reads.EITHER else ""


class CustomGrader:
    """A user's function as a grader. Raises UsageError where it cannot be called as one, or has settings."""

    kind = "tool"
    needs = Needs.NOTHING

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        fingerprint: Mapping[str, Any],
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if config:
            raise UsageError(
                f"grader `{name}` is a function (sample, submission), which cannot be handed `grader_config`; "
                "put what it needs into the row's `extra_vars` or into the function"
            )
        _require_two_parameters(function, name)
        self.name = name
        self._function = function
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The function's reference and source."""
        return {"grader": dict(self._fingerprint)}

    async def grade(self, request: GradeRequest) -> GradeResult:
        """What the function returns, as a grade. Raises GradingError where it raises or returns no valid score."""
        who = f"grader `{self.name}`"
        sample = own_copy(_sample_of(request))
        returned = await call_user(self._function, GradingError, who, sample, request.submission)
        try:
            fields = returned.model_dump(warnings=False) if isinstance(returned, GradeResult) else scored(returned)
            return GradeResult.model_validate(fields)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in problem["loc"])
            raise GradingError(f"{who}: `{place}` is {problem['input']!r}: {problem['msg']}") from None
        except ValueError as error:
            raise GradingError(f"{who}: {error}") from None

    def check(self, sample: Sample) -> str | None:
        """Nothing is known of what a user's function needs."""
        return None


def _sample_of(request: GradeRequest) -> Sample:
    """The sample with the truth that this grader is to use, which another field of the row may have given."""
    if request.ground_truth == request.sample.ground_truth:
        return request.sample
    return request.sample.model_copy(update={"ground_truth": request.ground_truth})


def _require_two_parameters(function: Callable[..., Any], name: str) -> None:
    try:
        signature = inspect.signature(function)
        signature.bind(None, "")
    except (TypeError, ValueError) as error:
        raise UsageError(f"grader `{name}` must take (sample, submission): {error}") from None
