"""Text that agents, graders and users wrote, made fit for a screen: shown as it is, never obeyed."""

from __future__ import annotations

import re
import unicodedata

_CATEGORIES_TO_ESCAPE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = {"\u200c", "\u200d"}
_COMMAND = "##["
_COMMAND_OF_A_LINE = re.compile(r"(?<!\S)::")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, encoding: str = "utf-8") -> str:
    """One line in which control, direction-changing and unencodable characters are written as escapes.

    So is what a log of GitHub obeys anywhere in a line, `##[`, and at the beginning of one, `::`, which is escaped
    after white space too: the text may be printed there, or wrapped. `encoding` is what the screen can show.

    >>> printable("two\\nlines \\x1b[31m")
    'two\\\\nlines \\\\x1b[31m'
    """
    if text.isascii() and text.isprintable() and _COMMAND not in text and "::" not in text:
        return text
    shown = "".join(_escape(character) if _is_unsafe(character) else character for character in text)
    shown = _COMMAND_OF_A_LINE.sub(r"\\x3a:", shown.replace(_COMMAND, "#\\x23["))
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def shortened(text: str, longest: int = 240) -> str:
    """The text, or its beginning and `...` where it is longer than so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in _CATEGORIES_TO_ESCAPE and character not in _JOINERS


def _escape(character: str) -> str:
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float | None, digits: int = 3) -> str:
    """A number as reports print it; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"
