"""Showing a run while it goes on: live on a terminal, as plain lines, or as JSON for tools."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from typing import IO, Any, Protocol

import anyio
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stateval.errors import UsageError
from stateval.records.encoding import plain
from stateval.redaction import Redaction
from stateval.reports.printable import printable, shortened
from stateval.running.events import (
    Event,
    EventChannel,
    Progress,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    TurnFinished,
)

DISPLAYS = ("rich", "simple", "json", "none")
_SECONDS_BETWEEN_REFRESHES = 0.2
_SHOWN_AT_ONCE = 5
_NAMES = {
    RunStarted: "run_started",
    SampleStarted: "sample_started",
    TurnFinished: "turn_finished",
    SampleFinished: "sample_finished",
    RunFinished: "run_finished",
}

_log = logging.getLogger(__name__)


class Display(Protocol):
    """Something that shows events. None of its methods waits for anything but the screen."""

    def update(self, event: Event, progress: Progress) -> None:
        """Takes in one event; `progress` is exact even where events were dropped."""

    def refresh(self, progress: Progress) -> None:
        """Draws again, where that is this display's way."""

    def close(self, progress: Progress, dropped: int) -> None:
        """The last call: gives the screen back and says how many events were dropped."""


async def show(channel: EventChannel, display: Display) -> None:
    """Shows a channel's events until it is closed.

    A screen that goes away (a closed pipe) ends the display, never the run.
    """
    try:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_refresh_again_and_again, channel, display)
                with channel.receiver as events:
                    async for event in events:
                        display.update(event, channel.progress)
                tasks.cancel_scope.cancel()
        finally:
            display.close(channel.progress, channel.dropped)
    except* OSError as lost:
        _log.warning("progress is no longer shown: %s", lost.exceptions[0])


def make_display(name: str, console: Console, redaction: Redaction | None = None) -> Display:
    """The display of that name (one of `DISPLAYS`), writing to this console without the secrets that are known.

    Raises UsageError for other names.
    """
    known = redaction or Redaction()
    match name:
        case "rich":
            return RichDisplay(console, known)
        case "simple":
            return SimpleDisplay(console.file, known)
        case "json":
            return JsonDisplay(console.file, known)
        case "none":
            return NoDisplay()
    raise UsageError(f"there is no display `{name}`; use one of {', '.join(DISPLAYS)}")


class NoDisplay:
    """Shows nothing."""

    def update(self, event: Event, progress: Progress) -> None: ...

    def refresh(self, progress: Progress) -> None: ...

    def close(self, progress: Progress, dropped: int) -> None: ...


class JsonDisplay:
    """One JSON object a line, in ASCII: each event under its name in `event`, and at last `end` with the counts."""

    def __init__(self, stream: IO[str], redaction: Redaction | None = None) -> None:
        self._stream = stream
        self._redaction = redaction or Redaction()

    def update(self, event: Event, progress: Progress) -> None:
        fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
        self._write({"event": _NAMES[type(event)], **fields})

    def refresh(self, progress: Progress) -> None: ...

    def close(self, progress: Progress, dropped: int) -> None:
        counts = {name: getattr(progress, name) for name in ("total", "started", "finished", "errored")}
        self._write({"event": "end", **counts, "dropped": dropped})

    def _write(self, value: dict[str, Any]) -> None:
        line = self._redaction.scrub_json(json.dumps(plain(value)).encode("ascii"))
        self._stream.write(f"{line.decode('ascii')}\n")
        self._stream.flush()


