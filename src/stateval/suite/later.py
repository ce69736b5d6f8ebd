"""Words of a suite file that belong to later releases: refused with what there is instead, never ignored."""

from __future__ import annotations

_AGENTS = "runs agents in this process, as targets of kind `python` and `local_agent`"
_GRADERS = "grades with `kind: tool` and `kind: model_judge`"

SUITE = {
    "backend": _AGENTS,
    "sandbox": _AGENTS,
    "controls": "runs every sample once per run as it is",
    "token_data": "keeps token counts in `usage`",
}

TARGET = {
    "agent_id": _AGENTS,
    "agent_script": "takes a factory: `kind: python` and `factory: file.py:function`",
    "allowed_tools": _AGENTS,
    "backend": _AGENTS,
    "disallowed_tools": _AGENTS,
    "flags": _AGENTS,
    "memory_dir": _AGENTS,
    "memory_workspace": _AGENTS,
    "model_configs": "names models in `model_handles`",
    "permission_mode": _AGENTS,
    "pricing": "takes costs from what an agent reports in `usage()`",
    "project_id": _AGENTS,
    "sandbox": _AGENTS,
    "skills_dir": _AGENTS,
    "turns": "sends turn by turn in one conversation",
    "use_agent_model": _AGENTS,
    "working_dir": _AGENTS,
}

GRADER = dict.fromkeys(("agent_file", "agent_id", "judge_tool_name", "policy"), _GRADERS)

KINDS = {
    **dict.fromkeys(("agent", "letta_agent", "letta_code"), _AGENTS),
    **dict.fromkeys(("letta_judge", "state", "trajectory"), _GRADERS),
}


def refusal(word: str, instead: str) -> str:
    """The sentence that refuses a word and says what there is instead."""
    return f"`{word}` is not in this release of stateval; this release {instead}"
