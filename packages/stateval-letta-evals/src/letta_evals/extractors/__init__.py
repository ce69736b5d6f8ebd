"""Names of `letta_evals.extractors`, served by stateval."""

from stateval.compat.letta_evals.extractors import *  # noqa: F403