class SimpleDisplay:
    """One plain line per finished sample, for logs: no colour, no cursor movement."""

    def __init__(self, stream: IO[str], redaction: Redaction | None = None) -> None:
        self._stream = stream
        self._redaction = redaction or Redaction()
        self._shown = 0
        self._has_started = False
        self._several_models = False
        self._several_runs = False

    def update(self, event: Event, progress: Progress) -> None:
        match event:
            case RunStarted():
                self._has_started = True
                self._several_models, self._several_runs = len(event.models) > 1, event.runs > 1
                place = f"; results: {event.directory}" if event.directory else ""
                self._write(f"{event.suite}: {self._size(event)}{place}")
                for note in event.notes:
                    self._write(note)
                self._shown = event.done
            case SampleFinished():
                self._shown += 1
                self._write(f"[{self._shown}/{progress.total}] {self._name(event)}: {_result(event)}")

    def refresh(self, progress: Progress) -> None: ...

    def close(self, progress: Progress, dropped: int) -> None:
        if not self._has_started:
            return
        self._write(f"{progress.finished} of {progress.total} finished, {progress.errored} errored")
        if dropped:
            self._write(f"{dropped} progress events were not shown, for the screen could not keep up")

    def _size(self, event: RunStarted) -> str:
        runs = f" x {event.runs} runs" if self._several_runs else ""
        models = f" x {len(event.models)} models" if self._several_models else ""
        total = f" = {event.total}" if runs or models else ""
        return f"{event.samples} samples{runs}{models}{total}"

    def _name(self, event: SampleFinished) -> str:
        run = f" run {event.run}" if self._several_runs else ""
        model = f" [{event.model}]" if self._several_models else ""
        return f"{event.sample_id}{run}{model}"

    def _write(self, line: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(f"{printable(self._redaction.scrub(line), encoding=encoding)}\n")
        self._stream.flush()


class RichDisplay:
    """A progress bar, the samples in flight, and each metric's mean so far; gone when the run is over."""

    def __init__(self, console: Console, redaction: Redaction | None = None) -> None:
        self._console = console
        self._redaction = redaction or Redaction()
        self._suite = ""
        self._running: dict[tuple[str, int, str], str] = {}
        self._started = time.monotonic()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def update(self, event: Event, progress: Progress) -> None:
        match event:
            case RunStarted():
                self._suite = event.suite
                for note in event.notes:
                    self._console.print(self._text(note), soft_wrap=True)
                self._live.start()
            case SampleStarted():
                self._running[event.model, event.run, event.sample_id] = ""
            case TurnFinished():
                turns = f" ({event.turn} of {event.turns} turns)"
                self._running[event.model, event.run, event.sample_id] = turns
            case SampleFinished():
                self._running.pop((event.model, event.run, event.sample_id), None)

    def refresh(self, progress: Progress) -> None:
        if not self._live.is_started:
            return
        while len(self._running) > progress.running:  # the event of its end was dropped
            self._running.pop(next(iter(self._running)))
        self._live.update(Group(self._bar(progress), *self._in_flight(), self._means(progress)), refresh=True)

    def close(self, progress: Progress, dropped: int) -> None:
        self._live.stop()

    def _bar(self, progress: Progress) -> Table:
        line = Table.grid(padding=(0, 1))
        seconds = time.monotonic() - self._started
        counts = f"{progress.finished}/{progress.total}, {progress.errored} errored, {seconds:.0f} s"
        bar = ProgressBar(total=max(progress.total, 1), completed=progress.finished, width=30)
        line.add_row(self._text(shortened(self._suite, 30)), bar, Text(counts))
        return line

    def _in_flight(self) -> list[Text]:
        shown = list(self._running.items())[:_SHOWN_AT_ONCE]
        lines = [
            self._text(f"  running {shortened(sample_id, 40)} [{shortened(model, 20)}]{turns}")
            for (model, _run, sample_id), turns in shown
        ]
        further = len(self._running) - len(shown)
        return [*lines, Text(f"  and {further} more")] if further else lines

    def _means(self, progress: Progress) -> Table:
        table = Table.grid(padding=(0, 2))
        for (model, metric), score in progress.scores.items():
            mean = "-" if score.mean is None else f"{score.mean:.3f}"
            table.add_row(self._text(f"  {model}"), self._text(metric), mean, f"n = {score.n}")
        return table

    def _text(self, text: str) -> Text:
        shown = printable(self._redaction.scrub(text), encoding=self._console.encoding)
        return Text(shown, no_wrap=True, overflow="ellipsis")


async def _refresh_again_and_again(channel: EventChannel, display: Display) -> None:
    while True:
        await anyio.sleep(_SECONDS_BETWEEN_REFRESHES)
        display.refresh(channel.progress)


def _result(event: SampleFinished) -> str:
    scores = {**event.scores, **({"reward": event.reward} if event.reward is not None else {})}
    parts = [f"{name} {value:.3g}" for name, value in scores.items()]
    if event.error is not None:
        parts.append(f"ERROR {shortened(event.error)}")
    seconds = "" if event.seconds is None else f" ({event.seconds:.1f} s)"
    return f"{', '.join(parts) or 'no score'}{seconds}"
