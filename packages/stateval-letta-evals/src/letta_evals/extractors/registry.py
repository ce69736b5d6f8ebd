"""Names of `letta_evals.extractors.registry`, served by stateval."""

from stateval.compat.letta_evals.extractors.registry import *  # noqa: F403
