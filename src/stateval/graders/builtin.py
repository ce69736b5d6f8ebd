"""The table of the built-in tool graders."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from stateval.graders import text, values
from stateval.graders.inputs import texts_in
from stateval.graders.semantic import SemanticOptions, SemanticSimilarity
from stateval.graders.tool_sequence import SequenceOptions, expected_calls, tool_sequence
from stateval.loading.options import OptionDescription, Options, describe_options
from stateval.records.grade import GradeResult
from stateval.records.protocols import GradeRequest


class Reads(Enum):
    """What a grader compares a submission with."""

    NOTHING = "nothing"
    TRUTH = "ground_truth"
    EXPECTED = "expected"
    EITHER = "expected or ground_truth"


@dataclass(frozen=True, slots=True)
class BuiltinGrader:
    """One built-in tool grader: a function of a request and the settings, or a class that makes a grader of these.

    `truth_problem` and `read_expected` say what is wrong with a row's `ground_truth` (as a text) or `expected` (by a
    ValueError); `slow` ones run in a thread. `wants_extractor` is the extractor without which it makes no sense.
    """

    name: str
    function: Callable[..., Any]
    options: type[Options]
    reads: Reads
    truth_problem: Callable[[str], str | None] | None = None
    read_expected: Callable[[Any], Any] | None = None
    slow: bool = False
    wants_extractor: str | None = None

    @property
    def is_class(self) -> bool:
        """Whether it is a grader of its own kind rather than a function."""
        return inspect.isclass(self.function)

    @property
    def description(self) -> str:
        """What it asks, in one sentence or two."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    @property
    def option_descriptions(self) -> list[OptionDescription]:
        """What can be set in `grader_config`."""
        return describe_options(self.options)


def _looks_for(name: str, function: Callable[[GradeRequest, Any], GradeResult]) -> BuiltinGrader:
    return BuiltinGrader(name, function, text.TextsOptions, Reads.EITHER, text.empty_problem, texts_in)


_GRADERS = (
    BuiltinGrader("exact_match", text.exact_match, text.NoOptions, Reads.TRUTH),
    BuiltinGrader("contains", text.contains, text.ContainsOptions, Reads.TRUTH, text.empty_problem),
    _looks_for("not_contains", text.not_contains),
    _looks_for("contains_any", text.contains_any),
    _looks_for("contains_all", text.contains_all),
    BuiltinGrader("regex_match", text.regex_match, text.RegexOptions, Reads.TRUTH, text.regex_problem, slow=True),
    BuiltinGrader("ascii_printable_only", text.ascii_printable_only, text.NoOptions, Reads.NOTHING),
    BuiltinGrader("similarity", text.similarity, text.SimilarityOptions, Reads.TRUTH),
    BuiltinGrader("semantic_similarity", SemanticSimilarity, SemanticOptions, Reads.TRUTH),
    BuiltinGrader("numeric_match", values.numeric_match, values.NumericOptions, Reads.TRUTH, values.number_problem),
    BuiltinGrader("json_match", values.json_match, values.JsonMatchOptions, Reads.EITHER, values.json_problem),
    BuiltinGrader(
        "tool_sequence",
        tool_sequence,
        SequenceOptions,
        Reads.EXPECTED,
        read_expected=expected_calls,
        slow=True,
        wants_extractor="tool_calls",
    ),
)

BUILTIN: Mapping[str, BuiltinGrader] = {grader.name: grader for grader in _GRADERS}
"""Every built-in tool grader by the name that a suite uses."""
