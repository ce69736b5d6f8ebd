"""A suite's set-up and tear-down functions."""

from __future__ import annotations

import asyncio
import inspect

from stateval.deadline import is_cancelled
from stateval.errors import SetupError
from stateval.running.plan import RunPlan, Script
from stateval.threads import in_thread


async def run_script(script: Script | None, plan: RunPlan) -> None:
    """Calls the function, if there is one. Raises SetupError where it raises.

    A function with `client` gets None: targets without a Letta server have no client to hand out.
    """
    if script is None:
        return
    calls: list[tuple[str | None, ...]] = [(None,) * script.parameters]
    if script.parameters == 2:
        calls = [(None, model.model_handle) for model in plan.models]
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
