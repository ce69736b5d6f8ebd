"""Real Letta servers on loopback, each with a scripted model behind it.

with letta_server("0.16.8", ModelServer("Hello")) as server:
    LettaServer.of(base_url=server.base_url)
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from letta_client import Letta

from tests.integration.environments import letta_server_environment, python_of
from tests.support.model_server import ModelServer

_NOBODY = 65534
_SECONDS_TO_START = 120.0
_RUN = "import sys; sys.argv[0] = 'letta'; from letta.main import app; app()"


@dataclass(frozen=True)
class RunningServer:
    """A server that answers. `log` is what it prints, `client` talks with it; `kill` ends it as `kill -9` does."""

    release: str
    base_url: str
    model: ModelServer
    client: Letta
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def agent_type(self) -> str:
        """The newest kind of agent that the release knows."""
        return "memgpt_v2_agent" if self.is_old else "letta_v1_agent"

    @property
    def is_old(self) -> bool:
        """Whether it is of the generation whose agents speak through a tool."""
        return self.release.startswith("0.11.")

    @property
    def model_settings(self) -> dict[str, Any]:
        """The fields of `agents.create` that point to the scripted model."""
        endpoint = {"model_endpoint_type": "openai", "model_endpoint": self.model.base_url}
        embedding = {"embedding_endpoint_type": "openai", "embedding_endpoint": self.model.base_url}
        return {
            "llm_config": {"model": "scripted", "context_window": 32_000, **endpoint},
            "embedding_config": {
                "embedding_model": "letters",
                "embedding_dim": 26,
                "embedding_chunk_size": 300,
                **embedding,
            },
        }

    def handle(self, model: str) -> str:
        """The handle under which the release takes a model of the scripted endpoint."""
        return f"openai/{model}" if self.is_old else f"openai-proxy/{model}"

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def letta_server(release: str, model: ModelServer, *, password: str | None = None) -> Iterator[RunningServer]:
    """Starts a release and waits until it answers. Raises Unreachable where it cannot be installed.

    With `password` the server wants it as key.
    """
    environment = letta_server_environment(release)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="letta-", ignore_cleanup_errors=True)))
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LETTA_", "OPENAI_"))},
            "HOME": str(home),
            "LETTA_DIR": str(home / ".letta"),
            "OPENAI_API_KEY": "not-secret",
            "OPENAI_API_BASE": model.base_url,
        }
        if release != "0.11.7":
            database = stack.enter_context(_postgres(environment, home / "postgres"))
            variables["LETTA_PG_URI"] = f"postgresql://{database}?ssl=disable"
            _make_tables(environment, database, variables)
        arguments = ["server", "--host", "127.0.0.1", "--port", str(port := free_port())]
        if password is not None:
            variables["LETTA_SERVER_PASSWORD"] = password
            arguments.append("--secure")
        log = home / "server.log"
        with log.open("wb") as printed:
            command = [python_of(environment), "-c", _RUN, *arguments]
            process = subprocess.Popen(
                command, env=variables, cwd=home, stdout=printed, stderr=printed, start_new_session=True
            )
        address = f"http://127.0.0.1:{port}"
        client = stack.enter_context(Letta(base_url=address, api_key=password or "any", max_retries=0))
        server = RunningServer(release, address, model, client, log, process)
        stack.callback(server.kill)
        _wait_for(server)
        yield server


def free_port() -> int:
    """A port of this machine on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(server: RunningServer) -> None:
    give_up = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < give_up and server.process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"{server.base_url}/v1/health/", timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    said = server.log.read_text("utf-8", "replace")[-3000:]
    raise RuntimeError(f"the Letta server {server.release} did not start:\n{said}")


@contextmanager
def _postgres(environment: Path, directory: Path) -> Iterator[str]:
    """A PostgreSQL with vectors of its own; gives `user@host:port/database`. It refuses to run as root."""
    as_root = os.getuid() == 0
    user: Mapping[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if as_root else {}
    directory.mkdir()
    packages = next((environment / "lib").glob("python*/site-packages"))
    if as_root:  # The environment may lie where nobody else can read.
        directory.parent.chmod(0o711)
        for name in ("pgserver", "pgserver.libs"):
            shutil.copytree(packages / name, directory / name, symlinks=True)
        shutil.chown(directory, _NOBODY, _NOBODY)
    programs = (directory if as_root else packages) / "pgserver" / "pginstall"
    data, port = directory / "data", free_port()
    quiet: Mapping[str, Any] = {"cwd": directory, "stdin": subprocess.DEVNULL, "env": {**os.environ, "LC_ALL": "C"}}
    initialise = [programs / "bin" / "initdb", "-D", data, "-U", "letta", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(initialise, check=True, capture_output=True, **quiet, **user)
    with (directory / "postgres.log").open("wb") as log:
        serve = [programs / "bin" / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", directory, "-F"]
        process = subprocess.Popen(serve, stdout=log, stderr=log, **quiet, **user)
    try:
        create = [programs / "bin" / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "letta", "letta"]
        _until_it_works(create)
        yield f"letta@127.0.0.1:{port}/letta"
    finally:
        process.terminate()
        process.wait()


def _until_it_works(command: list[Any]) -> None:
    for _ in range(100):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL did not start: {done.stderr}")


def _make_tables(environment: Path, database: str, variables: Mapping[str, str]) -> None:
    script = Path(__file__).with_name("postgres_tables.py")
    command = [python_of(environment), "-W", "ignore", str(script), f"postgresql+asyncpg://{database}"]
    done = subprocess.run(command, env=dict(variables), capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise RuntimeError(f"the tables of the Letta server could not be made:\n{done.stderr[-3000:]}")
