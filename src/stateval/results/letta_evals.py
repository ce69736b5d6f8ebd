"""Results directories of letta-evals, of both eras. They are read and never changed.

The reward era (0.17 and later)          DIR/suite.json, DIR/summary.json, DIR/<model>.jsonl; for several runs
                                         DIR/<model>/run_<n>.jsonl
The gate era (0.2 to 0.16)               DIR/header.json, DIR/summary.json, DIR/results.jsonl; for several runs
                                         DIR/run_<n>/ with these, and DIR/aggregate_stats.json

Hashes of what these runs stand on begin with `letta-evals`: they are of the configuration alone, since neither the
code of graders nor what a judge's server does is in it, and compare with no others.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stateval.errors import ResultsError
from stateval.records.encoding import dump_json, load_json
from stateval.records.sample import Sample
from stateval.results.files import DEFAULT_LABEL, Facts, LinesFile, ResultsFiles, whole_lines
from stateval.results.letta_evals_lines import line_of, sample_of
from stateval.results.run_record import RunInputs

CONFIGURATION_ONLY = "letta-evals:"
"""How the hashes begin that say only that the configuration is the same."""

_RUN = re.compile(r"run_(\d+)")
_PLACES = {"base_dir", "prompt_path", "agent_file", "display_name"}
_SAMPLES_BEGIN = re.compile(rb'^  "samples": \[\s*$')


def letta_evals_results(path: Path) -> ResultsFiles | None:
    """The results of letta-evals in this directory, or None where there are none. Raises ResultsError for damage."""
    header = next((file for file in (path / "header.json", path / "run_1" / "header.json") if file.is_file()), None)
    gate_era = _gate_era_files(path)
    if gate_era:
        return ResultsFiles(path, gate_era, gate_era_facts(header, gate_era[0].path))
    suite = path / "suite.json"
    if not suite.is_file():
        return None
    facts, handles = reward_era_facts(suite)
    files = _reward_era_files(path, handles)
    return ResultsFiles(path, files, facts) if files else None


def reward_era_facts(suite: Path) -> tuple[Facts, dict[str, str]]:
    """What `suite.json` says of a run, and the models' names by the names of their files."""
    head = _head_of_suite(suite)
    config = _mapping(head.get("config"))
    facts = Facts(
        suite_name=str(head.get("suite") or suite.parent.name),
        metric_keys=tuple(_mapping(config.get("graders"))),
        has_reward=bool(config.get("reward")),
        pass_threshold=_pass_threshold(config),
        planned=sum(1 for _ in _sample_texts(suite)),
        inputs=_inputs(config),
        samples=partial(read_samples, suite),
    )
    handles = _mapping(config.get("target")).get("model_handles") or []
    return facts, {re.sub(r"[/\\:]", "-", str(handle)): str(handle) for handle in handles}


def gate_era_facts(header: Path | None, results: Path) -> Facts:
    """What `header.json` says of a run; its samples stand in the lines of results."""
    said = _mapping(_json(header)) if header else {}
    config = _mapping(said.get("config"))
    return Facts(
        suite_name=str(said.get("suite") or results.parent.name),
        metric_keys=tuple(_mapping(config.get("graders"))),
        pass_threshold=_pass_threshold(config),
        inputs=_inputs(config),
        samples=partial(_samples_in_lines, results),
    )


def read_samples(suite: Path) -> Iterator[Sample]:
    """The samples in a `suite.json`, one at a time. Raises ResultsError for one that is none."""
    for text in _sample_texts(suite):
        try:
            yield Sample.model_validate(_without_none(load_json(text)))
        except ValueError as error:
            raise ResultsError(f"{suite}: a sample is damaged: {error}") from error


def runs_in_order(files: Iterable[Path]) -> list[tuple[int, Path]]:
    """(run, path) of the files or directories named `run_<n>`, by number: `run_2` before `run_10`."""
    numbered = [(int(found[1]), file) for file in files if (found := _RUN.fullmatch(file.stem))]
    return sorted(numbered)


def _gate_era_files(path: Path) -> list[LinesFile]:
    single = path / "results.jsonl"
    if single.is_file():
        return [LinesFile(single)]
    runs = runs_in_order(directory for directory in path.glob("run_*") if directory.is_dir())
    return [LinesFile(file, run) for run, place in runs if (file := place / "results.jsonl").is_file()]


