"""Words of a suite file that belong to later releases: refused with what there is instead, never ignored."""

from __future__ import annotations

_AGENTS = "runs agents as targets of kind `letta_agent`, `local_agent` and `python`"
_GRADERS = "grades with `kind: tool`, `kind: model_judge` and `kind: letta_judge`"

SUITE = {
    "sandbox": _AGENTS,
    "controls": "runs every sample once per run as it is",
}

TARGET = {
    "allowed_tools": _AGENTS,
    "backend": _AGENTS,
    "disallowed_tools": _AGENTS,
    "flags": _AGENTS,
    "memory_dir": _AGENTS,
    "memory_workspace": _AGENTS,
    "model_configs": "names models in `model_handles`",
    "permission_mode": _AGENTS,
    "pricing": "takes costs from what an agent reports in `usage()`",
    "sandbox": _AGENTS,
    "skills_dir": _AGENTS,
    "turns": "sends turn by turn in one conversation",
    "use_agent_model": _AGENTS,
    "working_dir": _AGENTS,
}

GRADER = {"policy": _GRADERS}

KINDS = {
    "letta_code": _AGENTS,
    **dict.fromkeys(("state", "trajectory"), _GRADERS),
}


def refusal(word: str, instead: str) -> str:
    """The sentence that refuses a word and says what there is instead."""
    return f"`{word}` is not in this release of stateval; this release {instead}"
