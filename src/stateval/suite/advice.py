"""What `validate` says of a suite that would run but could measure better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from stateval import graders
from stateval.gates import baseline_uses, gate_warnings, judge_check_uses, parse_gates, with_paths_below
from stateval.records.encoding import json_text
from stateval.records.sample import Sample, SimulatedInput
from stateval.running.plan import GraderBinding
from stateval.suite.grader_spec import ToolGraderSpec
from stateval.suite.judge_advice import on_judges
from stateval.suite.load import LoadedSuite
from stateval.suite.spec import LocalAgentTargetSpec, SuiteSpec

_WHOLE_REPLIES = ("last_assistant", "first_assistant", "all_assistant", "last_turn")
_OF_BLOCKS = ("memory_block", "memory_diff")


class Survey:
    """What the rows are like, found while they are checked: `look` is one of the checks of `check_rows`.

    Args:
        bindings: the metrics whose truths are looked at.
        spec: what the suite says of them.
    """

    def __init__(self, bindings: tuple[GraderBinding, ...], spec: SuiteSpec) -> None:
        self._bindings = bindings
        self._graders = spec.all_graders
        self._risky: dict[str, tuple[int, str, str]] = {}
        self.samples = 0
        self.longest = 0
        self.tags: set[str] = set()

    def look(self, sample: Sample) -> None:
        """Counts this sample; it never complains."""
        self.samples += 1
        self.tags.update(sample.tags)
        if not isinstance(sample.input, SimulatedInput):
            self.longest = max(self.longest, len(sample.user_turns))
        for binding in self._bindings:
            why = next(self._risks(binding, sample), None)
            if why is not None:
                count, first, reason = self._risky.get(binding.key, (0, sample.key, why))
                self._risky[binding.key] = (count + 1, first, reason)

    @property
    def strict_truths(self) -> list[str]:
        """For each metric with truths that seldom measure what is meant, how many and why."""
        return [
            f"metric `{key}`: the truth of {count} of {self.samples} samples is risky; that of `{first}`: {reason}"
            for key, (count, first, reason) in self._risky.items()
        ]

    def _risks(self, binding: GraderBinding, sample: Sample) -> Iterator[str]:
        spec = self._graders[binding.key]
        if not isinstance(spec, ToolGraderSpec):
            return
        for truth in _truths(binding.view(sample)):
            why = graders.risky_truth(spec.function, spec.grader_config, truth)
            if why is not None:
                yield why


def advice(loaded: LoadedSuite, survey: Survey) -> list[str]:
    """What would make the suite say more, one sentence each."""
    spec = loaded.spec
    gates = parse_gates(spec.gate)
    keys = list(spec.all_graders)
    return [
        *(
            warning
            for gate in gates
            for warning in gate_warnings(gate, keys, samples=survey.samples, on_error=spec.on_error)
        ),
        *_unused(spec),
        *survey.strict_truths,
        *_on_turns(survey),
        *_on_replies(spec),
        *on_judges(spec, gates),
        *([] if gates else ["there is no gate: the run reports and always passes"]),
        *([] if spec.split else ["there is no hold-out: tune on one part of the rows, report the other (`split`)"]),
    ]


def warnings(loaded: LoadedSuite, survey: Survey) -> list[str]:
    """What the suite asks for in vain: tags that no row has, blocks that no agent has, runs that are not there."""
    return [*_missing_tags(loaded.spec, survey), *_missing_blocks(loaded), *_missing_files(loaded)]


def _missing_tags(spec: SuiteSpec, survey: Survey) -> Iterator[str]:
    for gate in parse_gates(spec.gate):
        tags = gate.where.tags if gate.where else []
        missing = [tag for tag in tags if tag not in survey.tags]
        name = f" `{gate.name}`" if gate.name else ""
        never = "; so it can never be decided" if missing == tags else ""
        for tag in missing:
            nearest = _nearest(tag, sorted(survey.tags), "no row has any")
            yield f"gate{name}: no row has the tag `{tag}` of its `where` ({nearest}){never}"


def _missing_blocks(loaded: LoadedSuite) -> Iterator[str]:
    wanted = {
        key: str(label)
        for key, grader in loaded.spec.all_graders.items()
        if grader.extractor in _OF_BLOCKS and (label := (grader.extractor_config or {}).get("block_label")) is not None
    }
    for target in loaded.spec.all_targets:
        if not isinstance(target, LocalAgentTargetSpec):
            continue
        labels = _labels(target, loaded)
        name = f" of the target `{target.name}`" if target.name else ""
        for key, label in wanted.items():
            if label not in labels:
                nearest = _nearest(label, labels, "it has none")
                yield f"metric `{key}`: the agent{name} has no memory block `{label}` ({nearest})"


def _missing_files(loaded: LoadedSuite) -> Iterator[str]:
    gates = with_paths_below(parse_gates(loaded.spec.gate), loaded.directory)
    keys = list(loaded.spec.all_graders)
    for place in dict.fromkeys(use.baseline.results for use in baseline_uses(gates, keys)):
        if not Path(place).exists():
            yield f"the baseline {place} does not exist: make it by a run without `baseline`"
    for place in dict.fromkeys(use.file for use in judge_check_uses(gates, keys)):
        if not Path(place).exists():
            yield f"the check of the judge {place} does not exist: `stateval judge check` writes it"


def _labels(target: LocalAgentTargetSpec, loaded: LoadedSuite) -> list[str]:
    if target.agent is not None:
        return list(target.agent.blocks)
    from stateval.targets.agent_file import read_agent_file

    path = loaded.directory / Path(target.agent_file or "").expanduser()
    return list(read_agent_file(path, allow_tools=target.allow_tools).definition.blocks)


def _nearest(word: str, known: Sequence[str], none: str) -> str:
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"there are {', '.join(f'`{name}`' for name in known)}" if known else none


def _unused(spec: SuiteSpec) -> Iterator[str]:
    takes_it = any(isinstance(target, LocalAgentTargetSpec) for target in spec.all_targets)
    if spec.generation is not None and not takes_it:
        yield "`generation` changes nothing: targets of kind `python` choose their model's settings themselves"


def _on_turns(survey: Survey) -> Iterator[str]:
    if survey.samples and survey.longest <= 1:
        yield (
            "every sample has a single turn: memory shows where something is told, corrected, and asked for "
            "later (`input` as a list, `new_conversation` in it)"
        )


def _on_replies(spec: SuiteSpec) -> Iterator[str]:
    whole = [key for key, grader in spec.all_graders.items() if grader.extractor in _WHOLE_REPLIES]
    if len(whole) == len(spec.all_graders):
        yield (
            f"only whole replies are graded ({', '.join(f'`{key}`' for key in whole)}): an extractor such as "
            "`memory_block` or `tool_calls` shows what the agent stored and did"
        )


def _truths(sample: Sample) -> Iterator[str]:
    expected = sample.expected if isinstance(sample.expected, list) else [sample.expected]
    truth = sample.ground_truth if isinstance(sample.ground_truth, list) else [sample.ground_truth]
    yield from (json_text(value) for value in (*truth, *expected) if isinstance(value, str | int | float))
