"""The requests that a language model answers, as plain values.

Each may name the person whose memory it is about: the one who says "I" where a text names no speaker (E2).
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar


class Purpose(StrEnum):
    """Why a model is called."""

    SYNTHESIZE = "synthesize"
    CLASSIFY = "classify"
    REVISE = "revise"
    SPLIT = "split"
    MERGE = "merge"
    SUMMARIZE = "summarize"
    CONTRADICT = "contradict"
    READ = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeText:
    """An episode as a model sees it: its matter, without the speaker's prefix; no prompt shows the id."""

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
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBelief:
    """A belief as a model sees it; what a reply says of it is told by the id, which no prompt shows."""

    statement: str
    subject: str
    context: str
    language: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationRequest:
    """Ask what each episode says about each of some beliefs, whose ids differ.

    The similarities (reference scale, one per belief and episode) are a hint for rules; no prompt and no hash holds
    them.
    """

    purpose: ClassVar[Purpose] = Purpose.CLASSIFY
    beliefs: tuple[StatedBelief, ...]
    episodes: tuple[EpisodeText, ...]
    similarities: tuple[tuple[float, ...], ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRequest:
    """Ask what is to be believed instead: the disproved belief, and episodes with their verdicts on it (B15)."""

    purpose: ClassVar[Purpose] = Purpose.REVISE
    belief: StatedBelief
    episodes: tuple[EpisodeText, ...]
    verdicts: tuple[str, ...]
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRequest:
    """Ask in which two circumstances a belief holds and does not: episodes with their verdicts on it (B12)."""

    purpose: ClassVar[Purpose] = Purpose.SPLIT
    belief: StatedBelief
    episodes: tuple[EpisodeText, ...]
    verdicts: tuple[str, ...]
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """Ask whether two beliefs say the same (B13), the better evidenced one first.

    The similarity (reference scale) is a hint for rules; no prompt and no hash holds it.
    """

    purpose: ClassVar[Purpose] = Purpose.MERGE
    beliefs: tuple[StatedBelief, StatedBelief]
    similarity: float
    episodes: tuple[EpisodeText, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnText:
    """A turn of a conversation as a model sees it: its matter, and the number by which facts quote it."""

    number: int
    role: str
    text: str
    speaker: str = ""
    said_on: str = ""
    is_beside: bool = False  # shown for what it tells of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """Ask for the few sentences that some turns of a conversation come down to (R8)."""

    purpose: ClassVar[Purpose] = Purpose.SUMMARIZE
    turns: tuple[TurnText, ...]
    episodes: tuple[EpisodeText, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContradictionRequest:
    """Ask which of some beliefs a fact contradicts, if any (R3); the episode is the one that the fact was read from.

    The episode's own words are in no prompt: the fact is what it says.
    """

    purpose: ClassVar[Purpose] = Purpose.CONTRADICT
    fact: StatedBelief
    beliefs: tuple[StatedBelief, ...]
    episodes: tuple[EpisodeText, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaRequest:
    """Ask for the one belief that several beliefs come down to (R7); the episodes are those that bear them out.

    The episodes' own words are in no prompt. How sure each belief is may be told.
    """

    purpose: ClassVar[Purpose] = Purpose.SYNTHESIZE
    beliefs: tuple[StatedBelief, ...]
    confidences: tuple[float, ...] = ()
    episodes: tuple[EpisodeText, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(EpisodeText):
    """A message as a reader sees it; one that is not to be read helps to understand the others.

    `role` is user, assistant or tool; `speaker` is the name by which a user is told of.
    """

    role: str = "user"
    session: str = ""
    is_read: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBelief:
    """A belief as a reader sees it: the day since when it holds, and the last one on which it did where it ended."""

    id: str
    statement: str
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRequest:
    """Ask what one person's new messages, in the order in which they were said, do to what is believed (F1).

    `person` is the name by which their speaker is told of, `names` what else they are called. Where the message is one
    that somebody asked to have remembered, what it says is worth it.
    """

    purpose: ClassVar[Purpose] = Purpose.READ
    person: str
    today: str
    episodes: tuple[Message, ...]
    beliefs: tuple[ShownBelief, ...] = ()
    names: tuple[str, ...] = ()
    is_to_be_remembered: bool = False

    @property
    def read(self) -> tuple[Message, ...]:
        """Return the messages that are to be read; a reply numbers them from 1."""
        return tuple(message for message in self.episodes if message.is_read)


Request = (
    SynthesisRequest
    | ClassificationRequest
    | RevisionRequest
    | SplitRequest
    | MergeRequest
    | SummaryRequest
    | ContradictionRequest
    | MetaRequest
    | ReadingRequest
)
_UNHASHED_HINTS = ("similarities", "similarity", "confidences")


@lru_cache(maxsize=64)  # asked for when looking for a reply, when reserving and when reusing
def hash_request(*, request: Request) -> str:
    """Return the SHA-256 of what a prompt is made from, in hex; a hint or a fence does not change it.

    Nor does how sure beliefs are: that moves with every word on them, and no question is asked anew for it.
    """
    content = {"purpose": request.purpose.value, **asdict(request)}
    for hint in _UNHASHED_HINTS:
        content.pop(hint, None)
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def halve_request(*, request: Request) -> tuple[Request, Request] | None:
    """Split what asks about several episodes in two; None where there is nothing to split.

    A reading is halved by whoever applies it: its second half is read against what came of the first.
    """
    return _halve_classification(request) if isinstance(request, ClassificationRequest) else None


def _halve_classification(request: ClassificationRequest) -> tuple[Request, Request] | None:
    """Halve the beliefs, as if each had been asked about by itself; of what asks about one, halve the episodes."""
    rows = request.similarities
    if len(request.beliefs) > 1:
        middle = len(request.beliefs) // 2
        early, late = (
            replace(request, beliefs=request.beliefs[part], similarities=rows[part])
            for part in (slice(None, middle), slice(middle, None))
        )
    elif len(request.episodes) > 1:
        middle = len(request.episodes) // 2
        early, late = (
            replace(request, episodes=request.episodes[part], similarities=tuple(row[part] for row in rows))
            for part in (slice(None, middle), slice(middle, None))
        )
    else:
        return None
    return early, late
