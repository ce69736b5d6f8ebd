"""Names of `letta_evals.decorators`, served by stateval."""

from stateval.compat.letta_evals.decorators import *  # noqa: F403
