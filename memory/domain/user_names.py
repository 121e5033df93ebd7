"""What a user is called, as far as their id tells."""

from memory.domain.lexicon import words

# Ids of letters alone that are nobody's name.
_ROLES = words("""
    admin administrator agent anon anonymous assistant bot client customer default demo dev guest human local me
    nobody none null operator owner person root self someone somebody system test tester undefined unknown user
    """)


def name_of_user(*, user: str) -> str:
    """Return an id as a name where it is made of letters alone (E2), else ""; nothing else is guessed."""
    if not user.isalpha() or user.casefold() in _ROLES:
        return ""
    return user[0].upper() + user[1:]
