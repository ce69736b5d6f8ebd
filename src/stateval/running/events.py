"""What a run tells the screen while it goes on.

The screen is never waited for: when it cannot keep up, events are dropped and counted. `Progress` is counted where
events are sent, so it stays exact whatever was dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import anyio

from stateval.records.summary import Summary


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run begins: `samples` per run and model, `total` observations in all; results go to `directory`.

    `done` observations were made by an earlier start of the same run; `notes` say what became of it.
    """

    suite: str
    models: tuple[str, ...]
    samples: int
    runs: int
    total: int
    directory: str | None = None
    done: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SampleStarted:
    """A sample's conversation begins. Runs are counted from 1."""

    model: str
    run: int
    sample_id: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """So many user turns of the sample are over, of `turns` in all."""

    model: str
    run: int
    sample_id: str
    turn: int
    turns: int


@dataclass(frozen=True, slots=True)
class SampleFinished:
    """A sample is graded, or failed. `error` is its category and message; `seconds` the wall time in all, if known."""

    model: str
    run: int
    sample_id: str
    scores: Mapping[str, float]
    reward: float | None
    error: str | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over."""

    summary: Summary


Event = RunStarted | SampleStarted | TurnFinished | SampleFinished | RunFinished


@dataclass(slots=True)
class RunningMean:
    """The mean of `n` scores so far; None before the first."""

    n: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.total / self.n if self.n else None

    def add(self, value: float) -> None:
        """Counts one score in."""
        self.n += 1
        self.total += value


@dataclass(slots=True)
class Progress:
    """Where the run stands: observations, and the scores so far by model and metric."""

    total: int = 0
    started: int = 0
    finished: int = 0
    errored: int = 0
    scores: dict[tuple[str, str], RunningMean] = field(default_factory=dict)

    @property
    def running(self) -> int:
        """Samples in flight."""
        return self.started - self.finished

    def count(self, event: Event) -> None:
        """Takes one event into account."""
        match event:
            case RunStarted():
                self.total = event.total
                self.started = self.finished = event.done
            case SampleStarted():
                self.started += 1
            case SampleFinished():
                self.finished += 1
                self.errored += event.error is not None
                for metric, score in event.scores.items():
                    self.scores.setdefault((event.model, metric), RunningMean()).add(score)


class EventChannel:
    """Carries events from the runner to one display.

    Args:
        capacity: how many events may wait; further ones are dropped.

    `receiver` gives the events in order until the channel is closed. Leaving the channel as a context closes both
    ends.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self.progress = Progress()
        self.dropped = 0
        self._sender, self.receiver = anyio.create_memory_object_stream[Event](capacity)

    def send(self, event: Event) -> None:
        """Hands an event on, or drops it; never waits and never raises."""
        self.progress.count(event)
        try:
            self._sender.send_nowait(event)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.dropped += 1

    def close(self) -> None:
        """No event will follow. The display ends when it has shown those that wait."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sender.close()
        self.receiver.close()
