"""Known secrets, and how they are kept out of every file, log and screen.

A secret is scrubbed by its value, wherever it turns up: an agent may quote a key back, a server may put one in an
error message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping

_NAME_OF_A_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION)S?(_|$)", re.IGNORECASE)
_SHORTEST = 8
_REPLACEMENT = "[redacted]"


def secrets_of_environment(environment: Mapping[str, str] = os.environ) -> set[str]:
    """Values of the variables whose names say that they hold a secret (`OPENAI_API_KEY`, `HF_TOKEN`, ...).

    Values shorter than 8 characters are left alone: they would tear holes into ordinary text.
    """
    return {v for name, v in environment.items() if _NAME_OF_A_SECRET.search(name) and len(v) >= _SHORTEST}


class Redaction:
    """A set of secret values that can be taken out of text.

    Args:
        secrets: the values; shorter ones than 8 characters are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._text: re.Pattern[str] | None = None
        self._bytes: re.Pattern[bytes] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Knows further values from now on."""
        new = {s for s in secrets if len(s) >= _SHORTEST} - self._secrets
        if not new:
            return
        self._secrets |= new
        spellings = {form for secret in self._secrets for form in _spellings(secret)}
        longest_first = sorted(spellings, key=len, reverse=True)
        self._text = re.compile("|".join(re.escape(s) for s in longest_first))
        self._bytes = re.compile(b"|".join(re.escape(s.encode("utf-8", "surrogatepass")) for s in longest_first))

    def scrub(self, text: str) -> str:
        """The text with every known secret replaced by `[redacted]`."""
        return self._text.sub(_REPLACEMENT, text) if self._text else text

    def scrub_bytes(self, encoded: bytes) -> bytes:
        """The same for UTF-8 encoded text, JSON included: a secret is found in its JSON spelling too."""
        return self._bytes.sub(_REPLACEMENT.encode(), encoded) if self._bytes else encoded


def _spellings(secret: str) -> set[str]:
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return {secret} | escaped
