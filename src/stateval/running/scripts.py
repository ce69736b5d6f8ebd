"""A suite's set-up and tear-down functions."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from stateval.deadline import is_cancelled
from stateval.errors import SetupError
from stateval.running.plan import RunPlan, Script
from stateval.threads import in_thread


async def run_script(script: Script | None, plan: RunPlan) -> None:
    """Calls the function, if there is one. Raises SetupError where it raises.

    A function of (client) gets the client of the first target that is on a Letta server, one of (client, model handle)
    that of each model's target; None where a target has no server.
    """
    if script is None:
        return
    clients = [getattr(model.target, "client", None) for model in plan.models] if script.parameters else []
    calls: list[tuple[Any, ...]] = [()]
    if script.parameters == 1:
        calls = [(next((client for client in clients if client is not None), None),)]
    elif script.parameters == 2:
        calls = [(client, model.model_handle) for client, model in zip(clients, plan.models, strict=True)]
    for arguments in calls:
        try:
            if inspect.iscoroutinefunction(script.function):
                await script.function(*arguments)
            else:
                await in_thread(script.function, *arguments)
        except BaseException as error:
            if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and is_cancelled()):
                raise
            told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise SetupError(f"`{script.reference}` raised {told}") from error
