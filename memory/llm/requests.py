"""What is asked of a language model, as plain values."""

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar


class Purpose(StrEnum):
    """Why a model is called."""

    SYNTHESIZE = "synthesize"
    CLASSIFY = "classify"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeText:
    """An episode as a model sees it: its matter, without the speaker's prefix."""

    id: str
    text: str
    speaker: str = ""
    language: str = ""
    occurred_on: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisRequest:
    """Ask for the one belief that a cluster's episodes support, the most central episode first."""

    purpose: ClassVar[Purpose] = Purpose.SYNTHESIZE
    episodes: tuple[EpisodeText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationRequest:
    """Ask what each episode says about one belief.

    The similarities (reference scale, one per episode) are a hint for rules; no prompt and no hash holds them.
    """

    purpose: ClassVar[Purpose] = Purpose.CLASSIFY
    statement: str
    subject: str
    context: str
    language: str
    episodes: tuple[EpisodeText, ...]
    similarities: tuple[float, ...] = ()


Request = SynthesisRequest | ClassificationRequest


@lru_cache(maxsize=64)  # asked for when looking for a reply, when reserving and when reusing
def hash_request(*, request: Request) -> str:
    """Return the SHA-256 of what a prompt is made from, in hex; a hint or a fence does not change it."""
    content = {"purpose": request.purpose.value, **asdict(request)}
    content.pop("similarities", None)
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def halve_request(*, request: Request) -> tuple[Request, Request] | None:
    """Split a classification of several episodes in two, or return None where there is nothing to split."""
    if not isinstance(request, ClassificationRequest) or len(request.episodes) < 2:
        return None
    middle = len(request.episodes) // 2
    return _part(request, slice(None, middle)), _part(request, slice(middle, None))


def _part(request: ClassificationRequest, part: slice) -> ClassificationRequest:
    return ClassificationRequest(
        statement=request.statement,
        subject=request.subject,
        context=request.context,
        language=request.language,
        episodes=request.episodes[part],
        similarities=request.similarities[part],
    )
