"""Which embedding model a workspace's vectors are of: the settings' where it is new, its own until it is moved."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.llm.embeddings import (
    Embedded,
    Embedder,
    embedder,
    local_embedder,
    models_folder,
    remote_embedder,
    static_embedder,
)
from memory.llm.model import CallFailed, FailureKind
from memory.llm.onnx_folder import file_with, weights_in
from memory.llm.profiles import load_profile
from memory.models import Workspace

STATIC = "wordllama-l2-supercat-256"
_OF_A_FOLDER = re.compile(r"(?P<folder>.+)@(?P<weights>[0-9a-f]{12})-[0-9a-f]{6}")


def embedder_of(workspace: Workspace | int) -> Embedder:
    """Return the model whose vectors a workspace compares; one that cannot be loaded here fails every call."""
    if isinstance(workspace, Workspace):
        name = workspace.embedding_model
    else:
        name = Workspace.objects.values_list("embedding_model", flat=True).get(pk=workspace)
    try:
        return _load(name) if name else embedder()
    except ImproperlyConfigured as error:
        return MissingEmbedder(name=name or settings.ENGRAM_EMBEDDING_MODEL, reason=str(error))


class MissingEmbedder:
    """Stands for a model that cannot be loaded: what needs vectors fails by name, what does not goes on without."""

    is_local = False
    is_multilingual = False

    def __init__(self, *, name: str, reason: str) -> None:
        self.name, self._reason = name, reason

    @property
    def profile(self) -> Profile:
        """Return the profile that ships for the model."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Raise CallFailed."""
        raise CallFailed(f"{self.name} cannot be loaded: {self._reason}", kind=FailureKind.AUTH)

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Raise CallFailed."""
        return Embedded(vectors=self.embed(texts), tokens=0)

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return nothing: there is no model."""
        return None

    def is_overlong(self, text: str) -> bool:
        """Tell nothing."""
        return False


def _load(name: str) -> Embedder:
    """Load a model by the name that its vectors carry."""
    if name == STATIC:
        return static_embedder()
    if match := _OF_A_FOLDER.fullmatch(name):
        return _load_folder(name, folder=match["folder"], weights=match["weights"])
    if settings.OPENAI_API_KEY or settings.ENGRAM_EMBEDDING_BASE_URL or settings.OPENAI_BASE_URL:
        return remote_embedder(name)
    raise ImproperlyConfigured("it is a server's model, and neither OPENAI_API_KEY nor a base URL is set")


def _load_folder(name: str, *, folder: str, weights: str) -> Embedder:
    """Find the folder where the settings' own is, or in the data folder; what its files are must fit the name."""
    own = settings.ENGRAM_EMBEDDING_MODEL if settings.ENGRAM_EMBEDDINGS == "local" else ""
    looked = list(_folders(folder, own))
    for path in looked:
        file = file_with(folder=path, weights=weights)
        if file is None:
            continue
        known = next((one for one in (own, str(path)) if one and weights_in(one) == file), str(file))
        found = local_embedder(known)  # by the name that others know it by: each is loaded once
        if found.name == name:
            return found
    raise ImproperlyConfigured(f"there is no such folder: {' or '.join(map(str, looked))}")


def _folders(folder: str, own: str) -> Iterator[Path]:
    """Name where a folder may be: the settings' own or beside it, or in the data folder."""
    if own:
        path = Path(own).expanduser().resolve()
        above = [one for one in (path, *path.parents) if one.suffix != ".onnx" and one.name != "onnx"]
        yield above[0].parent / folder
    yield models_folder().resolve() / folder