def _reward_era_files(path: Path, handles: Mapping[str, str]) -> list[LinesFile]:
    """One a model, or one a model and run, models in the order of the configuration.

    A model of which there are both, left by runs with another `num_runs`, has those that were written last.
    """
    single = {file.stem: [LinesFile(file, label=handles.get(file.stem, file.stem))] for file in path.glob("*.jsonl")}
    several = {
        place.name: model_files(place, handles.get(place.name, place.name))
        for place in path.iterdir()
        if place.is_dir() and not place.name.startswith(".")
    }
    names = sorted({*single, *several})
    files = [file for name in names for file in max(several.get(name, []), single.get(name, []), key=_last_written)]
    order = list(handles.values())
    return sorted(files, key=lambda file: order.index(file.label) if file.label in order else len(order))


def model_files(directory: Path, label: str | None = None) -> list[LinesFile]:
    """One model's files in a directory of its own, one a run."""
    return [LinesFile(file, run, label) for run, file in runs_in_order(directory.glob("run_*.jsonl"))]


def _last_written(files: Iterable[LinesFile]) -> float:
    return max((file.path.stat().st_mtime for file in files), default=-math.inf)


def _inputs(config: Mapping[str, Any]) -> RunInputs:
    graders, reward = _mapping(config.get("graders")), config.get("reward")
    return RunInputs(
        graders={key: _hash(_mapping(grader)) for key, grader in graders.items()},
        reward=_hash(_mapping(reward)) if reward else None,
    )


def _hash(config: Mapping[str, Any]) -> str:
    """Of a part of the configuration without the places of files, which differ from machine to machine."""
    said = {name: value for name, value in config.items() if name not in _PLACES and value is not None}
    return CONFIGURATION_ONLY + hashlib.blake2b(dump_json(said, sort_keys=True), digest_size=12).hexdigest()


def _pass_threshold(config: Mapping[str, Any]) -> float:
    value = _mapping(config.get("gate")).get("pass_threshold")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 1.0


def _head_of_suite(suite: Path) -> dict[str, Any]:
    """`suite.json` without its samples, which are written last and may be many."""
    head = bytearray()
    try:
        with suite.open("rb") as lines:
            for line in lines:
                if _SAMPLES_BEGIN.match(line):
                    return _mapping(load_json(bytes(head).rstrip().removesuffix(b",") + b"}"))
                head += line
        return {name: value for name, value in _mapping(load_json(bytes(head))).items() if name != "samples"}
    except (OSError, ValueError) as error:
        raise _damaged(suite, error) from error


def _sample_texts(suite: Path) -> Iterator[bytes]:
    """The JSON of each sample. A file that is not written with an indentation of two is read whole."""
    begun, sample = False, bytearray()
    try:
        with suite.open("rb") as lines:
            for line in lines:
                if begun and (sample or line.startswith(b"    {")):
                    sample += line
                    if line.startswith(b"    }") or (len(sample) == len(line) and line.rstrip(b",\r\n").endswith(b"}")):
                        yield bytes(sample).strip().removesuffix(b",")
                        sample.clear()
                begun = begun or bool(_SAMPLES_BEGIN.match(line))
        if not begun:
            yield from map(dump_json, _mapping(_json(suite)).get("samples") or ())
    except OSError as error:
        raise _damaged(suite, error) from error


def _samples_in_lines(results: Path) -> Iterator[Sample]:
    """The samples of the first model that is found in a file of the gate era."""
    first: Any = None
    for number, _, text in whole_lines(results):
        try:
            line = line_of(text)
            said = None if line is None else sample_of(line)
            model = None if line is None else _mapping(line.get("result")).get("model_name") or DEFAULT_LABEL
            first = first or model
            if said is not None and model == first:
                yield Sample.model_validate(_without_none(said))
        except ValueError as error:
            if not text.endswith(b"\n"):
                return
            raise ResultsError(f"{results}, line {number}: a sample is damaged: {error}") from error


def _json(file: Path) -> Any:
    try:
        return load_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(file, error) from error


def _damaged(file: Path, error: OSError | ValueError) -> ResultsError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ResultsError(f"{file}: cannot be read: {reason}")


def _without_none(value: Any) -> Any:
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
