"""Which parameters a model at an endpoint refuses: learnt once, by whoever calls first, and left out from then on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Set
from typing import Any, TypeVar

from anyio import NoEventLoopError
from anyio.lowlevel import RunVar

from stateval.errors import ModelError
from stateval.llm.provider_errors import refused_parameter

_T = TypeVar("_T")

logger = logging.getLogger(__name__)

_learnt: RunVar[dict[tuple[str, str], set[str]]] = RunVar("stateval_refused_parameters")


def refused_at(endpoint: str, model: str) -> Set[str]:
    """What this model is known to refuse in the running event loop; nothing outside of one."""
    try:
        return _learnt.get({}).get((endpoint, model), frozenset())
    except NoEventLoopError:
        return frozenset()


async def without_refused(
    endpoint: str,
    model: str,
    parameters: Callable[[Set[str]], Mapping[str, Any]],
    send: Callable[[Mapping[str, Any]], Awaitable[_T]],
) -> _T:
    """What `send` returns for the parameters that the model takes.

    Args:
        parameters: the request without the parameters that are handed to it.
        send: one call. Where it raises an error that blames a parameter which was sent, it is called again without.

    `tools` are never left out of a request that has some: that error goes on, and the caller asks in another way.
    """
    while True:
        left_out = frozenset(refused_at(endpoint, model))
        sent = parameters(left_out)
        try:
            return await send(sent)
        except ModelError as error:
            refused = refused_parameter(error, sent)
            if refused is None or refused in left_out:
                raise
            _learn(endpoint, model, refused, error)
            if refused == "tools":
                raise


def _learn(endpoint: str, model: str, refused: str, error: ModelError) -> None:
    try:
        learnt = _learnt.get()
    except LookupError:
        learnt = {}
        _learnt.set(learnt)
    known = learnt.setdefault((endpoint, model), set())
    if refused not in known:
        known.add(refused)
        logger.warning("model `%s` refuses `%s` and goes on without it (%s)", model, refused, error)
