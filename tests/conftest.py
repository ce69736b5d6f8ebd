"""Fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.evaltester import EvalTester

settings.register_profile("stateval", deadline=None)  # no test asserts how long anything takes
settings.load_profile("stateval")


@pytest.fixture
def evaltester(tmp_path: Path) -> EvalTester:
    """A directory of its own in which a test writes a suite, runs the real command and reads the results."""
    return EvalTester(tmp_path)


@pytest.fixture(autouse=True)
def own_answer_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of judges are kept for one test alone: scripted servers say other things under the same name."""
    place = tmp_path_factory.mktemp("answers") / "judge-answers.sqlite3"
    monkeypatch.setenv("STATEVAL_JUDGE_CACHE", str(place))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs everything that stands on real servers, which therefore start once; all else goes anywhere."""
    from xdist.scheduler import LoadScopeScheduling

    class OneWorkerForServers(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "servers" if nodeid.startswith("tests/integration/") else nodeid

    return OneWorkerForServers(config, log)
