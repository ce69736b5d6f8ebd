"""What the agent wrote is data: the fence around it, which no content can leave.

The code in the markers is made from everything that is shown, and made anew until nothing shown holds it: prompts are
reproducible, and a text would have to hold a digest of itself in order to hold its own end marker. What cannot be seen
or would break lines in secret is written out, as `[U+200B]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

_KEY = b"stateval fence"
_CODE_BYTES = 8

_SELECTORS = "[\\ufe00-\\ufe0f\\U000e0100-\\U000e01ef]"
_JOINERS = "[\\u200c\\u200d]"
# Tab and line feed stay, and so does what scripts and emoji are made with (joiners, variation selectors), one at a
# time: rows of them are a way to hide text.
_HIDDEN = re.compile(
    "["
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f"  # controls; among them the line breaks VT, FF, CR, FS, GS, RS, NEL
    "\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e"  # soft hyphen, joiners, marks, fillers
    "\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f"  # zero width, direction, separators of lines
    "\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb"  # fillers, byte-order mark, annotations
    "\\ud800-\\udfff"  # half of a pair
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a"  # controls of shorthand and of music
    "\\U000e0000-\\U000e00ff\\U000e01f0-\\U000e0fff"  # tags
    "]"
    f"|(?<={_SELECTORS}){_SELECTORS}|(?<={_JOINERS}){_JOINERS}"
)


@dataclass(frozen=True, slots=True)
class Fence:
    """The markers of one prompt."""

    code: str

    @classmethod
    def around(cls, shown: Iterable[str]) -> Fence:
        """The fence whose code is made from all that a prompt shows and stands nowhere in it."""
        texts = list(shown)
        digest = blake2b(key=_KEY, digest_size=_CODE_BYTES)
        for text in texts:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big"))
            digest.update(encoded)
        code = digest.hexdigest()
        while any(code in text for text in texts):
            digest.update(code.encode("ascii"))
            code = digest.hexdigest()
        return cls(code)

    def put(self, name: str, content: str) -> str:
        """The content between its two markers, each on a line of its own."""
        return f"<<<begin {name} {self.code}>>>\n{content}\n<<<end {name} {self.code}>>>"


def visible(text: str) -> str:
    """The text with everything hidden written out; a carriage return before a line feed is taken off.

    >>> visible("a\\u200bb"), visible("a\\r\\nb"), visible("a\\rb")
    ('a[U+200B]b', 'a\\nb', 'a[U+000D]b')
    """
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))


def sendable(text: str) -> str:
    """What the author of a suite wrote, as it is but for what no request can hold: half a pair, and NUL."""
    return re.sub("[\ud800-\udfff\x00]", lambda found: f"[U+{ord(found[0]):04X}]", text)
