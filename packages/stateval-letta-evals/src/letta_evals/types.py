"""Names of `letta_evals.types`, served by stateval."""

from stateval.compat.letta_evals.types import *  # noqa: F403
