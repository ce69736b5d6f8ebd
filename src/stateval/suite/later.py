"""Words of a suite file that belong to later releases: refused with what there is instead, never ignored."""

from __future__ import annotations

_AGENTS = "runs agents in this process, as targets of kind `python` and `local_agent`"
_TOOL = "grades with `kind: tool`"

SUITE = {
    "backend": _AGENTS,
    "sandbox": _AGENTS,
    "controls": "runs every sample once per run as it is",
    "judge": _TOOL,
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

_OF_JUDGES = (
    *("agent_file", "agent_id", "criteria", "criteria_per_call", "judge_tool_name", "judges", "max_retries", "model"),
    *("policy", "prompt", "prompt_path", "provider", "rubric_vars", "scale", "system_prompt", "temperature", "timeout"),
    "votes",
)
GRADER = dict.fromkeys(_OF_JUDGES, _TOOL)

KINDS = {
    **dict.fromkeys(("agent", "letta_agent", "letta_code"), _AGENTS),
    **dict.fromkeys(("model_judge", "rubric", "letta_judge", "state", "trajectory"), _TOOL),
}


def refusal(word: str, instead: str) -> str:
    """The sentence that refuses a word and says what there is instead."""
    return f"`{word}` is not in this release of stateval; this release {instead}"
