"""Of whom or what a sentence tells, where two sentences are held against each other by it (R11).

Unlike a named subject (E3) it is read for things, and for what is somebody's, too: "Mara's dog", "The book club".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.domain.lexicon import ENGLISH_AUXILIARIES, ENGLISH_PAST
from memory.domain.matching.lexicon import load_lexicon
from memory.language.cues import word_list

PERSON = "quidam"  # the person in a subject's words; no other word of either language is like it
_NAMED = PERSON.capitalize()
_MOST_WORDS = 4  # of a subject
_MOST_LEADING = 10  # words before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose it is, "" for nobody's, and the concepts of its own words; none where nobody can tell."""

    owner: str
    words: frozenset[str]

    def may_be(self, other: "Subject") -> bool:
        """Tell whether two may be one: of the same owner, and one has the words of the other."""
        if self.owner and other.owner and self.owner != other.owner:
            return False
        if not self.words or not other.words:
            return self.owner == other.owner
        if self.owner in other.words or other.owner in self.words:
            return False  # somebody, and what is theirs
        return self.words <= other.words or other.words <= self.words


@lru_cache(maxsize=8192)
def read_subject(sentence: str, *, person: str, language: str) -> Subject:
    """Read whom or what a sentence tells of; `person` is the one whose beliefs these are."""
    tokens: list[str] = _TOKEN.findall(put_name(sentence, person=person))
    start = _find_start(tokens, language)
    if start is None:
        return Subject(owner="", words=frozenset())
    owner = _name_owner(tokens[start:], language)
    words = _until_verb(tokens[start + 1 :] if owner else tokens[start:], language)
    if not owner and words and words[0] == _NAMED:
        words = words[:1]  # what follows may be a verb that is not known
    return Subject(owner=owner.lower(), words=frozenset(_concept(word, language) for word in words))


_TOKEN = re.compile(r"[\w.&'’-]*\w['’]?(?=\W|$)|[,;:]")


def put_name(text: str, *, person: str) -> str:
    """Put one name that no other word is like for the person, who may be "the user", and for "Mara's"."""
    alias = r"(?:the |der |die )?(?:user|nutzer(?:in)?)"
    who = rf"(?:{re.escape(person)}|{alias})" if person else alias
    return re.sub(rf"(?<!\w){who}(?P<own>['’]s?|s(?= [A-ZÄÖÜ]))?(?!\w)", _as_named, text, flags=re.IGNORECASE)


def _as_named(found: re.Match[str]) -> str:
    return f"{_NAMED}'s" if found["own"] else _NAMED


def _find_start(tokens: Sequence[str], language: str) -> int | None:
    """Return where the subject begins, behind a time or place; None where that is not plain."""
    if not tokens:
        return None
    if tokens[0].lower() not in _LEADING:
        return 0
    starts = (at for at, token in enumerate(tokens[:_MOST_LEADING]) if at and token.startswith(_NAMED))
    named = next(starts, None)
    if named is not None or language == "de":
        return named
    return next((at for at, token in enumerate(tokens) if at > 1 and token.lower() in ("the", "our", "my")), None)


_LEADING = frozenset((*word_list("leading_words"), *word_list("before_a_subject")))


def _name_owner(tokens: Sequence[str], language: str) -> str:
    """Return whose the subject is, "" for nobody's."""
    first, following = tokens[0], "".join(tokens[1:2])
    if first[:1].isupper() and (bare := re.sub(r"['’]s?$", "", first)) != first:
        return bare
    is_genitive = language == "de" and first[:1].isupper() and first.endswith("s") and following[:1].isupper()
    return first[:-1] if is_genitive else ""


def _until_verb(tokens: Sequence[str], language: str) -> list[str]:
    words: list[str] = []
    for token in tokens:
        lower = token.lower()
        if lower in _AFTER or len(words) == _MOST_WORDS or _is_verb(token, words, language):
            break
        if lower not in _DETERMINERS:
            words.append(token)
    return words


_AFTER = frozenset((*word_list("after_a_subject"), *",;:"))
_DETERMINERS = frozenset(word_list("determiners"))
_GERMAN_VERBS = frozenset((*word_list("german_state_verbs"), "ist", "sind", "war", "hat", "haben", "wird"))


def _is_verb(token: str, before: Sequence[str], language: str) -> bool:
    """Tell whether a word ends the subject as its verb: one that is known, or stands where only a verb can."""
    lower = token.lower()
    if lower in ENGLISH_AUXILIARIES or lower in _GERMAN_VERBS or lower.endswith(("n't", "n’t")):
        return True
    if not before or token[:1].isupper():
        return False
    if language == "de" or lower in ENGLISH_PAST:
        return True
    lexicon = load_lexicon(language)
    is_known = lower.endswith(("s", "ed")) and lexicon.look_up(lower).concept in lexicon.verbs
    is_after_name = len(before) == 1 and before[0][:1].isupper() and lower.endswith("s") and not lower.endswith("ss")
    return is_known or is_after_name


def _concept(word: str, language: str) -> str:
    lower = word.lower().strip("'’")
    return PERSON if word == _NAMED else load_lexicon(language).look_up(lower).concept or lower
