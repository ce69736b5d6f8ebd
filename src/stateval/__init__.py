"""stateval: find out whether an agent that has memory really remembers, corrects itself and keeps to its policy."""

from __future__ import annotations

__version__ = "0.1.0"
