"""Letta servers that the tests share, and what is needed to talk with them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.integration.environments import RELEASES, Unreachable
from tests.integration.letta_servers import RunningServer, letta_server
from tests.integration.scripted_agent import speaks
from tests.support.model_server import ModelServer


@pytest.fixture(scope="session")
def _servers() -> Iterator[dict[str, Future[RunningServer]]]:
    """Both releases, installed and started beside each other."""
    if sys.platform != "linux":
        pytest.skip("the Letta servers are installed from Linux's requirements")
    with ExitStack() as stack, ThreadPoolExecutor(len(RELEASES)) as threads:

        def started(release: str) -> RunningServer:
            model = stack.enter_context(ModelServer(speaks, models=("scripted", "other")))
            return stack.enter_context(letta_server(release, model))

        yield {release: threads.submit(started, release) for release in RELEASES}


@pytest.fixture(params=RELEASES)
def server(request: pytest.FixtureRequest, _servers: dict[str, Future[RunningServer]]) -> RunningServer:
    """A running Letta server of each release. Its model is asked nothing yet, and speaks as `scripted_agent` says."""
    try:
        running = _servers[request.param].result()
    except Unreachable as error:
        pytest.skip(str(error))
    running.model.answers = speaks
    running.model.requests.clear()
    return running
