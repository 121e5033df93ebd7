"""How things are named and recognized: public ids, actors, origins, hashes of words, digests of erased words.

The rule is Origin.
"""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256

_DIGITS = 12
FEWEST_DIGITS = 4  # of the beginning of an id that programs may name it by


class IdKind(StrEnum):
    """What an id begins with, for the kind of thing that it names."""

    EPISODE = "ep"
    BELIEF = "bl"
    CYCLE = "cy"
    TURN = "tn"  # of a conversation, while it waits to be read


def id_pattern(*kinds: IdKind) -> str:
    """Return the regular expression of a whole id of any of these kinds, unanchored."""
    return f"{_prefix(kinds)}_[0-9a-f]{{{_DIGITS}}}"


def beginning_pattern(*kinds: IdKind, fewest: int = FEWEST_DIGITS) -> str:
    """Return the regular expression of an id of any of these kinds, whole or cut short, unanchored."""
    return f"{_prefix(kinds)}_[0-9a-f]{{{fewest},{_DIGITS}}}"


def is_whole(memory_id: str) -> bool:
    """Tell whether a memory's id is whole, and not the beginning of one."""
    return len(memory_id.partition("_")[2]) == _DIGITS


def _prefix(kinds: tuple[IdKind, ...]) -> str:
    return kinds[0] if len(kinds) == 1 else f"(?:{'|'.join(kinds)})"


def turn_id_of(number: int) -> str:
    """Return the public id of the turn whose row has this number."""
    return f"{IdKind.TURN}_{number:0{_DIGITS}x}"


def turn_number_of(memory_id: str) -> int | None:
    """Return the number of the row that a turn's whole id names; None for any other id."""
    kind, _, digits = memory_id.partition("_")
    return int(digits, 16) if kind == IdKind.TURN and is_whole(memory_id) else None


def is_turn_id(memory_id: str) -> bool:
    """Tell by an id, or by the beginning of one, whether it is a turn's."""
    return memory_id.startswith(f"{IdKind.TURN}_")


def is_episode_id(memory_id: str) -> bool:
    """Tell by a memory's id whether it is an episode's; any other is a belief's."""
    return memory_id.startswith(f"{IdKind.EPISODE}_")


class ActorKind(StrEnum):
    """What kind of actor it is."""

    CYCLE = "cycle"
    KEY = "key"
    PERSON = "person"
    COMMAND = "command"  # that a person gave
    SYSTEM = "system"  # what runs by itself: nobody's word on anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One that changes memories, as the history names it: `cycle cy_…`, `key engram_ab12`, `person lena`."""

    kind: ActorKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def read_actor(name: str) -> Actor:
    """Read an actor as the history names it."""
    kind, _, rest = name.partition(" ")
    return Actor(kind=ActorKind(kind), name=rest)


EXTRACTION_ACTOR = Actor(kind=ActorKind.SYSTEM, name="extract_turns")  # reads conversations
MAINTENANCE_ACTOR = Actor(kind=ActorKind.SYSTEM, name="maintain_memory")  # what is done from time to time

# Makes beliefs stand as was recorded. History that was written before automatic passes had a kind of their own calls it
# a command.
REBUILD_ACTOR = Actor(kind=ActorKind.SYSTEM, name="rebuild_beliefs")
REBUILD_NAMES = (str(REBUILD_ACTOR), f"{ActorKind.COMMAND} {REBUILD_ACTOR.name}")


def cycle_actor(cycle_id: str) -> Actor:
    """Name a cycle as the one who acts."""
    return Actor(kind=ActorKind.CYCLE, name=cycle_id)


def origin_of(*, session: str, document: str, user: str, source: str, occurred_at: datetime) -> str:
    """Name the origin: the session, else the document, else user, source and UTC day of what happened."""
    if session:
        return f"session:{session}"
    if document:
        return f"document:{document}"
    return f"day:{occurred_at.astimezone(UTC).date().isoformat()}:{source}:{user}"


# A sentence ends after a letter: beside a digit or a symbol a mark may carry meaning (1.5, C++., C#:).
_MARKS = re.compile(r"[.,;:!?]+(?=\s|$)")
_ENDS_A_SENTENCE = frozenset(".!?")


def content_hash(text: str) -> str:
    """Return the SHA-256, in hexadecimal, of a text's words: NFKC, casefold, white space collapsed, no end marks."""
    return hashlib.sha256((_words_of(text) or text).encode()).hexdigest()


def holds_words(*, text: str, said: str) -> bool:
    """Tell whether a text holds all that was said, word for word and in one piece."""
    return f" {_words_of(said)} " in f" {_words_of(text)} "


def _words_of(text: str) -> str:
    return _drop_end_marks(" ".join(unicodedata.normalize("NFKC", text).casefold().split()))


def _drop_end_marks(words: str) -> str:
    """Remove the marks that end a sentence, or the whole text, directly after a letter."""
    return _MARKS.sub(lambda marks: "" if _is_final(words, marks) else marks.group(), words)


def _is_final(words: str, marks: re.Match[str]) -> bool:
    ends = marks.end() == len(words) or not _ENDS_A_SENTENCE.isdisjoint(marks.group())
    # Combining marks are the vowels of many scripts.
    return ends and marks.start() > 0 and unicodedata.category(words[marks.start() - 1])[0] in "LM"


KEY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnIdentity:
    """A turn of a conversation, as far as it can be told that it comes again."""

    user: str
    session: str
    project: str  # its slug; empty: none
    role: str
    content: str
    turn_id: str | None
    occurred_at: datetime | None  # None: whoever sent it did not say


def digest_of_words(*, key: bytes, user: str, words: str) -> str:
    """Return what is kept of a user's erased episode, by the hash of its words."""
    return _digest(key, "episode", user, words)


def digest_of_statement(*, key: bytes, user: str, statement: str) -> str:
    """Return what is kept of an erased belief, a user's or nobody's."""
    return _digest(key, "belief", user, content_hash(statement))


def digests_of_turn(*, key: bytes, turn: TurnIdentity, fewest_words: int) -> set[str]:
    """Return what is kept of an erased turn, and what one that comes in is held against.

    A turn comes again with its id, or with its words at the time at which they were said. Without either nobody can
    tell a replay from somebody who says the same again: then its words alone count, unless they are too few. An id, or
    a time, is the same turn's in whatever project; words alone are not.
    """
    return {_digest(key, *marks) for marks in _marks(turn, fewest_words)}


def _marks(turn: TurnIdentity, fewest_words: int) -> Iterator[tuple[str, ...]]:
    session, words = (turn.user, turn.session), (turn.role, content_hash(turn.content))
    if turn.turn_id:
        yield "turn by its id", *session, turn.turn_id
    if turn.occurred_at:
        yield "turn by its time", *session, *words, turn.occurred_at.astimezone(UTC).isoformat()
    elif not turn.turn_id and len(turn.content.split()) >= fewest_words:
        yield "turn by its words", *session, turn.project, *words


def _digest(key: bytes, *parts: str) -> str:
    """Return the HMAC-SHA256 of some texts, in hexadecimal; no other texts have the same, however they are cut."""
    message = b"".join(len(data).to_bytes(8, "big") + data for data in (part.encode() for part in parts))
    return hmac.new(key, message, sha256).hexdigest()
