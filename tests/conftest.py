"""Fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.evaltester import EvalTester


@pytest.fixture
def evaltester(tmp_path: Path) -> EvalTester:
    """A directory of its own in which a test writes a suite, runs the real command and reads the results."""
    return EvalTester(tmp_path)
