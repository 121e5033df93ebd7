"""Fingerprints of erased words, which tell nothing to whoever lacks the key (L4)."""

import hmac
from hashlib import sha256

from memory.domain.content_hash import content_hash

KEY_BYTES = 32


def digest_of_words(*, key: bytes, user: str, words: str) -> str:
    """Return what is kept of a user's erased episode, by the hash of its words."""
    return _digest(key, "episode", user, words)


def digest_of_statement(*, key: bytes, user: str, statement: str) -> str:
    """Return what is kept of an erased belief, a user's or nobody's."""
    return _digest(key, "belief", user, content_hash(statement))


def _digest(key: bytes, *parts: str) -> str:
    """Return the HMAC-SHA256 of some texts, in hexadecimal; no other texts have the same, however they are cut."""
    message = b"".join(len(data).to_bytes(8, "big") + data for data in (part.encode() for part in parts))
    return hmac.new(key, message, sha256).hexdigest()
