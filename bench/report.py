"""Tables of what was measured, and the machine that it was measured on."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).parent / "README.md"
LOAD_BEFORE = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
"""Processes that wanted a core in the minute before: where it is not near 0, the numbers are too low."""


@dataclass(frozen=True)
class Table:
    """Rows of text under column names, with remarks below. The first column is left-aligned, the others right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()

    def markdown(self) -> str:
        """The table in Markdown, the machine named below it."""
        lines = [self.columns, [":--", *["--:"] * (len(self.columns) - 1)], *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([table, *self.remarks, f"Measured on {machine()}."])


def rewrite_readme(name: str, table: Table) -> None:
    """Puts the table between the markers of this benchmark in `bench/README.md`. Raises ValueError without markers."""
    text = README.read_text(encoding="utf-8")
    start, end = f"<!-- measured: {name} -->", f"<!-- end: {name} -->"
    if start not in text or end not in text:
        raise ValueError(f"{README} has no markers for {name}")
    before, after = text.split(start)[0], text.split(end)[1]
    README.write_text(f"{before}{start}\n{table.markdown()}\n{end}{after}", encoding="utf-8")


def machine() -> str:
    """Processor, cores, Python, and how busy it was before, in words."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = "" if LOAD_BEFORE is None else f", load {LOAD_BEFORE:.1f} before the run"
    return f"{_processor()}, {cores} cores, {platform.system()}, Python {platform.python_version()}{load}"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()
