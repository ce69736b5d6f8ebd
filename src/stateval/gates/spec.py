"""What a gate may say. These models are the `gate` of a suite file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from stateval.stats.comparison import Operator

NOT_YET = {
    "confidence": "intervals and three-way verdicts are not in this release; compare the measured value alone",
    "min_n": "a least number of samples is not in this release; every verdict shows its n",
    "max_error_rate": "a greatest share of errors is not in this release; use `on_error` to say how errors count",
    "baseline": "comparison with an earlier run is not in this release",
    "judge_check": "checks of the judge are not in this release",
    "min_judge_kappa": "checks of the judge are not in this release",
}
"""Words of a gate that a later release understands, each with what to say of it."""


class Aggregation(StrEnum):
    """How the values of a metric become one number.

    `accuracy` is the percentage of observations that pass (score >= `pass_threshold`), `pass_rate` the same from 0
    to 1. `pass_at_k` and `pass_hat_k` are the chances that one, or all, of k tries pass; k is the number of runs.
    """

    AVG_SCORE = "avg_score"
    ACCURACY = "accuracy"
    PASS_RATE = "pass_rate"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    PASS_HAT_K = "pass_hat_k"
    PASS_AT_K = "pass_at_k"

    @property
    def over_repeats(self) -> bool:
        """Whether it is defined by the repeats of each sample."""
        return self in {Aggregation.PASS_AT_K, Aggregation.PASS_HAT_K}

    @property
    def counts_passes(self) -> bool:
        """Whether it looks only at which observations pass."""
        return self.over_repeats or self in {Aggregation.ACCURACY, Aggregation.PASS_RATE}


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]


class GateModel(BaseModel):
    """What all gates have in common: they are frozen, and know no other words than their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _words_of_later_releases(cls, data: Any) -> Any:
        for word, why in NOT_YET.items():
            if isinstance(data, dict) and word in data:
                raise PydanticCustomError("not_in_this_release", "`{word}`: {why}", {"word": word, "why": why})
        return data


class SimpleGate(GateModel):
    """A condition on one metric.

    `metric_key` may be left out where there is one grader. An observation passes where `score pass_op
    pass_threshold` holds (without `pass_threshold`: that of the suite); this matters to the aggregations that count
    passes. `metric` and `pass_value` are old spellings of `aggregation` and `pass_threshold`.
    """

    kind: Literal["simple"] = "simple"
    metric_key: str | None = None
    aggregation: Aggregation = Aggregation.AVG_SCORE
    op: Operator
    value: Number
    pass_threshold: Number | None = None
    pass_op: Operator = Operator.GTE

    @model_validator(mode="before")
    @classmethod
    def _old_spellings(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("pass_value") is not None and data.get("pass_op") is None and "op" in data:
            data = {**data, "pass_op": data["op"]}
        for old, new in (("metric", "aggregation"), ("pass_value", "pass_threshold")):
            if old in data and new in data:
                raise ValueError(f"`{old}` is an old spelling of `{new}`; give one of them")
            data = {new if key == old else key: value for key, value in data.items()}
        return {key: value for key, value in data.items() if not (key == "pass_op" and value is None)}


class WeightedAverageGate(GateModel):
    """A condition on the weighted mean of several metrics, each aggregated alike. Weights are normalised; 0 is one."""

    kind: Literal["weighted_average"]
    aggregation: Aggregation = Aggregation.AVG_SCORE
    weights: dict[str, Annotated[Number, Field(ge=0)]] = Field(min_length=1)
    op: Operator
    value: Number
    pass_threshold: Number | None = None

    @model_validator(mode="after")
    def _some_weight(self) -> WeightedAverageGate:
        if not any(self.weights.values()):
            raise ValueError("all `weights` are 0; at least one must be greater")
        return self


class LogicalGate(GateModel):
    """Several conditions, of which all (`and`) or one (`or`) must hold."""

    kind: Literal["logical"]
    operator: Literal["and", "or"]
    conditions: list[Gate] = Field(min_length=1)


def _kind(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("kind", "simple")
    return getattr(value, "kind", None)


Gate = Annotated[
    Annotated[SimpleGate, Tag("simple")]
    | Annotated[LogicalGate, Tag("logical")]
    | Annotated[WeightedAverageGate, Tag("weighted_average")],
    Discriminator(
        _kind,
        custom_error_type="gate_kind",
        custom_error_message="`kind` must be simple, logical or weighted_average, and a gate a mapping",
    ),
]
LogicalGate.model_rebuild()


class Where(GateModel):
    """Which samples a gate looks at: those with any of these tags."""

    tags: list[str] = Field(min_length=1)


class _Entry(GateModel):
    name: str | None = None
    on_fail: Literal["fail", "warn"] = "fail"
    where: Where | None = None


class SimpleEntry(_Entry, SimpleGate):
    """A simple gate as it stands in a suite file."""


class LogicalEntry(_Entry, LogicalGate):
    """A logical gate as it stands in a suite file."""


class WeightedAverageEntry(_Entry, WeightedAverageGate):
    """A weighted-average gate as it stands in a suite file."""


GateEntry = Annotated[
    Annotated[SimpleEntry, Tag("simple")]
    | Annotated[LogicalEntry, Tag("logical")]
    | Annotated[WeightedAverageEntry, Tag("weighted_average")],
    Discriminator(
        _kind,
        custom_error_type="gate_kind",
        custom_error_message="`kind` must be simple, logical or weighted_average, and a gate a mapping",
    ),
]

GateField = Annotated[
    Annotated[GateEntry, Tag("gate")] | Annotated[list[GateEntry], Field(min_length=1), Tag("gates")],
    Discriminator(lambda value: "gates" if isinstance(value, list | tuple) else "gate"),
]
"""The type of the field `gate` of a suite file: one gate, or a list of named ones."""


class NamedGate(GateModel):
    """A gate of a run. One with `on_fail: warn` is reported but does not decide; `where` restricts the samples."""

    gate: Gate
    name: str | None = None
    on_fail: Literal["fail", "warn"] = "fail"
    where: Where | None = None


def parse_gates(value: Any) -> tuple[NamedGate, ...]:
    """The gates of the field `gate`: None, a mapping, a list of mappings, or what `GateField` made of them.

    Raises pydantic's ValidationError. The locations of its errors hold tags (`gate` or `gates`, and the kind).
    """
    if value is None:
        return ()
    parsed = _FIELD.validate_python(value)
    return tuple(_named(entry) for entry in (parsed if isinstance(parsed, list) else [parsed]))


def metric_names(gate: Gate | NamedGate) -> tuple[str | None, ...]:
    """The metrics that a gate looks at, each once, in order; None stands for "the only grader"."""
    match gate:
        case NamedGate():
            return metric_names(gate.gate)
        case LogicalGate():
            names = [name for condition in gate.conditions for name in metric_names(condition)]
            return tuple(dict.fromkeys(names))
        case WeightedAverageGate():
            return tuple(gate.weights)
    return (gate.metric_key,)


_FIELD: TypeAdapter[Any] = TypeAdapter(GateField)


def _named(entry: SimpleEntry | LogicalEntry | WeightedAverageEntry) -> NamedGate:
    gate = {name: value for name, value in entry if name not in _Entry.model_fields}
    return NamedGate.model_validate({"gate": gate, "name": entry.name, "on_fail": entry.on_fail, "where": entry.where})
