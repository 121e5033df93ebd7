"""What a speaker is called (E2): by the name that is given, else by an id that can be a name.

Nothing else is guessed.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenText:
    """Words, who says "I" in them or whom they speak of, and their language."""

    text: str
    speaker: str = ""
    language: str = ""


# Ids that name what somebody is to a program, and so nobody in particular.
_ROLE_IDS = (
    "admin administrator agent anon anonymous assistant bot client customer default demo dev guest human local me "
    "nobody none null operator owner person root self someone somebody system test tester undefined unknown user you"
)
_ROLES = frozenset(_ROLE_IDS.split())
NOBODY = "The user"


def name_speaker(*, user: str, speaker: str = "") -> str:
    """Name who says "I": the speaker, else the user whose id can be a name, else "The user"."""
    return speaker.strip() or name_user(user=user.strip()) or NOBODY


def name_user(*, user: str) -> str:
    """Return an id as a name where it is made of letters alone, else ""."""
    if not user.isalpha() or user.casefold() in _ROLES:
        return ""
    return user[0].upper() + user[1:]


def is_plain_name(name: str) -> bool:
    """Tell whether words can only be a name: few, of letters, and no small ones but "de" or "van" among several."""
    words = name.split(" ")
    is_short = len(name) <= _LONGEST_NAME and len(words) <= _MOST_NAME_WORDS
    if not is_short or not all(_NAME_WORD.fullmatch(word) for word in words):
        return False
    return len(words) == 1 or not any(word[0].islower() and len(word) > _LONGEST_PARTICLE for word in words)


_LONGEST_NAME, _MOST_NAME_WORDS, _LONGEST_PARTICLE = 40, 5, 3
_NAME_WORD = re.compile(r"[^\W_][\w.'’-]*")
