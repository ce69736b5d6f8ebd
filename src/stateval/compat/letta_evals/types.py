"""Words of a suite file, as enumerations."""

from enum import StrEnum

from stateval.records.result import ErrorCategory

__all__ = [
    "Aggregation",
    "ErrorCategory",
    "GateKind",
    "GraderKind",
    "LLMProvider",
    "LogicalOp",
    "MetricOp",
    "RewardKind",
    "TargetKind",
]


class GraderKind(StrEnum):
    """How a grader judges."""

    TOOL = "tool"
    MODEL_JUDGE = "model_judge"
    LETTA_JUDGE = "letta_judge"


class LLMProvider(StrEnum):
    """Whose model judges."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"


class RewardKind(StrEnum):
    """Where a reward comes from."""

    METRIC = "metric"
    CUSTOM = "custom"


class TargetKind(StrEnum):
    """What is evaluated."""

    LETTA_AGENT = "letta_agent"
    LETTA_CODE = "letta_code"


class GateKind(StrEnum):
    """How a gate decides."""

    SIMPLE = "simple"
    WEIGHTED_AVERAGE = "weighted_average"
    LOGICAL = "logical"


class LogicalOp(StrEnum):
    """How the conditions of a logical gate are joined."""

    AND = "and"
    OR = "or"


class MetricOp(StrEnum):
    """How a value is compared."""

    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    EQ = "eq"


class Aggregation(StrEnum):
    """What a gate makes of many scores."""

    AVG_SCORE = "avg_score"
    ACCURACY = "accuracy"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
