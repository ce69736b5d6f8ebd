"""The command `stateval`: one thin file a command; it parses, calls, prints and exits."""

from __future__ import annotations

from stateval.cli.main import main

__all__ = ["main"]
