"""How far the fetching of a model is, shown on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stateval.llm.fetching import Progress

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def shown_progress(title: str) -> Iterator[Progress]:
    """A bar on a terminal; elsewhere one line when the first bytes have come and one at the end."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console, title)
        return
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
    )
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda fetched, total: bar.update(task, completed=fetched, total=total)


class _Lines:
    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._begun = self._ended = False

    def __call__(self, fetched: int, total: int) -> None:
        if not self._begun:
            self._begun = True
            self._console.print(f"{self._title} ({total / 1e6:.0f} MB)", highlight=False)
        if fetched >= total and not self._ended:
            self._ended = True
            self._console.print(f"{self._title}: done", highlight=False)
