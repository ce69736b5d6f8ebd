"""What a gate may say. These models are the `gate` of a suite file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    TypeAdapter,
    ValidationInfo,
    field_validator,
    model_validator,
)

from stateval.gates.words import (
    Aggregation,
    Confidence,
    GateModel,
    Kappa,
    Number,
    Samples,
    Share,
    no_interval,
    no_weighted_interval,
)
from stateval.stats.comparison import Operator


class Baseline(GateModel):
    """An earlier run that a metric must not fall behind.

    `results` is its directory; `max_drop` the fall of the mean that is allowed (0.02 unless given), of a metric of
    which less is better the rise. `confidence` is that of the one-sided bound. `force` compares also where data or
    graders differ, and marks it.
    """

    results: Annotated[str, Field(min_length=1)]
    metric_key: str | None = None
    max_drop: Annotated[Number, Field(ge=0)] | None = None
    confidence: Confidence = 0.95
    force: StrictBool = False

    @property
    def allowed(self) -> float:
        """The drop that is allowed."""
        return 0.02 if self.max_drop is None else self.max_drop


class _Evidence(GateModel):
    """What the data must be like for a verdict: so many samples, so few errors, a judge that agrees with people.

    `judge_check` is a file that `stateval judge check` wrote, `min_judge_kappa` the least agreement beyond chance.
    """

    min_n: Samples | None = None
    max_error_rate: Share | None = None
    judge_check: Annotated[str, Field(min_length=1)] | None = None
    min_judge_kappa: Kappa | None = None


class BaselineGate(_Evidence):
    """The mean of a metric must not have dropped since an earlier run, sample by sample."""

    kind: Literal["baseline"] = "baseline"
    metric_key: str | None = None
    baseline: Baseline

    @model_validator(mode="before")
    @classmethod
    def _confidence_is_inside(cls, data: Any) -> Any:
        if isinstance(data, dict) and "confidence" in data:
            raise ValueError("`confidence` of a comparison stands inside `baseline`")
        return data

    @property
    def metric(self) -> str | None:
        """The metric that is compared; None stands for the only grader, else the reward."""
        return self.baseline.metric_key or self.metric_key

    @property
    def small_is_good(self) -> bool:
        """Whether a rise is the loss; of a resource it always is."""
        return False


class SimpleGate(_Evidence):
    """A condition on one metric.

    `metric_key` may be left out where there is one grader. An observation passes where `score pass_op
    pass_threshold` holds (without `pass_threshold`: that of the suite); this matters to the aggregations that count
    passes. With `confidence` it is decided by an interval. `baseline` is a second condition, which must hold too.
    `metric` and `pass_value` are old spellings of `aggregation` and `pass_threshold`.
    """

    model_config = ConfigDict(json_schema_extra=lambda schema: _add_old_spellings(schema))

    kind: Literal["simple"] = "simple"
    metric_key: str | None = None
    aggregation: Aggregation = Aggregation.AVG_SCORE
    op: Operator
    value: Number
    pass_threshold: Number | None = None
    pass_op: Operator = Operator.GTE
    confidence: Confidence | None = None
    baseline: Baseline | None = None

    @model_validator(mode="before")
    @classmethod
    def _old_spellings(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("pass_value") is not None and data.get("pass_op") is None and "op" in data:
            data = {**data, "pass_op": data["op"]}
        for old, new in OLD_SPELLINGS.items():
            if old in data and new in data:
                raise ValueError(f"`{old}` is an old spelling of `{new}`; give one of them")
            data = {new if key == old else key: value for key, value in data.items()}
        return {key: value for key, value in data.items() if not (key == "pass_op" and value is None)}

    @field_validator("confidence")
    @classmethod
    def _has_an_interval(cls, confidence: float | None, info: ValidationInfo) -> float | None:
        why = None if confidence is None else no_interval(info.data.get("aggregation"), info.data.get("op"))
        if why:
            raise ValueError(why)
        return confidence


class WeightedAverageGate(_Evidence):
    """A condition on the weighted mean of several metrics, each aggregated alike. Weights are normalised; 0 is one."""

    kind: Literal["weighted_average"]
    aggregation: Aggregation = Aggregation.AVG_SCORE
    weights: dict[str, Annotated[Number, Field(ge=0)]] = Field(min_length=1)
    op: Operator
    value: Number
    pass_threshold: Number | None = None
    confidence: Confidence | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_baseline(cls, data: Any) -> Any:
        if isinstance(data, dict) and "baseline" in data:
            raise ValueError("`baseline` compares one metric; write it as a condition of a logical gate, beside this")
        return data

    @field_validator("confidence")
    @classmethod
    def _has_an_interval(cls, confidence: float | None, info: ValidationInfo) -> float | None:
        why = None if confidence is None else no_weighted_interval(info.data.get("aggregation"), info.data.get("op"))
        if why:
            raise ValueError(why)
        return confidence

    @model_validator(mode="after")
    def _some_weight(self) -> WeightedAverageGate:
        if not any(self.weights.values()):
            raise ValueError("all `weights` are 0; at least one must be greater")
        return self


class LogicalGate(_Evidence):
    """Several conditions, of which all (`and`) or one (`or`) must hold.

    `confidence` and what is said of the data hold for each condition that says nothing else.
    """

    kind: Literal["logical"]
    operator: Literal["and", "or"]
    conditions: list[Gate] = Field(min_length=1)
    confidence: Confidence | None = None

    @model_validator(mode="after")
    def _all_have_intervals(self) -> LogicalGate:
        for condition in leaves(self):
            if not isinstance(condition, BaselineGate) and condition.confidence is not None:
                weighted = isinstance(condition, WeightedAverageGate)
                why = (no_weighted_interval if weighted else no_interval)(condition.aggregation, condition.op)
                if why:
                    raise ValueError(f"`confidence` holds for all conditions, but {why}")
        return self

    @property
    def full_conditions(self) -> list[Gate]:
        """The conditions, each with what this gate says for all of them."""
        return [_handed_down(self, condition) for condition in self.conditions]


OLD_SPELLINGS = {"metric": "aggregation", "pass_value": "pass_threshold"}
"""Fields of older suite files, and what they are called now."""


def _add_old_spellings(schema: dict[str, Any]) -> None:
    for old, new in OLD_SPELLINGS.items():
        told = {"deprecated": True, "description": f"The old spelling of `{new}`."}
        schema["properties"][old] = {**schema["properties"][new], "default": None, "title": old, **told}


def _handed_down(gate: LogicalGate, condition: Gate) -> Gate:
    names = [name for name in ("confidence", *_Evidence.model_fields) if name in type(condition).model_fields]
    said = {name: getattr(gate, name) for name in names if getattr(condition, name) is None}
    return condition.model_copy(update={name: value for name, value in said.items() if value is not None})


def _kind(value: Any) -> Any:
    if isinstance(value, dict):
        alone = value.get("baseline") is not None and "op" not in value and "value" not in value
        return value.get("kind", "baseline" if alone else "simple")
    return getattr(value, "kind", None)


_WRONG_KIND = "`kind` must be simple, logical, weighted_average or baseline, and a gate a mapping"


Gate = Annotated[
    Annotated[SimpleGate, Tag("simple")]
    | Annotated[LogicalGate, Tag("logical")]
    | Annotated[WeightedAverageGate, Tag("weighted_average")]
    | Annotated[BaselineGate, Tag("baseline")],
    Discriminator(
        _kind,
        custom_error_type="gate_kind",
        custom_error_message=_WRONG_KIND,
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


class BaselineEntry(_Entry, BaselineGate):
    """A comparison with an earlier run as it stands in a suite file."""


GateEntry = Annotated[
    Annotated[SimpleEntry, Tag("simple")]
    | Annotated[LogicalEntry, Tag("logical")]
    | Annotated[WeightedAverageEntry, Tag("weighted_average")]
    | Annotated[BaselineEntry, Tag("baseline")],
    Discriminator(
        _kind,
        custom_error_type="gate_kind",
        custom_error_message=_WRONG_KIND,
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
    names: list[str | None] = []
    for condition in leaves(gate):
        match condition:
            case WeightedAverageGate():
                names += condition.weights
            case SimpleGate():
                names.append(condition.metric_key)
            case BaselineGate() if condition.metric is not None:
                names.append(condition.metric)
    return tuple(dict.fromkeys(names))


def leaves(gate: Gate | NamedGate) -> Iterator[SimpleGate | WeightedAverageGate | BaselineGate]:
    """The conditions in a gate that look at metrics, each with what a gate around it says for all of them.

    A simple condition with a `baseline` is two: itself without it, and the comparison.
    """
    match gate:
        case NamedGate():
            yield from leaves(gate.gate)
        case LogicalGate():
            for condition in gate.full_conditions:
                yield from leaves(condition)
        case SimpleGate():
            yield from parts(gate)
        case _:
            yield gate


def parts(gate: SimpleGate) -> list[SimpleGate | BaselineGate]:
    """A simple condition, and the comparison with a baseline beside it where there is one."""
    if gate.baseline is None:
        return [gate]
    alone = gate.model_copy(update={"baseline": None})
    return [alone, ComparisonBeside.model_validate({name: getattr(gate, name) for name in _SHARED} | {"op": gate.op})]


class ComparisonBeside(BaselineGate):
    """The comparison that stands beside a simple condition: where that wants little, a rise is the loss."""

    op: Operator

    @property
    def small_is_good(self) -> bool:
        """Whether a rise is the loss."""
        return self.op.wants_small


_SHARED = ("metric_key", "baseline", *_Evidence.model_fields)


def with_paths_below(gates: Sequence[NamedGate], directory: Path) -> tuple[NamedGate, ...]:
    """The gates with the paths of baselines and checks of judges made absolute; relative ones lie below `directory`."""
    return tuple(gate.model_copy(update={"gate": _below(gate.gate, directory)}) for gate in gates)


def _below(gate: Gate, directory: Path) -> Gate:
    if gate.judge_check is not None:
        check = directory / Path(gate.judge_check).expanduser()
        gate = gate.model_copy(update={"judge_check": str(check)})
    match gate:
        case LogicalGate():
            return gate.model_copy(
                update={"conditions": [_below(condition, directory) for condition in gate.conditions]}
            )
        case SimpleGate(baseline=Baseline() as baseline) | BaselineGate(baseline=baseline):
            place = directory / Path(baseline.results).expanduser()
            return gate.model_copy(update={"baseline": baseline.model_copy(update={"results": str(place)})})
    return gate


_FIELD: TypeAdapter[Any] = TypeAdapter(GateField)


def _named(entry: SimpleEntry | LogicalEntry | WeightedAverageEntry | BaselineEntry) -> NamedGate:
    gate = {name: value for name, value in entry if name not in _Entry.model_fields}
    return NamedGate.model_validate({"gate": gate, "name": entry.name, "on_fail": entry.on_fail, "where": entry.where})
