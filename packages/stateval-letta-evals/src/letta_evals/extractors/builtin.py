"""Names of `letta_evals.extractors.builtin`, served by stateval."""

from stateval.compat.letta_evals.extractors.builtin import *  # noqa: F403
