"""The command `letta-evals`, which is `stateval`."""

from stateval.cli import main

__all__ = ["main"]
