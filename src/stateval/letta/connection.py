"""Which Letta server is meant, and a client for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from stateval.errors import MissingExtra, ModelUnavailable, PermanentModelError, TargetError

if TYPE_CHECKING:
    from letta_client import AsyncLetta

_LOCAL = "http://localhost:8283"
_CLOUD = "https://api.letta.com"
_PERMANENT = (400, 401, 403, 404, 405, 409, 413, 422)
_SECONDS = 60.0
_REPEATS = 2


@dataclass(frozen=True, slots=True)
class LettaServer:
    """A Letta server, the key for it and the project in it."""

    base_url: str
    api_key: str | None = None
    project_id: str | None = None

    @classmethod
    def of(
        cls, *, base_url: str | None = None, api_key: str | None = None, project_id: str | None = None
    ) -> LettaServer:
        """What is given, else what `LETTA_BASE_URL`, `LETTA_API_KEY` and `LETTA_PROJECT_ID` say.

        Without any address that is Letta Cloud where there is a key, else `http://localhost:8283`. Raises
        MissingExtra where the package `letta-client` is not installed.
        """
        if find_spec("letta_client") is None:
            raise MissingExtra("Letta agents", "letta")
        key = (api_key or os.environ.get("LETTA_API_KEY") or "").strip() or None
        address = base_url or os.environ.get("LETTA_BASE_URL") or (_CLOUD if key else _LOCAL)
        return cls(address.rstrip("/"), key, project_id or os.environ.get("LETTA_PROJECT_ID") or None)

    def client(self) -> AsyncLetta:
        """A client for one event loop.

        It repeats what can be repeated without harm; whoever sends a message, which an agent would hear twice, turns
        that off.
        """
        from letta_client import AsyncLetta

        return AsyncLetta(
            base_url=self.base_url,
            api_key=self.api_key,
            project_id=self.project_id,
            timeout=_SECONDS,
            max_retries=_REPEATS,
        )

    async def check(self, client: AsyncLetta, agent_id: str | None = None) -> None:
        """Asks whether the server is there, takes the key, and knows the agent. Raises ModelUnavailable."""
        import letta_client

        try:
            if agent_id is None:
                await client.agents.list(limit=1)
            else:
                await client.agents.retrieve(agent_id)
        except (letta_client.AuthenticationError, letta_client.PermissionDeniedError) as error:
            advice = "set `LETTA_API_KEY` or `api_key`" if not self.api_key else "is it the one of this server?"
            raise ModelUnavailable(f"the Letta server {self} refuses the key ({said(error)}); {advice}") from error
        except (letta_client.NotFoundError, letta_client.UnprocessableEntityError) as error:
            if agent_id is None:
                raise ModelUnavailable(f"{self} does not answer as a Letta server does: {said(error)}") from error
            raise ModelUnavailable(f"the Letta server {self} has no agent `{agent_id}` ({said(error)})") from error
        except letta_client.APIConnectionError as error:
            raise ModelUnavailable(
                f"no Letta server answers at {self} ({said(error)}); start one with `letta server`, or set "
                "`LETTA_BASE_URL`, `base_url` or `--base-url`"
            ) from error
        except letta_client.LettaError as error:
            raise ModelUnavailable(f"the Letta server {self} does not work: {said(error)}") from error

    def __str__(self) -> str:
        return self.base_url


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Whatever goes wrong with the server inside becomes a TargetError that says what was asked and what came.

    What a TargetError from inside says is put after it.

    An error that will come again is caused by a PermanentModelError.
    """
    import httpx
    from letta_client import APIStatusError, LettaError

    try:
        yield
    except TargetError as error:
        raise TargetError(f"{what}: {error}", cause_type=error.cause_type) from error.__cause__
    except (LettaError, httpx.HTTPError, JSONDecodeError) as error:
        told = f"{what}: {said(error)}"
        is_permanent = isinstance(error, APIStatusError) and error.status_code in _PERMANENT
        cause = PermanentModelError(told) if is_permanent else error
        raise TargetError(told, cause_type=type(error).__name__) from cause


def said(error: Exception) -> str:
    """What a server said of a failure, with the status where there is one."""
    from letta_client import APIConnectionError, APIStatusError

    if isinstance(error, APIStatusError):
        text = _said_in(error.body) or str(error) or type(error).__name__
        return text if error.status_code == 200 else f"HTTP {error.status_code}: {text}"
    if isinstance(error, APIConnectionError):
        cause = error.__cause__
        return f"{str(error).rstrip('.')}: {cause}" if cause is not None and str(cause) else str(error).rstrip(".")
    return str(error) or type(error).__name__


def _said_in(body: Any) -> str:
    """The texts in the body of an error, whichever of the servers' shapes it has."""
    if not isinstance(body, dict):
        return str(body).strip() if body else ""
    if isinstance(body.get("error"), dict):
        return _said_in(body["error"])
    kind = body.get("error_type") or body.get("type") or body.get("code")
    texts = [body.get(name) for name in ("error", "message", "detail")]
    named = list(dict.fromkeys(text if isinstance(text, str) else str(text) for text in texts if text))
    first = ": ".join(str(part) for part in (kind, *named[:1]) if part)
    return f"{first} ({'; '.join(named[1:])})" if named[1:] else first or str(body)
