"""Provider for models that run in this process, through xllamacpp (llama.cpp)."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import logging
import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from stateval.deadline import paused
from stateval.errors import MissingExtra, ModelError, ModelUnavailable, PermanentModelError, TransientModelError
from stateval.llm import catalogue
from stateval.llm.catalogue import EmbeddedModel
from stateval.llm.chat import ChatReply, ChatRequest, Schema
from stateval.llm.fetching import pull
from stateval.llm.openai_wire import parameters_of, usage_of
from stateval.llm.prices import EMBEDDED_URL
from stateval.llm.progress import shown_progress

logger = logging.getLogger(__name__)

_LONGEST_ANSWER = 256
_SEED = 1
_MOST_THREADS = 4
_KEPT, _FREE = 0, 1


class EmbeddedProvider:
    """A model of the catalogue. It is fetched and loaded at the first call, once per process.

    Answers are the same whatever was asked before: temperature 0 unless asked otherwise, a fixed seed, and of earlier
    prompts only the `fixed` messages of a request are reused, always from the same computation. (Reusing whatever two
    prompts share, as the runtime would by itself, changes rounding and with it now and then a word.)

    Raises UsageError (unknown name), MissingExtra.
    """

    native_tools = False
    api_url = EMBEDDED_URL

    def __init__(self, name: str) -> None:
        self._model = catalogue.find(name)
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtra("Embedded models", "embedded")
        self.name = self.endpoint = self._model.handle
        self.model = self._model.name
        self.fingerprint = {"provider": "embedded", "model": self._model.name, "sha256": self._model.sha256}

    async def complete(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        """One answer. A call that is cancelled stops writing before the next one begins."""
        engine = await self._engine()
        writing = _Writing(engine, self._body(request, schema), request.fixed)
        try:
            await anyio.to_thread.run_sync(writing.run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
        finally:
            writing.stop.set()
        return writing.reply(self.name)

    async def close(self) -> None:
        """The loaded model stays for other users in this process; it is let go at exit."""

    async def _engine(self) -> _Engine:
        with paused():
            return await anyio.to_thread.run_sync(_loaded, self._model, limiter=anyio.CapacityLimiter(1))

    def _body(self, request: ChatRequest, schema: Schema | None) -> dict[str, Any]:
        body = {"seed": _SEED, "max_tokens": _LONGEST_ANSWER, "temperature": 0.0}
        body |= parameters_of(self._model.name, request, schema, {"tools"})
        return body | {"stream": True, "stream_options": {"include_usage": True}}


class _Engine:
    """A loaded model. Only one thread at a time writes with it.

    One of its two slots keeps what was computed for the fixed messages of the last request that had some; the other
    keeps nothing.
    """

    def __init__(self, model: EmbeddedModel, file: Path) -> None:
        xllamacpp, threads = _runtime()
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(file)
        parameters.n_ctx = model.context * 2
        parameters.n_parallel = 2
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        parameters.warmup = False
        parameters.verbosity = 0
        parameters.cache_ram_mib = 0
        parameters.api_keys = [secrets.token_hex(16)]  # it listens on loopback, and nobody is to call it there
        self.server: Any = xllamacpp.Server(parameters)
        self.lock = threading.Lock()
        self._fixed: list[Any] = []

    def write(self, body: dict[str, Any], fixed: int, take: Callable[[Any], bool]) -> None:
        """Hands the pieces of the answer to `take` until it returns True. The lock must be held."""
        keeps = 0 < fixed < len(body["messages"])
        if keeps:
            self._return_to(body["messages"][:fixed])
        slot = {"id_slot": _KEPT, "cache_prompt": True} if keeps else {"id_slot": _FREE, "cache_prompt": False}
        self.server.handle_chat_completions(body | slot, take)

    def _return_to(self, messages: list[Any]) -> None:
        """Leaves exactly these messages in the slot: as they were computed the first time, or computed anew."""
        known, self._fixed = messages == self._fixed, []
        body = {"messages": messages, "max_tokens": 1, "temperature": 0.0, "id_slot": _KEPT, "cache_prompt": known}
        self.server.handle_chat_completions(body)
        self._fixed = messages


class _Writing:
    """One answer as it is written, in a worker thread; setting `stop` ends it after the next token."""

    def __init__(self, engine: _Engine, body: dict[str, Any], fixed: int) -> None:
        self.stop = threading.Event()
        self._engine, self._body, self._fixed = engine, body, fixed
        self._text: list[str] = []
        self._finish_reason = ""
        self._usage: dict[str, Any] = {}
        self._error: dict[str, Any] | None = None

    def run(self) -> None:
        try:
            with self._engine.lock:
                if not self.stop.is_set():
                    self._engine.write(self._body, self._fixed, self._take)
        except (ValueError, RuntimeError) as error:
            self._error = {"code": 400, "message": str(error)}

    def reply(self, model: str) -> ChatReply:
        if self._error is not None:
            raise _model_error(self._error, model)
        if not self._finish_reason:
            raise TransientModelError(f"model `{model}` stopped before its answer was complete")
        return ChatReply(
            text="".join(self._text), model=model, usage=usage_of(self._usage), finish_reason=self._finish_reason
        )

    def _take(self, chunk: Any) -> bool:
        """Keeps a piece of the answer; True stops the writing."""
        if "error" in chunk:
            self._error = chunk["error"]
            return True
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices") or ():
            self._text.append(choice["delta"].get("content") or "")
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
        return self.stop.is_set()


_engines: dict[Path, _Engine] = {}
_loading = threading.Lock()


def _loaded(model: EmbeddedModel) -> _Engine:
    with _loading:
        file = catalogue.path(model.name)
        if file is None:
            with shown_progress(f"fetching model {model.name}") as progress:
                file = pull(model.name, progress)
        if file not in _engines:
            try:
                _engines[file] = _Engine(model, file)
            except (RuntimeError, ValueError, ImportError) as error:
                raise ModelUnavailable(
                    f"the embedded model `{model.name}` ({file}) cannot be loaded: {error}"
                ) from error
        return _engines[file]


@atexit.register
def _let_go() -> None:
    """Ends the engines while the interpreter is still whole."""
    _engines.clear()


@functools.cache
def _runtime() -> tuple[Any, int]:
    """The runtime, and how many threads compute.

    Threads that spin while they wait for each other bring a busy machine down to under a token a second, so the
    runtime is told to let them sleep, in the variables that it reads when it is imported. Where somebody else has
    imported it before, one thread is the safe number.
    """
    too_late = "xllamacpp" in sys.modules
    policy = os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    import xllamacpp

    if too_late or policy.lower() != "passive":
        return xllamacpp, 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return xllamacpp, min(_MOST_THREADS, available)


def _model_error(error: dict[str, Any], model: str) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        tokens, context = error.get("n_prompt_tokens"), error.get("n_ctx")
        return PermanentModelError(
            f"the conversation ({tokens} tokens) is longer than the {context} of model `{model}`"
        )
    told = f"model `{model}`: {error.get('message')}"
    return TransientModelError(told) if error.get("code") == 503 else PermanentModelError(told)
