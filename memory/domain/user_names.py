"""By which name somebody is told of: the speaker's, the user's as far as their id tells, else none (E2)."""

from memory.domain.lexicon import words

# Ids of letters alone that are nobody's name.
_ROLES = words("""
    admin administrator agent anon anonymous assistant bot client customer default demo dev guest human local me
    nobody none null operator owner person root self someone somebody system test tester undefined unknown user
    """)

_ASSISTANTS = words("ai assistant assistent bot chatbot ki")


def person_of(*, user: str, speaker: str = "", language: str = "") -> str:
    """Name who says "I": the speaker, else the user whose id can be a name, else "the user"."""
    return speaker.strip() or name_of_user(user=user.strip()) or ("Der Nutzer" if language == "de" else "The user")


def name_of_user(*, user: str) -> str:
    """Return an id as a name where it is made of letters alone (E2), else ""; nothing else is guessed."""
    if not user.isalpha() or user.casefold() in _ROLES:
        return ""
    return user[0].upper() + user[1:]


def is_assistant(speaker: str) -> bool:
    """Tell whether a speaker is named for being a machine that answers."""
    return speaker.strip().casefold() in _ASSISTANTS
