"""The language model and the embedding model that the settings name, and what every implementation offers.

`language_model` and `default_embedder` return them, one per process; `preload_models` loads them before a worker
forks. Implementations import this module and are imported when they are needed.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac

from memory.llm.offline import static_embedder
from memory.llm.reader import reader
from memory.llm.types import Embedder, LanguageModel

log = structlog.get_logger(__name__)


def language_model() -> LanguageModel:
    """Return the model that the settings name, one per process."""
    if settings.ENGRAM_LLM == "offline":
        named = _offline_model()
    else:
        named = _openai_model(
            settings.OPENAI_API_KEY,
            settings.OPENAI_BASE_URL,
            settings.ENGRAM_SYNTHESIS_MODEL,
            settings.ENGRAM_CLASSIFICATION_MODEL,
        )
    if settings.ENGRAM_VERDICTS == "local":
        return _local_verdicts_over(named, settings.ENGRAM_VERDICT_MODEL)  # type: ignore[arg-type]  # hashed by identity
    return named


@lru_cache(maxsize=4)
def _local_verdicts_over(base: Any, classifier: str) -> LanguageModel:
    from memory.llm.local import LocalVerdicts

    return LocalVerdicts(base=base, classifier=classifier)


@lru_cache(maxsize=1)
def _offline_model() -> LanguageModel:
    from memory.llm.offline import OfflineModel

    return OfflineModel()


@lru_cache(maxsize=4)
def _openai_model(api_key: str, base_url: str, synthesis_model: str, classification_model: str) -> LanguageModel:
    from memory.llm.openai_models import OpenAIModel

    return OpenAIModel(
        api_key=api_key, base_url=base_url, synthesis_model=synthesis_model, classification_model=classification_model
    )


def default_embedder() -> Embedder:
    """Return the embedding model that the settings name, one per process."""
    match settings.ENGRAM_EMBEDDINGS:
        case "offline":
            return offline_embedder()
        case "static":
            return static_embedder()
        case "openai":
            return remote_embedder(settings.ENGRAM_EMBEDDING_MODEL)
        case "local":
            return local_embedder(settings.ENGRAM_EMBEDDING_MODEL)
    raise ImproperlyConfigured(
        f"ENGRAM_EMBEDDINGS={settings.ENGRAM_EMBEDDINGS} is not one of: offline, static, local, openai"
    )


@lru_cache(maxsize=1)
def offline_embedder() -> Embedder:
    """Return the embedding model that ships with the project, one per process; the settings' default."""
    from memory.llm.offline_embedder import OfflineEmbedder

    return OfflineEmbedder()


def remote_embedder(model: str) -> Embedder:
    """Return a model of the server that the settings name."""
    base_url = settings.ENGRAM_EMBEDDING_BASE_URL or settings.OPENAI_BASE_URL
    return _remote_embedder(base_url, settings.OPENAI_API_KEY, model)


@lru_cache(maxsize=4)
def _remote_embedder(base_url: str, api_key: str, model: str) -> Embedder:
    from memory.llm.openai_models import OpenAIEmbedder

    return OpenAIEmbedder(base_url=base_url, api_key=api_key, model=model)


@lru_cache(maxsize=4)
def local_embedder(named: str) -> Embedder:
    """Return the sentence model of a folder, or of a file in it; raise ModelUnavailable."""
    from memory.llm.local import LocalEmbedder

    return LocalEmbedder(named=named)


def models_folder() -> Path:
    """Return where folders of models may stand, besides where the settings name one."""
    folder: Path = settings.DATA_DIR / "models"
    return folder


def preload_models() -> None:
    """Load what the settings name before a worker forks: its children share the memory and answer at once."""
    model = default_embedder()
    if not model.profile.is_fitted:
        log.warning("embeddings_uncalibrated", model=model.name)
    if settings.ENGRAM_VERDICTS == "local":
        from memory.llm.onnx_models import pair_classifier

        pair_classifier(named=settings.ENGRAM_VERDICT_MODEL)
    reader().load()
    servers = set()
    if settings.ENGRAM_LLM == "openai":
        servers.add(settings.OPENAI_BASE_URL)
    if settings.ENGRAM_EMBEDDINGS == "openai":
        servers.add(settings.ENGRAM_EMBEDDING_BASE_URL or settings.OPENAI_BASE_URL)
    for base_url in sorted(servers):
        from memory.llm import openai_client

        openai_client.preload(base_url=base_url, api_key=settings.OPENAI_API_KEY)


_NAMES = (
    "ENGRAM_LLM", "ENGRAM_EMBEDDINGS", "OPENAI_BASE_URL", "OPENAI_API_KEY", "ENGRAM_EMBEDDING_BASE_URL",
    "ENGRAM_SYNTHESIS_MODEL", "ENGRAM_CLASSIFICATION_MODEL", "ENGRAM_EMBEDDING_MODEL", "ENGRAM_VERDICTS",
    "ENGRAM_VERDICT_MODEL",
)  # fmt: skip


def fingerprint_models() -> str:
    """Return a keyed hash of everything that decides which server answers, and under which key."""
    named = "\n".join(f"{name}={getattr(settings, name)}" for name in _NAMES)
    return salted_hmac("engram.models", named, algorithm="sha256").hexdigest()
