"""The one door to results: a directory of stateval or of letta-evals, or one file of results."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from stateval.errors import UsageError
from stateval.results.directory import ResultsDirectory
from stateval.results.files import Facts, LinesFile, ResultsFiles, whole_lines
from stateval.results.letta_evals import (
    gate_era_facts,
    letta_evals_results,
    model_files,
    reward_era_facts,
    runs_in_order,
)
from stateval.results.letta_evals_lines import is_of_gate_era, line_of
from stateval.results.reading import Results
from stateval.results.run_record import RUN_FILE

_SHOWN = 10


def open_results(path: Path) -> Results:
    """The results in a directory of stateval, in one of letta-evals (either layout), or in a single `.jsonl` file.

    The directory of one model inside of these, which there is where it ran several times, stands for that model.

    Raises UsageError where there are none, naming what is nearest; ResultsError for files that are damaged.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist{_nearest(path)}")
    found = _of_file(path) if path.is_file() else _of_directory(path)
    if found is None:
        raise UsageError(f"{path} holds no results of stateval or letta-evals{_instead(path)}")
    return found


def _of_directory(path: Path) -> Results | None:
    if (path / RUN_FILE).is_file():
        return ResultsDirectory.open(path)
    return letta_evals_results(path) or _of_model(path)


def _of_model(path: Path) -> ResultsFiles | None:
    """All runs of one model; what the directory above says of them is taken over."""
    path = path.absolute() if not path.name else path
    above = path.parent
    if not any((above / sign).is_file() for sign in (RUN_FILE, "suite.json")):
        return None
    is_ours = (above / RUN_FILE).is_file()
    label = None if is_ours else reward_era_facts(above / "suite.json")[1].get(path.name, path.name)
    files = model_files(path, label)
    if not files:
        return None
    facts = _facts_beside(above, path)
    return ResultsFiles(
        path, files, replace(facts, num_runs=ResultsDirectory.open(above).num_runs) if is_ours else facts
    )


def _of_file(path: Path) -> Results | None:
    """One file; what its directory says of the run is taken over."""
    first = _first_line(path)
    if first is None:
        return None
    if is_of_gate_era(first):
        header = path.with_name("header.json")
        return ResultsFiles(path, [LinesFile(path)], gate_era_facts(header if header.is_file() else None, path))
    if "sample_id" not in first:
        return None
    numbered = runs_in_order([path])
    run = numbered[0][0] if numbered else 1
    facts = _facts_beside(path.parent.parent if numbered else path.parent, path)
    return ResultsFiles(path, [LinesFile(path, run)], facts)


def _first_line(path: Path) -> dict[str, object] | None:
    """The first line that may be a result; None where the file is empty or holds something else."""
    for _, _, text in whole_lines(path):
        try:
            line = line_of(text)
        except ValueError:
            return None
        if line is not None:
            return line
    return None


def _facts_beside(directory: Path, file: Path) -> Facts:
    if (directory / RUN_FILE).is_file():
        run = ResultsDirectory.open(directory)
        return Facts(
            suite_name=run.suite_name,
            metric_keys=run.metric_keys,
            has_reward=run.has_reward,
            planned=run.planned,
            on_error=run.on_error,
            pass_threshold=run.pass_threshold,
            inputs=run.inputs,
            judges=run.judges,
            samples=run.samples,
        )
    suite = directory / "suite.json"
    return reward_era_facts(suite)[0] if suite.is_file() else Facts(suite_name=file.stem)


def _instead(path: Path) -> str:
    """What to give instead: the runs that lie in the directory."""
    if not path.is_dir():
        return "; give a results directory, or a `.jsonl` file of one"
    inside = _runs_below(path)
    if not inside:
        return _nearest(path)
    listed = "".join(f"\n  {place}" for place in inside[-_SHOWN:])
    more = f" (the last {_SHOWN} of {len(inside)})" if len(inside) > _SHOWN else ""
    return f" itself; give one of the runs in it{more}:{listed}"


def _nearest(path: Path) -> str:
    """The name beside the path that is most like it."""
    parent = path.absolute().parent
    if not parent.is_dir():
        return f": there is no directory {parent}{_nearest(parent)}" if parent != parent.parent else ""
    names = {
        place.name: place for place in parent.iterdir() if place.name != path.name and not place.name.startswith(".")
    }
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return f"; did you mean {path.with_name(close[0])}?" if close else ""


def _runs_below(path: Path) -> list[Path]:
    """Directories of results below, two levels deep or where runs go by default, oldest first."""
    found: dict[Path, None] = {}
    for pattern in ("*", "*/*", ".stateval/runs/*"):
        for place in path.glob(pattern):
            if place.parent not in found and place.is_dir() and _looks_like_results(place):
                found[place] = None
    return sorted(found, key=lambda place: (place.stat().st_mtime, str(place)))


def _looks_like_results(path: Path) -> bool:
    if any((path / sign).is_file() for sign in (RUN_FILE, "header.json", "run_1/header.json")):
        return True
    has_lines = any(True for pattern in ("*.jsonl", "*/run_*.jsonl") for _ in path.glob(pattern))
    return has_lines and (path / "suite.json").is_file()
