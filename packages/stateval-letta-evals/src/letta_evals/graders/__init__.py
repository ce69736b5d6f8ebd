"""Names of `letta_evals.graders`, served by stateval."""

from stateval.compat.letta_evals.graders import *  # noqa: F403
