"""Names of `letta_evals.rewards`, served by stateval."""

from stateval.compat.letta_evals.rewards import *  # noqa: F403
