"""Find the names in a sentence (L3), offline."""

import re
import unicodedata
from collections.abc import Collection, Iterator

from memory.domain.lexicon import ENGLISH_AUXILIARIES, ENGLISH_STOPS, GERMAN_STOPS, PEOPLE, words
from memory.domain.references import is_verb_form
from memory.domain.sentences import list_words

MOST = 8
_CALENDAR = words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar "
    "märz mai juni juli oktober dezember christmas easter weihnachten ostern"
)
_NO_NAMES = words(
    "i ok okay god mom mum dad user nutzer assistant assistent tbh lol btw fyi asap etc am pm gonna gotta wanna"
)
_OPENERS = words(
    "art music life love support health work nobody nothing something everything since when while after before if "
    "although because yesterday today tonight tomorrow last next every each"
)
_ABSTRACT = ("ing", "s", "ly", "ence", "ance", "ness", "tion", "sion", "ment", "ity", "ship", "hood")
# Looked at from where a run of letters begins and nowhere else: from each letter, a word costs its length squared.
_TECHNICAL = re.compile(r"(?<!\w)(?=\w*[a-z])(?=\w+[A-Z0-9+#])|[+#]|\w\.\w|_|^[A-Z]{2,}\d*$")


def find_entities(
    *, text: str, known: Collection[str] = (), own: Collection[str] = (), german: bool = False
) -> tuple[str, ...]:
    """List the names in a text, small and each once: `own` ones in any case, known ones, and what looks like a name.

    In German nouns are capitalised like names: there only known names and technical ones are found.
    """
    lowered = f" {' '.join(list_words(text)).casefold()} "
    spoken = [name for name in known if f" {name.casefold()} " in lowered or f" {name.casefold()}'s " in lowered]
    found = [*own, *sorted(spoken), *(_technical(text) if german else _capitalised(text))]
    return tuple(dict.fromkeys(normalise_entity(name) for name in found))[:MOST]


def normalise_entity(name: str) -> str:
    """Return the one form of a name that entities are kept and compared in: small, in single spaces."""
    return " ".join(name.casefold().split()).removesuffix("'s").removesuffix("’s")


def same_name(name: str) -> str:
    """Return what is left of an entity's name without accents and possessives: names with the same are one."""
    bare = "".join(
        one for one in unicodedata.normalize("NFKD", normalise_entity(name)) if not unicodedata.combining(one)
    )
    return normalise_entity(bare).removesuffix("'").removesuffix("’") or name


def _technical(text: str) -> Iterator[str]:
    return (word for word in list_words(text) if _TECHNICAL.search(word) and not word.isdigit())


def _capitalised(text: str) -> Iterator[str]:
    """Yield runs of capitalised words; one that begins the sentence counts if it is no ordinary word."""
    run: list[str] = []
    written = list_words(text)
    for place, word in enumerate(written):
        if _is_name(word, is_first=place == 0 and not _leads_as_name(written)):
            run.append(word)
        else:
            yield from _close(run)
            run = []
    yield from _close(run)


def _leads_as_name(written: list[str]) -> bool:
    """Tell whether the first word, which is capitalised in any case, is a name: a verb or a further name follows it."""
    first, *rest = written
    plain = first.casefold().removesuffix("'s")
    if not rest or is_verb_form(plain) or plain in PEOPLE or plain in _OPENERS or plain.endswith(_ABSTRACT):
        return False
    follows = rest[0].casefold()
    return first.endswith("'s") or rest[0][0].isupper() or follows in ENGLISH_AUXILIARIES or _is_third_person(follows)


def _is_third_person(word: str) -> bool:
    return word.endswith("s") and is_verb_form(word)


def _close(run: list[str]) -> Iterator[str]:
    if run:
        yield " ".join(run)


def _is_name(word: str, *, is_first: bool) -> bool:
    plain = word.casefold().removesuffix("'s")
    if plain in ENGLISH_STOPS or plain in GERMAN_STOPS or {plain, plain.removesuffix("s")} & (_CALENDAR | _NO_NAMES):
        return False
    if "'" in word.removesuffix("'s") or not word[0].isalpha():
        return False
    if _TECHNICAL.search(word):
        return True
    return word[0].isupper() and not is_first
