"""Fingerprints of erased words, which tell nothing to whoever lacks the key (L4)."""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from memory.domain.content_hash import content_hash

KEY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTurn:
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


def digests_of_turn(*, key: bytes, turn: ToldTurn, fewest_words: int) -> set[str]:
    """Return what is kept of an erased turn, and what one that comes in is held against.

    A turn comes again with its id, or with its words at the time at which they were said. Without either nobody can
    tell a replay from somebody who says the same again: then its words alone count, unless they are too few. An id, or
    a time, is the same turn's in whatever project; words alone are not.
    """
    return {_digest(key, *marks) for marks in _marks(turn, fewest_words)}


def _marks(turn: ToldTurn, fewest_words: int) -> Iterator[tuple[str, ...]]:
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
