"""Text of any origin as XML 1.0."""

from __future__ import annotations

import re

_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\r": "&#13;",
    # Programs that read a file for commands to obey, such as the runner of GitHub, find none in what stands here.
    "::": ":&#58;",
    "##[": "#&#35;[",
}
_IN_TEXT = re.compile(r'::|##\[|[&<>"\r]')
_IN_ATTRIBUTE = re.compile(r'::|##\[|[&<>"\r\n\t]')
_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What is outside of `Char`, production 2 of XML 1.0."""


def text(value: str) -> str:
    """The text between two tags. Characters that XML cannot hold become escapes such as `\\x00`."""
    return _IN_TEXT.sub(lambda found: _ESCAPES[found[0]], allowed(value))


def tag(element: str, /, **attributes: str | int | float | None) -> str:
    """An opening tag; attributes that are None are left out, seconds and other floats have three decimals."""
    said = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items() if value is not None)
    return f"<{element}{said}>"


def empty(opening: str) -> str:
    """The same as an element with nothing in it."""
    return f"{opening[:-1]}/>"


def allowed(value: str) -> str:
    """The text without characters that XML cannot hold."""
    return _NOT_ALLOWED.sub(lambda found: _spelled(ord(found[0])), value)


def _attribute(value: str | int | float) -> str:
    shown = f"{value:.3f}" if isinstance(value, float) else str(value)
    return _IN_ATTRIBUTE.sub(_in_attribute, allowed(shown))


def _in_attribute(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"&#{ord(found[0])};"


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
