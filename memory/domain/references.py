"""Find words that point at something the sentence itself does not name."""

import re
from collections.abc import Sequence

from memory.domain.lexicon import ENGLISH_AUXILIARIES, ENGLISH_PAST, ENGLISH_STOPS, ENGLISH_VERBS, PEOPLE, words
from memory.domain.sentences import drop_quotes

_TOKEN = re.compile(r"[^\W_]+(?:[.'’+#/_-]*[^\W_]+)*[+#]*|[,;:–—]|(?<=\s)-(?=\s)|\(|\)")
_DETERMINERS = words(
    "a an the my your his her its our their every each all no some any both most many several few one two three four "
    "five ten another other such whose"
)
_PRONOUNS = words("i you he she we they it there nobody everyone someone people anyone everybody nothing")
_PREPOSITIONS = words(
    "about of for with after before like to in on at by from over under than as into through without against near "
    "around since during beyond per via behind between"
)
_BOUNDARIES = words(
    "and but because so when if while since that which who to before after until unless where as or then although "
    "though whenever once whether whereas , ; : – — - ( )"
)
_STATES = words("be is are was were am feel feels felt seem seems seemed look looks looked get gets got become")
_THAT_LICENSERS = words(
    "so such now given provided fact rule idea sign reason way time day moment everything anything something all sure "
    "is was"
)
_SAYING = words(
    "think believe say know find prefer require insist feel hope wish note ensure mean claim agree decide suggest "
    "recommend remember understand show see learn explain expect assume argue realise realize notice report state "
    "request demand ask promise warn admit hear forget confirm complain doubt guess imagine suspect worry trust told "
    "taught said thought knew felt found meant decided heard understood saw learnt maintain stress emphasise emphasize "
    "joke want"
)
_DEICTIC_NOUNS = words(
    "project repo repository codebase team company workspace machine user agent organisation organization "
    "year month week summer winter spring autumn morning evening afternoon"
)
_EXPLETIVE_IT = re.compile(
    r"(?:is|was|'s|will be|would be|can be|has been|may be|might be|gets|feels|seems|becomes|became)(?: \w+){0,4}?"
    r" (?:to|that|for|when|if|who|how|whether|because|\w+ing)\b|"
    r"(?:takes|took|costs)(?: \w+){1,5} to\b|(?:helps to|rains|snows|turns out)\b|"
    r"is \S+'s (?:habit|job|rule|task|turn|policy|custom|practice|wish|view|opinion)\b",
    re.IGNORECASE,
)
_FORMAL_OBJECT_IT = re.compile(r"(?:\w+ )?\w+(?: for \w+)? (?:to|that|when)\b", re.IGNORECASE)
_IDIOM_IT = re.compile(r"\b(?:make|makes|made|call|calls|take|takes|get) it (?:a day|work|easy|clear|happen)\b", re.I)
_FORMAL_VERBS = words(
    "find finds found make makes made consider considers think thinks keep keeps leave leaves believe believes"
)

_HANGING_TIME = re.compile(r"\b(?:since|back|until|by|from) then\b", re.IGNORECASE)

_GERMAN_OPENING = re.compile(
    r"(?:das|dies|dieser|diese|dieses|er|sie|es|damit|dafür|davon|daran|dabei)\b", re.IGNORECASE
)
_GERMAN_POINTING_VERB = re.compile(
    r"(?:das|dies) (?:ist|sind|war|wird|hat|kann|muss|soll|macht|geht|hilft|klingt|gilt|finde|mag|klappt|"
    r"funktioniert|liegt|stimmt|bleibt|passt|läuft|sollte|darf|tut|heißt)\b",
    re.IGNORECASE,
)
_GERMAN_EXPLETIVE = re.compile(
    r"es (?:gibt|ist (?:\w+ ){1,3}?(?:,|zu|dass|wenn)|ist [^,]{1,40}, |regnet|schneit|geht um|dauert|lohnt sich|gilt|"
    r"braucht|wird (?:nie|nicht|kein|immer|erst|vor|am|im))",
    re.IGNORECASE,
)
_GERMAN_OBJECT = re.compile(
    r"\b(?:mag|liebt|hasst|findet|macht|hat|will|braucht|kennt|nutzt|liest|sagt|weiß|tut|sieht|glaubt|"
    r"dass|weil|wenn|ob) "
    r"(?:es|das|dies)(?=[ .,!]*$| (?:nicht|sehr|gut|auch|immer|toll|schön|gern|oft|so|ist|war|wird|hilft)\b)",
    re.IGNORECASE,
)
_GERMAN_PLACEHOLDER = re.compile(r"\b(?:findet|hält|macht) es (?:\w+ )+(?:zu|dass|wenn)\b|, (?:dass|zu|wenn|weil)\b")


def has_unresolved_reference(text: str, *, german: bool = False) -> bool:
    """Tell whether a sentence hangs on an it, that, this or they (German es, das, dies) whose antecedent it lacks."""
    unquoted = drop_quotes(text)
    if german:
        return _hangs_in_german(unquoted)
    tokens = [token.replace("’", "'") for token in _TOKEN.findall(unquoted)]
    return _HANGING_TIME.search(unquoted) is not None or any(_hangs(tokens, index) for index in range(len(tokens)))


def _hangs(tokens: Sequence[str], index: int) -> bool:
    word = tokens[index].lower().split("'")[0]
    if word in {"it", "its"} and tokens[index] != "IT":
        return _it_hangs(tokens, index)
    if word == "that":
        return _that_hangs(tokens, index)
    if word in {"this", "these", "those"}:
        return _demonstrative_hangs(tokens, index)
    if word in {"they", "them", "their", "theirs", "he", "him", "his", "she", "her", "hers"}:
        return not _has_person_or_plural(tokens[:index])
    return False


