"""From what a suite file says of a judge to its settings and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stateval.errors import UsageError
from stateval.graders.judging import Criterion, JudgeModel, JudgeSettings
from stateval.graders.judging.prompt import Prompts
from stateval.records.sample import Sample
from stateval.suite.grader_spec import JudgeSpec, LettaJudgeSpec, ModelJudgeSpec
from stateval.suite.yaml_text import Path as FieldPath

_WHERE = ("provider", "base_url", "api_key")
_SAME = {"gemini": "google"}
_PROVIDERS = ("anthropic", "embedded", "gemini", "google", "litellm", "openai")


def judge_settings(spec: ModelJudgeSpec, directory: Path) -> JudgeSettings:
    """What is judged. Raises UsageError where the file of the rubric cannot be read or is empty."""
    return JudgeSettings(
        prompt=_prompt(spec, directory),
        criteria={name: Criterion(one.weight, one.description) for name, one in spec.all_criteria.items()},
        system_prompt=spec.system_prompt,
        rubric_vars=None if spec.rubric_vars is None else tuple(spec.rubric_vars),
        votes=spec.votes,
        scale=spec.scale,
        criteria_per_call=spec.criteria_per_call,
    )


def letta_judge_settings(spec: LettaJudgeSpec, directory: Path) -> JudgeSettings:
    """What a Letta agent judges. Raises UsageError where the file of the rubric cannot be read or is empty."""
    names = None if spec.rubric_vars is None else tuple(spec.rubric_vars)
    settings = JudgeSettings(prompt=_prompt(spec, directory), rubric_vars=names)
    settings.require_valid()
    return settings


def _prompt(spec: ModelJudgeSpec | LettaJudgeSpec, directory: Path) -> str | None:
    if spec.prompt_path is None:
        return spec.prompt
    return _read_prompt(directory / Path(spec.prompt_path).expanduser())


def judge_models(
    spec: ModelJudgeSpec, place: FieldPath, default: JudgeSpec | None
) -> Iterator[tuple[FieldPath, JudgeModel]]:
    """The judges of a grader, each with the place that names it; the suite's `default` fills in what is not said."""
    shared, own = default.said() if default else {}, spec.said()
    if spec.judges is None:
        where: FieldPath = ("judge", "model") if "model" in shared and "model" not in own else (*place, "model")
        yield where, JudgeModel(**_over(shared, own))
        return
    shared.pop("model", None)
    for position, judge in enumerate(spec.judges):
        said = {"model": judge} if isinstance(judge, str) else judge.said()
        yield (*place, "judges", position), JudgeModel(**_over(_over(shared, own), said))


class RubricCheck:
    """Looks at rows in the place of a judge whose model cannot be had here."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._prompts = Prompts(settings)

    def check(self, sample: Sample) -> str | None:
        """What this sample lacks for the rubric, or None."""
        has_truth = sample.ground_truth is not None or sample.turn_truths is not None
        return self._prompts.problem(sample, has_truth=has_truth)


def _over(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of one judge over what is said of all; a key only goes to the endpoint that it was given for."""
    prefix = _prefix(own)
    provider = _SAME.get(own.get("provider") or prefix or "", own.get("provider") or prefix)
    if provider is not None and provider != _provider(shared):
        dropped: tuple[str, ...] = _WHERE
    else:
        dropped = ("provider",) if prefix is not None else ()
        dropped += ("api_key",) if own.get("base_url", shared.get("base_url")) != shared.get("base_url") else ()
    return {**{name: value for name, value in shared.items() if name not in dropped}, **own}


def _provider(said: Mapping[str, Any]) -> str:
    named = said.get("provider") or _prefix(said) or "openai"
    return _SAME.get(named, named)


def _prefix(said: Mapping[str, Any]) -> str | None:
    """The provider in a model's name, where none is given beside it."""
    prefix, slash, _ = str(said.get("model", "")).partition("/")
    return prefix if slash and prefix in _PROVIDERS and not said.get("provider") else None


def _read_prompt(path: Path) -> str:
    try:
        prompt = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}; a path is relative to the suite file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: the text is not UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path}: the file cannot be read: {error.strerror}") from None
    if not prompt.strip():
        raise UsageError(f"{path} is empty; write what is asked of the submission")
    return prompt
