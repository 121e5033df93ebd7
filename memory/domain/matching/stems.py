"""Cut words to stems: crude, the same for a word and its table entry, and fast."""

import re

_VOWEL = re.compile("[aeiouy]")
_SEPARABLE_PARTICIPLE = re.compile(
    "^(zusammen|ein|aus|an|auf|ab|um|zu|mit|vor|nach|weiter|los|fest|weg|her|hin)ge(?=.{3,}t$|.{3,}en$)"
)
_UMLAUTS = str.maketrans({"ä": "a", "ö": "o", "ü": "u"})
_GERMAN_ENDINGS = (
    "ungen",
    "etest",
    "eten",
    "ete",
    "ung",
    "ern",
    "est",
    "et",
    "en",
    "er",
    "em",
    "es",
    "te",
    "st",
    *"enst",
)


def stem_english(word: str) -> str:
    """Strip plural, -ing, -ed, -ly and -ment from a lower-case English word."""
    if len(word) <= 3 or not word.isalpha():
        return word[:-2] if word.endswith("'s") else word
    return _finish(_strip_suffix(_strip_plural(word)))


def _strip_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _strip_suffix(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for ending, kept in (("ing", 2), ("ed", 2), ("ment", 4), ("ly", 3)):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= kept and _VOWEL.search(rest) and not rest.endswith("e"):
            return rest
    return word


def _finish(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 2 else word


def stem_german(word: str) -> str:
    """Fold umlauts and strip inflection and the participle's ge from a lower-case German word."""
    word = word.replace("ß", "ss").translate(_UMLAUTS)
    if word in _STRONG:
        return _STRONG[word]
    if len(word) <= 3 or not word.isalpha():
        return word
    word = _SEPARABLE_PARTICIPLE.sub(r"\1", word)
    if word.startswith("ge") and len(word) > 6 and word.endswith(("t", "en")):
        word = word[2:]
    for ending in _GERMAN_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("t") and len(word) > 4 else word  # arbeit-en, arbeitet


# Verbs whose stem changes its vowel for he and she: so that "misst" and "messen" are one.
_STRONG = {
    "misst": "mess",
    "isst": "ess",
    "liest": "les",
    "nimmt": "nehm",
    "gibt": "geb",
    "spricht": "sprech",
    "sieht": "seh",
    "trifft": "treff",
    "hilft": "helf",
    "vergisst": "vergess",
    "fahrt": "fahr",
    "lauft": "lauf",
    "schlaft": "schlaf",
    "tragt": "trag",
    "bricht": "brech",
    "wirft": "werf",
}
