"""By which name somebody is told of: the speaker's, the user's where it can be a name, else none (E2)."""

from memory.domain.lexicon import words

_NOBODY = words(
    "user users owner me self default admin root test guest anonymous nobody human person someone main local demo"
)


def person_of(*, user: str, speaker: str = "", language: str = "") -> str:
    """Name who says "I": the speaker, else the user whose id is letters alone, else "the user"."""
    if speaker.strip():
        return speaker.strip()
    named = user.strip()
    if named.isalpha() and len(named) > 1 and named.lower() not in _NOBODY:
        return named if named[0].isupper() else named.capitalize()
    return "Der Nutzer" if language == "de" else "The user"
