"""What models the settings name, as one hash: a stop over a refused key ends when they change (B9)."""

from django.conf import settings
from django.utils.crypto import salted_hmac

_NAMES = (
    "ENGRAM_LLM", "ENGRAM_EMBEDDINGS", "OPENAI_BASE_URL", "OPENAI_API_KEY", "ENGRAM_EMBEDDING_BASE_URL",
    "ENGRAM_SYNTHESIS_MODEL", "ENGRAM_CLASSIFICATION_MODEL", "ENGRAM_EMBEDDING_MODEL", "ENGRAM_VERDICTS",
    "ENGRAM_VERDICT_MODEL",
)  # fmt: skip


def fingerprint_models() -> str:
    """Return a keyed hash of everything that decides which server answers, and under which key."""
    named = "\n".join(f"{name}={getattr(settings, name)}" for name in _NAMES)
    return salted_hmac("engram.models", named, algorithm="sha256").hexdigest()
