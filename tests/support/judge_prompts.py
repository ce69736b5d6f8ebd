"""A strict reader of what a judge is sent: data between markers, and the frame around them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARKER = re.compile(r"<<<(begin|end) ([a-z_]+(?:_\d+)?) ([0-9a-f]{16})>>>")
_ANNOUNCED = re.compile(r"The code of the markers in this message is ([0-9a-f]{16})\.\n")


@dataclass(frozen=True)
class Prompt:
    """`data` by name, in order; `frame` is all the rest, with `<name>` for each fence and no code in it."""

    data: dict[str, str]
    frame: str
    code: str


def parsed(text: str) -> Prompt:
    """The parts of a prompt. Fails where a fence is not opened and closed exactly once, on lines of its own."""
    announced = _ANNOUNCED.match(text)
    assert announced, "the prompt does not begin with the code of its markers"
    code = announced[1]
    data: dict[str, str] = {}
    frame: list[str] = []
    open_name: str | None = None
    content: list[str] = []
    for line in text.split("\n"):
        marker = _MARKER.fullmatch(line)
        if marker is None or marker[3] != code:
            assert open_name is None or code not in line, "the code of the markers stands in the data"
            (frame if open_name is None else content).append(line)
        elif marker[1] == "begin":
            assert open_name is None, "a fence was opened within another"
            assert marker[2] not in data, "a fence was opened twice"
            open_name, content = marker[2], []
        else:
            assert marker[2] == open_name, "a fence was closed that was not open"
            data[marker[2]] = "\n".join(content)
            frame.append(f"<{marker[2]}>")
            open_name = None
    assert open_name is None, "a fence was not closed"
    return Prompt(data, "\n".join(frame).replace(code, "CODE"), code)
