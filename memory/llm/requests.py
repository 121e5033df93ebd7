"""The requests that a language model answers, as plain values.

Each may name the person whose memory it is about: the one who says "I" where a text names no speaker (E2).
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import count, product
from string import ascii_lowercase
from typing import ClassVar


class Purpose(StrEnum):
    """Why a model is called."""

    SYNTHESIZE = "synthesize"
    CLASSIFY = "classify"
    REVISE = "revise"
    SPLIT = "split"
    MERGE = "merge"
    FACTS = "facts"
    SUMMARIZE = "summarize"
    REMEMBER = "remember"
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
class FactsRequest:
    """Ask what facts some turns of a conversation tell (L3)."""

    purpose: ClassVar[Purpose] = Purpose.FACTS
    turns: tuple[TurnText, ...]
    episodes: tuple[EpisodeText, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """Ask for the few sentences that some turns of a conversation come down to (R8)."""

    purpose: ClassVar[Purpose] = Purpose.SUMMARIZE
    turns: tuple[TurnText, ...]
    episodes: tuple[EpisodeText, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberRequest:
    """Ask for the facts that one text claims (R1)."""

    purpose: ClassVar[Purpose] = Purpose.REMEMBER
    episodes: tuple[EpisodeText, ...]
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
class MessageText(EpisodeText):
    """A message as a reader of claims sees it; one that is not to be read helps to understand the others.

    `speaker` is the name by which its speaker is told of.
    """

    role: str = "user"
    session: str = ""
    is_read: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPerson:
    """Which slots of a person are filled; with what is never told, so that no belief echoes itself."""

    name: str
    slots: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsRequest:
    """Ask what some messages assert (E1), those of a session together and in their order."""

    purpose: ClassVar[Purpose] = Purpose.READ
    episodes: tuple[MessageText, ...]
    known: tuple[KnownPerson, ...] = ()

    @property
    def read(self) -> tuple[MessageText, ...]:
        """Return the messages that are to be read."""
        return tuple(message for message in self.episodes if message.is_read)

    def labelled(self) -> dict[str, MessageText]:
        """Return every message by what a reply calls it: a number if it is to be read, else letters."""
        numbers, letters = count(1), _letter_labels()
        return {str(next(numbers)) if one.is_read else next(letters): one for one in self.episodes}


def _letter_labels() -> Iterator[str]:
    for length in count(1):
        yield from map("".join, product(ascii_lowercase, repeat=length))


Request = (
    SynthesisRequest
    | ClassificationRequest
    | RevisionRequest
    | SplitRequest
    | MergeRequest
    | FactsRequest
    | SummaryRequest
    | RememberRequest
    | ContradictionRequest
    | MetaRequest
    | ClaimsRequest
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
    """Split what asks about several episodes, turns or messages in two; None where there is nothing to split."""
    if isinstance(request, FactsRequest) and len(request.turns) > 1:
        half = len(request.turns) // 2
        return replace(request, turns=request.turns[:half]), replace(request, turns=request.turns[half:])
    if isinstance(request, ClaimsRequest) and len(request.read) > 1:
        return _halve_claims_request(request)
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


def _halve_claims_request(request: ClaimsRequest) -> tuple[ClaimsRequest, ClaimsRequest]:
    """Cut between two messages, each half with its own company: a text that spoils a call spoils one half's alone."""
    border = request.episodes.index(request.read[len(request.read) // 2])
    halves = request.episodes[:border], request.episodes[border:]
    first, second = (replace(request, episodes=_without_company(half)) for half in halves)
    return first, second


def _without_company(messages: tuple[MessageText, ...]) -> tuple[MessageText, ...]:
    """Drop the company of a message that is the only one to be read, lest it fails for what stands beside it."""
    read = tuple(message for message in messages if message.is_read)
    return read if len(read) == 1 else messages
