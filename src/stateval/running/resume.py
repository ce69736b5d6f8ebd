"""A run that goes on: which of its lines stand, which are graded anew, and which are of something that changed."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from enum import IntEnum

from stateval.records.digest import digest_of
from stateval.records.result import StageKeys
from stateval.results.directory import ResultsDirectory
from stateval.results.journal import Entry, Line, LineReader
from stateval.results.lines import DigestSet, LineTable
from stateval.results.run_record import RunInputs, RunRecord
from stateval.running.kept import NOTHING_KEPT, Kept, Reader, Slot, has_conversation, reader_of
from stateval.running.keys import StageKeyMaker, row_hash
from stateval.running.plan import RunPlan


class _State(IntEnum):
    """What becomes of a line."""

    REMOVED = 0
    DONE = 1
    AGAIN = 2
    RUNS_AGAIN = 3
    CHANGED = 4


def take_up(
    plan: RunPlan,
    directory: ResultsDirectory,
    files: ExitStack,
    *,
    samples: int,
    retry_errors: bool,
    graded_anew: bool = False,
) -> Kept:
    """What of an earlier start of this run stands, in a directory that was begun.

    A line stands where all its stage keys are today's. Where only grades depend on something that changed, its
    conversation stands; where the conversation does, or its row is gone, the line is set aside. With `retry_errors`
    samples that errored run again, those with a finished conversation from their grades on. In a run that only grades
    another's conversations anew (`graded_anew`) no line stands once anything changed. `files` closes what stays open.
    """
    if directory.earlier is None:
        return NOTHING_KEPT
    total = samples * plan.num_runs * len(plan.models)
    if not directory.record.mixed and not retry_errors:
        kept = _all_kept(directory, total)
        if kept is not None:
            return kept
        directory.mark_mixed()
    if directory.record.mixed:
        directory.drop_superseded()
    slots = {slot: _Lines.of(directory, *slot) for slot in _slots(directory)}
    if directory.record.mixed and not graded_anew:
        _compare(plan, slots, only_rows=_only_rows_may_differ(directory))
    else:
        for lines in slots.values():
            lines.judge_all(_State.CHANGED if directory.record.mixed else _State.DONE)
    if retry_errors:
        for lines in slots.values():
            lines.retry()
    aside = {
        slot: offsets for slot, lines in slots.items() if (offsets := lines.offsets(_State.REMOVED, _State.CHANGED))
    }
    for slot, offsets in aside.items():
        directory.set_aside(*slot, offsets)
    if not directory.record.mixed and any(lines.count(_State.AGAIN, _State.RUNS_AGAIN) for lines in slots.values()):
        directory.mark_mixed()
    return Kept(
        present={slot: DigestSet(lines.digests(*_IN_PLACE)) for slot, lines in slots.items()},
        done={slot: DigestSet(lines.digests(_State.DONE)) for slot, lines in slots.items()},
        again={
            slot: _reader(directory, slot, lines, files) for slot, lines in slots.items() if lines.count(_State.AGAIN)
        },
        notes=tuple(_notes(directory, _count(slots), total)),
    )


def _all_kept(directory: ResultsDirectory, total: int) -> Kept | None:
    """Everything stands: nothing has changed since, and no error is to be tried again.

    None where a sample has two lines, as it can have in a file that somebody edited.
    """
    done: dict[Slot, DigestSet] = {}
    for slot in _slots(directory):
        digests = array("Q", (digest_of(line.observation.sample_id) for line in directory.lines(*slot)))
        done[slot] = DigestSet(digests)
        if len(done[slot]) < len(digests):
            return None
    kept = Kept(present=done, done=done)
    return replace(kept, notes=tuple(_notes(directory, Counter({_State.DONE: kept.n_done}), total)))


_TOLD_MORE_OF = {"dataset", "graders", "grader", "reward", "output", "max_concurrent", "description", "limits"}
_IN_PLACE = (_State.DONE, _State.AGAIN, _State.RUNS_AGAIN)


class _Lines:
    """The lines of one journal: of which sample, computed from what, and how they ended. 43 bytes each."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._offsets = array("Q")
        self._rows = array("q")
        self._targets = array("q")
        self._keys = array("q")
        self._conversations = array("b")
        self._errors = array("b")
        self._states = array("b")
        self._order = array("Q")

    @classmethod
    def of(cls, directory: ResultsDirectory, label: str, run: int) -> _Lines:
        """The lines of one model in one run; what they were computed from matters only where something has changed."""
        lines = cls()
        if directory.record.mixed:
            for _, entry in directory.entries(label, run):
                lines._add(entry, entry.keys)
        else:
            for line in directory.lines(label, run):
                lines._add(line, None)
        lines._order = array("Q", sorted(range(len(lines._digests)), key=lines._digests.__getitem__))
        return lines

    def find(self, key: str) -> int | None:
        """The number of this sample's line, where it has one."""
        digest = digest_of(key)
        place = bisect_left(self._order, digest, key=self._digests.__getitem__)
        if place == len(self._order) or self._digests[self._order[place]] != digest:
            return None
        return self._order[place]

    def has_row(self, line: int, row: str) -> bool:
        """Whether a line is of this very row; it stands then, where nothing but rows can have changed."""
        if self._rows[line] != hash(row):
            return False
        self._states[line] = _State.DONE
        return True

    def compare(self, line: int, keys: StageKeys) -> None:
        """Judges a line by the keys that its sample has today."""
        if self._targets[line] != hash(keys.target):
            state = _State.CHANGED
        elif self._keys[line] != _hash_of_grades(keys) and self._conversations[line]:
            state = _State.AGAIN
        else:
            state = _State.DONE
        self._states[line] = state

    def judge_all(self, state: _State) -> None:
        """Says the same of every line."""
        self._states = array("b", [state]) * len(self._digests)

    def retry(self) -> None:
        """Has the lines with an error computed again."""
        for line, (state, error) in enumerate(zip(self._states, self._errors, strict=True)):
            if error and state in (_State.DONE, _State.AGAIN):
                self._states[line] = _State.AGAIN if self._conversations[line] else _State.RUNS_AGAIN

    def count(self, *states: _State) -> int:
        """How many lines are in these states."""
        return sum(state in states for state in self._states)

    def digests(self, *states: _State) -> Iterator[int]:
        """Whose lines are in these states."""
        return (digest for digest, state in zip(self._digests, self._states, strict=True) if state in states)

    def offsets(self, *states: _State) -> frozenset[int]:
        """Where the lines in these states begin."""
        return frozenset(o for o, state in zip(self._offsets, self._states, strict=True) if state in states)

    def _add(self, entry: Entry | Line, keys: StageKeys | None) -> None:
        seen = entry.observation
        self._digests.append(digest_of(seen.sample_id))
        self._offsets.append(entry.offset)
        self._rows.append(hash(keys.row) if keys else 0)
        self._targets.append(hash(keys.target) if keys else 0)
        self._keys.append(_hash_of_grades(keys) if keys else 0)
        self._conversations.append(has_conversation(seen.error))
        self._errors.append(seen.error is not None)
        self._states.append(_State.REMOVED)


