"""Names of `letta_evals.models`, served by stateval."""

from stateval.compat.letta_evals.models import *  # noqa: F403
