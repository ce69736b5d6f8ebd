"""The names of letta-evals, served by stateval. This package cannot stand beside the original."""

from stateval.compat.letta_evals import *  # noqa: F403
from stateval.compat.letta_evals import __all__ as __all__
from stateval.compat.letta_evals import __version__ as __version__