def _it_hangs(tokens: Sequence[str], index: int) -> bool:
    rest = " ".join(tokens[index + 1 :])
    contraction = tokens[index].lower().partition("'")[2]
    if _EXPLETIVE_IT.match(f"'{contraction} {rest}" if contraction else rest):
        return False
    previous = tokens[index - 1].lower() if index else ""
    if previous in _FORMAL_VERBS and _FORMAL_OBJECT_IT.match(rest):
        return False
    if _IDIOM_IT.search(" ".join(tokens[max(0, index - 1) : index + 3])):
        return False
    earlier = tokens[: _last_boundary(tokens, index)]
    is_owned_by_group = tokens[index].lower() == "its" and any(token.lower() in PEOPLE for token in earlier)
    return not (is_owned_by_group or _has_singular_thing(earlier))


def _last_boundary(tokens: Sequence[str], index: int) -> int:
    """Find where the clause of a pronoun begins, since its antecedent stands before that."""
    for position in range(index - 1, -1, -1):
        if tokens[position].lower() in _BOUNDARIES:
            return position
    # A possessive "its" may point back at the subject of its own clause.
    return index - 1 if tokens[index].lower() == "its" else 0


def _has_singular_thing(tokens: Sequence[str]) -> bool:
    return any(_is_thing(tokens, index) for index in range(len(tokens)))


def _is_thing(tokens: Sequence[str], index: int) -> bool:
    """Tell whether a word is a noun for one thing: it follows an article, a possessive, a preposition or a verb."""
    word, previous = tokens[index], tokens[index - 1].lower() if index else ""
    if not word[0].isalnum() or word.lower() in ENGLISH_STOPS or word.lower() in PEOPLE or _is_plural(word):
        return False
    if index == 0:
        return word.endswith("ing") or any(mark in word[1:] for mark in "+#_/-.0123456789") or not word[1:].islower()
    if word.endswith("ly") or (word[0].isupper() and previous in {"and", ","}):
        return False
    follows_determiner = previous in _DETERMINERS or previous.endswith("'s") or previous in _PREPOSITIONS
    follows_verb = is_verb_form(previous) and previous not in _STATES
    return follows_determiner or follows_verb or _is_thing_after_adjective(tokens, index)


def _is_thing_after_adjective(tokens: Sequence[str], index: int) -> bool:
    """Tell whether one word stands between an article or preposition and the noun."""
    return index > 1 and not is_verb_form(tokens[index].lower()) and tokens[index - 2].lower() in _DETERMINERS


def is_verb_form(word: str) -> bool:
    """Tell whether a lower-case word is a form of a known English verb."""
    if word in ENGLISH_VERBS or word in ENGLISH_PAST or word in ENGLISH_AUXILIARIES:
        return True
    stems = {word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ed"), word.removesuffix("d")}
    stems |= {word.removesuffix("ing"), word.removesuffix("ing") + "e", word.removesuffix("ies") + "y"}
    return bool((stems - {word}) & ENGLISH_VERBS)


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))


def _that_hangs(tokens: Sequence[str], index: int) -> bool:
    """Tell a demonstrative "that" from the conjunction and the relative pronoun."""
    if index == 0 or "'" in tokens[index]:
        return index == 0 or tokens[index - 1].lower() in _BOUNDARIES
    following = tokens[index + 1].lower() if index + 1 < len(tokens) else ""
    if not following or not following[0].isalnum():
        return True
    previous = tokens[index - 1].lower()
    if previous in _THAT_LICENSERS or previous in _SAYING or _stem(previous) in _SAYING:
        return False
    if following in _DETERMINERS or following in _PRONOUNS:
        return False
    if previous in _PREPOSITIONS or previous in {"and", "but", "or", ","} or previous in ENGLISH_AUXILIARIES:
        return previous not in {"and", "but", "or", ","} or is_verb_form(following)
    return is_verb_form(previous) and not is_verb_form(following)


def _stem(word: str) -> str:
    for suffix in ("s", "es", "ed", "d", "ing"):
        if word.endswith(suffix) and word.removesuffix(suffix) in _SAYING:
            return word.removesuffix(suffix)
    return word


def _demonstrative_hangs(tokens: Sequence[str], index: int) -> bool:
    following = tokens[index + 1].lower() if index + 1 < len(tokens) else ""
    if tokens[index].lower() == "those" and following in {"who", "of", "that", "with", "in"}:
        return False
    return following not in _DEICTIC_NOUNS


def _has_person_or_plural(tokens: Sequence[str]) -> bool:
    return any(
        token.lower() in PEOPLE
        or _is_plural(token)
        or token.endswith("'s")
        or (token[0].isupper() and token.lower() not in ENGLISH_STOPS)
        for token in tokens
    )


def _hangs_in_german(text: str) -> bool:
    if _GERMAN_EXPLETIVE.match(text):
        return False
    if _GERMAN_POINTING_VERB.match(text):
        return True
    opening = _GERMAN_OPENING.match(text)
    if opening and opening.group().lower() in {"er", "sie", "es", "dies", "damit", "dafür", "davon", "daran", "dabei"}:
        return True
    found = _GERMAN_OBJECT.search(text)
    return found is not None and not _GERMAN_PLACEHOLDER.search(text[found.start() :])