def _slots(directory: ResultsDirectory) -> Iterator[Slot]:
    return ((label, run) for label in directory.labels for run in directory.runs())


def _only_rows_may_differ(directory: ResultsDirectory) -> bool:
    """Whether the lines stand on today's targets, graders and reward, all of them."""
    earlier = directory.earlier
    if earlier is None or earlier.mixed:
        return False
    return earlier.inputs.model_copy(update={"dataset": None}) == directory.inputs.model_copy(update={"dataset": None})


def _compare(plan: RunPlan, slots: Mapping[Slot, _Lines], *, only_rows: bool) -> None:
    maker = StageKeyMaker(plan)
    for sample in plan.dataset:
        row = row_hash(sample) if only_rows else None
        for model in plan.models:
            for run in range(1, plan.num_runs + 1):
                lines = slots[model.label, run]
                line = lines.find(sample.key)
                if line is not None and not (row is not None and lines.has_row(line, row)):
                    lines.compare(line, maker.keys(model, sample, run))


def _hash_of_grades(keys: StageKeys) -> int:
    return hash((*sorted(keys.grades.items()), keys.reward))


def _reader(directory: ResultsDirectory, slot: Slot, lines: _Lines, files: ExitStack) -> Reader:
    """Finds the lines that are graded again. Their places may have changed when others were set aside."""
    wanted = DigestSet(lines.digests(_State.AGAIN))
    table = LineTable()
    for _, entry in directory.entries(*slot):
        digest = digest_of(entry.observation.sample_id)
        if digest in wanted:
            table.add(digest, entry.offset, entry.length)
    return reader_of(table, files.enter_context(LineReader(directory.journal_path(*slot))).read)


def _count(slots: Mapping[Slot, _Lines]) -> Counter[_State]:
    return Counter({state: sum(lines.count(state) for lines in slots.values()) for state in _State})


def _notes(directory: ResultsDirectory, states: Counter[_State], total: int) -> Iterator[str]:
    done = states[_State.DONE] + states[_State.AGAIN]
    yield f"resuming: {done:,} of {total:,} done"
    if directory.earlier is not None:
        yield from _changes(directory.earlier.inputs, directory.record.inputs)
        yield from _changed_settings(directory.earlier, directory.record)
    if states[_State.AGAIN]:
        yield f"{states[_State.AGAIN]:,} finished samples are graded anew"
    if states[_State.RUNS_AGAIN]:
        yield f"{states[_State.RUNS_AGAIN]:,} errored samples run again"
    if states[_State.CHANGED]:
        yield f"{states[_State.CHANGED]:,} finished samples begin again, for what they stood on has changed"
    if states[_State.REMOVED]:
        yield f"{states[_State.REMOVED]:,} finished samples are no longer in the dataset and leave the results"
    if states[_State.CHANGED] or states[_State.REMOVED]:
        yield f"what does not stand any more is kept below {directory.path / 'history'}"


def _changes(earlier: RunInputs, today: RunInputs) -> Iterator[str]:
    """What the run stands on that is not what it was, as far as it is known what it was."""
    for label, key in today.targets.items():
        if earlier.targets.get(label, key) != key:
            yield f"changed since: target `{label}`"
    if not earlier.graders:
        return
    for metric, key in today.graders.items():
        if metric not in earlier.graders:
            yield f"new since: metric `{metric}`"
        elif earlier.graders[metric] != key:
            yield f"changed since: metric `{metric}` (its grader or its extractor)"
    for metric in earlier.graders.keys() - today.graders.keys():
        yield f"gone since: metric `{metric}`"
    if earlier.reward != today.reward:
        yield "changed since: the reward"
    if earlier.dataset is not None and today.dataset is not None and earlier.dataset != today.dataset:
        yield "changed since: the dataset"


def _changed_settings(earlier: RunRecord, today: RunRecord) -> Iterator[str]:
    """Fields of the suite that say something else, but for those of which more is said."""
    if not earlier.settings:
        return
    names = [name for name in {**earlier.settings, **today.settings} if name not in _TOLD_MORE_OF]
    changed = [name for name in names if earlier.settings.get(name) != today.settings.get(name)]
    if changed:
        yield f"changed since in the suite: {', '.join(f'`{name}`' for name in changed)}"
