"""Where a provider's requests go and with which key, by argument or by the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from stateval.errors import MissingKey, UsageError


@dataclass(frozen=True, slots=True)
class Service:
    """What a provider is reached by: its own URL, and the variables that hold another URL and the key.

    `advice` completes "set `KEY` or `api_key`, or ...".
    """

    default_url: str
    url_variable: str | None
    key_variables: tuple[str, ...]
    advice: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. The key is kept out of `repr`; `url_from` and `key_from` say where both were read."""

    base_url: str
    is_default: bool
    api_key: str | None = field(default=None, repr=False)
    url_from: str = "`base_url`"
    key_from: str = "`api_key`"
    service: Service | None = None

    def require_key(self, model: str) -> None:
        """Raises MissingKey where the provider's own endpoint would be called without one."""
        if self.is_default and not self.api_key and self.service is not None:
            raise MissingKey(model, self.service.key_variables[0], self.service.advice)


def endpoint_of(service: Service, base_url: str | None, api_key: str | None) -> Endpoint:
    """The endpoint by argument, else by the service's variables, else the provider's own. Raises UsageError."""
    set_url = os.environ.get(service.url_variable, "") if service.url_variable else ""
    url_from = "`base_url`" if base_url or not set_url else f"`{service.url_variable}`"
    url = (base_url or set_url or service.default_url).strip().rstrip("/")
    if not _is_url(url):
        raise UsageError(f"{url_from} is {url!r}; it must look like `http://127.0.0.1:8000/v1`")
    set_key = next((name for name in service.key_variables if os.environ.get(name)), service.key_variables[0])
    key_from = "`api_key`" if api_key else f"`{set_key}` or `api_key`"
    key = api_key or os.environ.get(set_key) or None
    return Endpoint(url, url == service.default_url, key, url_from, key_from, service)


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
