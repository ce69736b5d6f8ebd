"""Extractors bound to their settings, as the runner calls them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from stateval.errors import ExtractionError, UsageError
from stateval.extractors.builtin import BUILTIN, BuiltinExtractor
from stateval.extractors.memory import state_at
from stateval.letta.messages import letta_state, letta_trajectory, wants_letta_classes
from stateval.loading.calling import call_user, own_copy
from stateval.loading.fingerprint import digest_of_module, fingerprint_of
from stateval.loading.options import Options, read_options
from stateval.loading.registry import unknown_name
from stateval.loading.siblings import packages_imported_for
from stateval.loading.user_code import LoadedFunction
from stateval.records.encoding import plain
from stateval.records.protocols import Extraction, Extractor, Needs
from stateval.records.rollout import Rollout
from stateval.threads import in_thread

_OPTIONAL = ("agent_state", "context")


def make_extractor(
    function: str | BuiltinExtractor | LoadedFunction | Callable[..., Any], config: Mapping[str, Any] | None = None
) -> Extractor:
    """An extractor with its settings.

    Args:
        function: the name of a built-in one, or a function `(trajectory, config) -> str` whose further parameters may
            be `agent_state` and `context`.
        config: its settings.

    Raises UsageError for an unknown name, an unknown, missing or wrong setting, or a function of another signature.
    """
    if isinstance(function, str):
        if function not in BUILTIN:
            raise UsageError(unknown_name("extractor", function, list(BUILTIN)))
        function = BUILTIN[function]
    if isinstance(function, BuiltinExtractor):
        return BoundExtractor(function, read_options(function.options, config, f"extractor `{function.name}`"))
    builtin = next((b for b in BUILTIN.values() if b.function is function), None)
    if builtin is not None:
        return make_extractor(builtin, config)
    if isinstance(function, LoadedFunction):
        letta = wants_letta_classes(function.imports)
        return CustomExtractor(function.function, function.reference, function.fingerprint, config or {}, letta=letta)
    name = getattr(function, "__name__", type(function).__name__)
    letta = wants_letta_classes(packages_imported_for(function))
    return CustomExtractor(function, name, fingerprint_of(function), config or {}, letta=letta)


class BoundExtractor:
    """A built-in extractor with its settings."""

    def __init__(self, builtin: BuiltinExtractor, options: Options) -> None:
        self.name = builtin.name
        self.needs = builtin.needs if getattr(options, "turn", None) is None else Needs.EVERY_TURN
        self._builtin = builtin
        self._function, self._take, self._slow = builtin.function, builtin.take, builtin.slow
        self._options = options

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The name, the settings, and the source of the module it is written in."""
        digest = digest_of_module(self._builtin.function.__module__)
        return {"extractor": self.name, "config": self._options.model_dump(), "sha256": digest}

    async def extract(self, rollout: Rollout) -> Extraction:
        """The submission. Raises ExtractionError where there is no message at all, or no state where one is needed."""
        _require_messages(rollout)
        if self._take is not None:
            return self._take(rollout, self._options)
        if self._slow:
            return Extraction(await in_thread(self._function, rollout.trajectory, self._options))
        return Extraction(self._function(rollout.trajectory, self._options))


class CustomExtractor:
    """A user's function with its settings. With `letta` it is handed messages and states of `letta_client`.

    Raises UsageError where the function cannot be called as an extractor.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        fingerprint: Mapping[str, Any],
        config: Mapping[str, Any],
        *,
        letta: bool = False,
    ) -> None:
        self.name = name
        self._letta = letta
        self._function = function
        self._config = config
        self._fingerprint = fingerprint
        self._optional = _optional_parameters(function, name)
        turn = config.get("turn")
        self._turn = turn if isinstance(turn, int) and not isinstance(turn, bool) else None
        looks_at_state = "agent_state" in self._optional
        self.needs = Needs.NOTHING if not looks_at_state else Needs.STATE if self._turn is None else Needs.EVERY_TURN

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The function's reference and source, and the settings."""
        return {"extractor": dict(self._fingerprint), "config": plain(self._config)}

    async def extract(self, rollout: Rollout) -> Extraction:
        """What the function returns. Raises ExtractionError where it raises, or returns something that is no text."""
        _require_messages(rollout)
        keywords = {name: self._argument(name, rollout) for name in self._optional}
        who = f"extractor `{self.name}`"
        config = copy.deepcopy(dict(self._config))
        trajectory = letta_trajectory(rollout.trajectory) if self._letta else own_copy(rollout.trajectory)
        found = await call_user(self._function, ExtractionError, who, trajectory, config, **keywords)
        if isinstance(found, Extraction):
            return _checked(found, who)
        if not isinstance(found, str):
            advice = "return text, for instance with `json.dumps`" if found is not None else "is a `return` missing?"
            raise ExtractionError(f"{who} returned a {type(found).__name__}, not text; {advice}")
        return Extraction(str(found))

    def _argument(self, name: str, rollout: Rollout) -> Any:
        if name == "context":
            return own_copy(rollout.context)
        needs_it = self._optional[name] is inspect.Parameter.empty or self._turn is not None
        state = state_at(rollout, self._turn) if needs_it else rollout.agent_state
        return letta_state(state) if self._letta else own_copy(state)


def _checked(found: Extraction, who: str) -> Extraction:
    if not isinstance(found.submission, str):
        raise ExtractionError(f"{who} returned an Extraction of a {type(found.submission).__name__}, not of text")
    if not isinstance(found.metadata, Mapping):
        raise ExtractionError(f"{who} returned `metadata` that is a {type(found.metadata).__name__}, not a dict")
    try:
        return Extraction(str(found.submission), plain(found.metadata))
    except ValueError as error:
        raise ExtractionError(f"{who} returned `metadata` that {error}") from None


def _optional_parameters(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """The parameters after the first two by name, with their defaults."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise UsageError(f"extractor `{name}` cannot be called as a function (trajectory, config)") from None
    further = {parameter.name: parameter.default for parameter in parameters[2:]}
    if len(parameters) < 2 or not set(further) <= set(_OPTIONAL):
        names = ", ".join(parameter.name for parameter in parameters)
        raise UsageError(
            f"extractor `{name}` takes ({names}); it must take (trajectory, config), "
            "optionally followed by `agent_state` and `context`"
        )
    return further


def _require_messages(rollout: Rollout) -> None:
    if not rollout.has_messages:
        raise ExtractionError("the trajectory has no message at all: there is nothing to extract from")
