"""Known secrets, and how they are kept out of every file, log and screen.

A secret is scrubbed by its value, wherever it turns up: an agent may quote a key back, a server may put one in an
error message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

_NAME_OF_A_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION)S?(_|$)", re.IGNORECASE)
_KEYS_IN_A_CONFIGURATION = {"api_key"}
_USER_AND_PASSWORD = re.compile(r"(?<=[a-z0-9+.-]:)//(?P<user>[^/\s:@]*):(?P<password>[^/\s\"'<>]+)@", re.IGNORECASE)
_SHORTEST = 8
_LONGEST_BEGINNING = 16
_REPLACEMENT = "[redacted]"

_JSON_STRING = re.compile(rb'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")(?P<names_a_field>\s*:)?', re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+(?:Z|[+-]\d\d:\d\d)")
WORDS_OF_RECORDS = frozenset(
    {
        *("assistant", "extraction", "inconclusive"),
        *("system_message", "user_message", "assistant_message", "reasoning_message", "hidden_reasoning_message"),
        *("tool_call_message", "tool_return_message", "approval_request_message", "approval_response_message"),
        *("summary_message", "event_message"),
    }
)
"""Values by which records are told apart: every results file has them, so as such they are nobody's secret."""


def secrets_of_environment(environment: Mapping[str, str] = os.environ) -> set[str]:
    """Values of the variables whose names say that they hold a secret (`OPENAI_API_KEY`, `HF_TOKEN`, ...).

    Values shorter than 8 characters are left alone: they would tear holes into ordinary text. Of the URLs with a
    password in other variables (`HTTPS_PROXY`) it is the part with the password.
    """
    named = {v for name, v in environment.items() if _NAME_OF_A_SECRET.search(name) and len(v) >= _SHORTEST}
    return named | {found[0] for value in environment.values() for found in _passwords_in(value)}


def secrets_of_configuration(value: Any) -> Iterator[str]:
    """The keys in a configuration of dicts and lists, and the passwords in its URLs."""
    match value:
        case dict():
            for name, item in value.items():
                if name in _KEYS_IN_A_CONFIGURATION and isinstance(item, str | int):
                    yield str(item)
                yield from secrets_of_configuration(item)
        case list():
            for item in value:
                yield from secrets_of_configuration(item)
        case str():
            for found in _passwords_in(value):
                yield from (found[0], found["password"])


def without_secrets(value: Any) -> Any:
    """The configuration with `[redacted]` in the place of keys and of passwords in URLs, however short they are."""
    match value:
        case dict():
            return {
                name: _REPLACEMENT if name in _KEYS_IN_A_CONFIGURATION and item else without_secrets(item)
                for name, item in value.items()
            }
        case list():
            return [without_secrets(item) for item in value]
        case str():
            return _USER_AND_PASSWORD.sub(rf"//\g<user>:{_REPLACEMENT}@", value)
    return value


def hidden(values: Mapping[str, Any]) -> dict[str, str]:
    """The names of a mapping, with `[redacted]` in the place of every value."""
    return dict.fromkeys(values, _REPLACEMENT)


class Redaction:
    """A set of secret values that can be taken out of text.

    Args:
        secrets: the values; shorter ones than 8 characters are ignored, unless they are of the form `//user:word@`.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._public: frozenset[str] = WORDS_OF_RECORDS
        self._text: re.Pattern[str] | None = None
        self._bytes: re.Pattern[bytes] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Knows further values from now on."""
        new = {s for s in map(str.strip, secrets) if _is_distinctive(s)} - self._secrets
        if not new:
            return
        self._secrets |= new
        spellings = {form for secret in self._secrets for form in _spellings(secret)}
        in_json = {form for spelling in spellings for form in _spellings(spelling)}
        cut_off = {s[:_LONGEST_BEGINNING] for s in spellings if len(s) > _LONGEST_BEGINNING}
        beginnings = [rf"{re.escape(s)}[^\s'\"]*?(?=\.\.\.)" for s in sorted(cut_off)]
        self._text = re.compile("|".join([*map(re.escape, _longest_first(spellings)), *beginnings]))
        encoded = [re.escape(s.encode("utf-8", "surrogatepass")) for s in _longest_first(in_json)]
        self._bytes = re.compile(b"|".join(encoded))

    def sparing(self, texts: Iterable[str]) -> Self:
        """The same secrets for records of which whole values may be one of these texts: names of files, say."""
        other = type(self)(self._secrets)
        other._public = self._public | frozenset(texts)
        return other

    def scrub(self, text: str) -> str:
        """The text with every known secret replaced by `[redacted]`, also one that was cut off with `...`."""
        return self._text.sub(_replacement, text) if self._text else text

    def scrub_json(self, encoded: bytes) -> bytes:
        """The same for the texts in JSON, which may be a part of a document that cuts no text in two.

        Names of fields, numbers and the structure stay as they are, whatever a secret is, and so do the words by which
        records are told apart. Where there is no secret the very same object is returned.
        """
        if self._bytes is None or not self._bytes.search(encoded):
            return encoded
        return _JSON_STRING.sub(self._scrub_token, encoded)

    def _scrub_token(self, found: re.Match[bytes]) -> bytes:
        token = found["text"]
        if found["names_a_field"] or not self._bytes or not self._bytes.search(token):
            return found[0]
        text = json.loads(token)
        if text in self._public or _TIME.fullmatch(text):
            return token
        return json.dumps(self.scrub(text), ensure_ascii=token.isascii()).encode()


def _passwords_in(text: str) -> Iterator[re.Match[str]]:
    return _USER_AND_PASSWORD.finditer(text)


def _is_distinctive(secret: str) -> bool:
    return len(secret) >= _SHORTEST or bool(re.fullmatch("//.*:.+@", secret))


def _replacement(found: re.Match[str]) -> str:
    return f"//{_REPLACEMENT}@" if re.fullmatch("//.*:.+@", found[0]) else _REPLACEMENT


def _longest_first(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=len, reverse=True)


def _spellings(secret: str) -> set[str]:
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return {secret} | escaped
