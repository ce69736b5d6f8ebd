"""Names of `letta_evals.graders.builtin`, served by stateval."""

from stateval.compat.letta_evals.graders.builtin import *  # noqa: F403
