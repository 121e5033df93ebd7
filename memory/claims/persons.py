"""By which name somebody is told of: the speaker's, the user's where it can be a name, else none (E2)."""

from memory.domain.user_names import name_of_user


def person_of(*, user: str, speaker: str = "", language: str = "") -> str:
    """Name who says "I": the speaker, else the user whose id can be a name, else "the user"."""
    return speaker.strip() or name_of_user(user=user.strip()) or ("Der Nutzer" if language == "de" else "The user")
