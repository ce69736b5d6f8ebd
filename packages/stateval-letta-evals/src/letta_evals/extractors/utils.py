"""Names of `letta_evals.extractors.utils`, served by stateval."""

from stateval.compat.letta_evals.extractors.utils import *  # noqa: F403
