"""Text compared as readers compare it: case and the spelling of accents do not count."""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    """The text in NFC and without case: `É` in one code point or two is the same, `ß` is `ss`."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def holds(text: str, part: str, *, whole: bool = False) -> bool:
    """Whether a folded text has a folded part in it; with `whole` as words of its own.

    `4` is in `14` and in `4.5`, but neither has it as a whole word.
    """
    start = text.find(part)
    while whole and start >= 0 and not _stands_alone(text, start, start + len(part)):
        start = text.find(part, start + 1)
    return start >= 0


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not _joined(text, start - 1, start, -1) and not _joined(text, end, end - 1, 1)


def _joined(text: str, outside: int, inside: int, step: int) -> bool:
    if not 0 <= outside < len(text) or not _in_word(text[inside]):
        return False
    if text[outside] in ".," and text[inside].isdigit():
        return 0 <= outside + step < len(text) and text[outside + step].isdigit()
    return _in_word(text[outside])


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.combining(character) > 0
