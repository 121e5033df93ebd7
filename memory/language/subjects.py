"""Who and what a sentence is about and names.

`split_subject`, `read_context` and `read_timeframe` read the parts of a belief's card (B2), `find_named_subject` the
name that a sentence begins with (E3), `find_entities` all names in it, `as_introduction` its speaker's own (L3).
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from itertools import dropwhile, pairwise, takewhile

from memory.domain.policy_memories import BoxPolicy
from memory.language.dates import WEEKDAY_OF
from memory.language.quantities import MONTH_OF
from memory.language.sentences import list_words
from memory.language.words import (
    ENGLISH_AUXILIARIES,
    ENGLISH_PAST,
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    GERMAN_STOPS,
    PEOPLE,
    is_verb_form,
    stem_english,
    word_list,
    word_set,
)


class Timeframe(StrEnum):
    """When a statement holds (B2)."""

    PAST = "past"
    CURRENT = "current"
    ALWAYS = "always"


_CONTEXT = re.compile(
    r"\b(?:when|while|during|if|unless|in (?:the )?(?:morning|evening|winter|summer)s?|at (?:work|home|night)|"
    r"on (?:mon|tues|wednes|thurs|fri|satur|sun)days|wenn|beim|während|im (?:Winter|Sommer|Büro)|zu Hause|"
    r"morgens|abends|freitags|montags|for (?=\w+ (?:projects?|work|releases?|reports?|trips?)))\b[^,.;]*",
    re.IGNORECASE,
)
_MAX_CONTEXT = 80


def read_context(statement: str) -> str:
    """Read the condition under which a statement is said to hold; 'general' if none (B10)."""
    found = _CONTEXT.search(statement)
    return found.group().strip()[:_MAX_CONTEXT] if found else "general"


_ALWAYS = re.compile(
    r"\b(?:always|never|every|must|rule|immer|nie|niemals|jede[nmrs]?|muss|grundsätzlich)\b", re.IGNORECASE
)


def read_timeframe(statement: str, *, german: bool) -> Timeframe:
    """Read when a statement holds from its adverbs and its tense."""
    if _ALWAYS.search(statement):
        return Timeframe.ALWAYS
    return Timeframe.PAST if is_past(statement, german=german) else Timeframe.CURRENT


_SUBJECT_END = re.compile(
    r"\s(?=(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|never|always|usually|"
    r"ist|sind|war|hat|haben|wird|werden|kann|soll|sollen|muss|müssen|darf|will|mag|möchte)\b)",
    re.IGNORECASE,
)

_OPENS_WITH_CLAUSE = re.compile(
    r"(?:It|It's|There|To|When|While|If|Since|As|After|Before|Although|Because|In|On|At|With|For|Every|Next|Almost)\s"
)

_CALENDAR_PATTERN = re.compile(
    r"\w+day|January|February|March|April|May|June|July|August|September|October|November|December|I\b|[A-Z]+\b"
)
_CONTRACTED = re.compile(r"(\w+)'s (?=(?:a|an|the|so|very|always|all|been|great|important|awesome|normal|more)\b)")
_MAX_SUBJECT_WORDS = 6

_DETERMINERS = word_set(
    "the a an all every each no some any most both his her their its "
    "der die das ein eine alle jede jeder jedes kein keine"
)


def split_subject(statement: str, *, speaker: str = "") -> tuple[str, str]:
    """Part a statement into who or what it is about and what it says of them."""
    statement = statement.rstrip(".")
    if speaker and statement.startswith(f"{speaker} "):
        return speaker, statement.removeprefix(speaker).strip()
    named = _find_name(statement, speaker=speaker) if _OPENS_WITH_CLAUSE.match(statement) else ""
    if named:
        return named, statement
    contracted = _CONTRACTED.match(statement)
    if contracted:
        return contracted[1], f"is {statement[contracted.end() :]}"
    end = _SUBJECT_END.search(statement)
    if end and len(statement[: end.start()].split()) <= _MAX_SUBJECT_WORDS:
        return statement[: end.start()], statement[end.end() :]
    return _lead_by_name(statement)


def _find_name(statement: str, *, speaker: str) -> str:
    """Find who a sentence is about that opens with something else: the speaker, else the first name in it."""
    if speaker and speaker in statement:
        return speaker
    written = list_words(statement)
    names = [place for place in range(1, len(written) - 1) if _may_be_name(written[place])]
    acting = [place for place in names if is_verb_form(written[place + 1].lower())]
    return written[(acting or names)[0]] if names else ""


def _may_be_name(word: str) -> bool:
    return word[0].isupper() and not _CALENDAR_PATTERN.match(word)


def _lead_by_name(statement: str) -> tuple[str, str]:
    """End the subject before the first word that is a verb; a command has the first word for its subject."""
    listed = statement.split()
    if not listed:
        return "", ""
    first = 2 if listed[0].lower() in _DETERMINERS else 1
    for count in range(first, min(len(listed), _MAX_SUBJECT_WORDS + 1)):
        word = listed[count].lower()
        if is_verb_form(word) and not word.endswith("ing") and listed[0].lower() not in ENGLISH_VERBS:
            return " ".join(listed[:count]), " ".join(listed[count:])
    return " ".join(listed[:first]), " ".join(listed[first:])


_PAST_GERMAN = re.compile(
    r"\b(?:war|waren|hatte|hatten|wurde|wurden|ging|kam|gab|sagte|machte|wollte|"
    r"brauchte|fragte|konnte|musste|stellte|zeigte|merkte|kaufte|arbeitete|[a-zäöüß]{2,}(?:ierte|elte|erte|tete))\b"
)


def is_past(statement: str, *, german: bool) -> bool:
    """Tell whether the statement's first verb is in the past."""
    if german:
        return _PAST_GERMAN.search(statement) is not None
    written = ["", *(word.lower() for word in list_words(statement))]
    return any(
        (word in _CLEARLY_PAST or _is_past_form(word)) and before not in ENGLISH_AUXILIARIES
        for before, word in pairwise(written[:5])
    )


_CLEARLY_PAST = (ENGLISH_PAST | word_set("was had did were")) - word_set("put set let cut read cost quit hit")


def _is_past_form(word: str) -> bool:
    return word.endswith("ed") and word not in {"need", "feed", "speed", "shared", "used", "red"}


_TOKEN = re.compile(r"[\w.&'’-]*\w")
_OWNED = re.compile(r"['’]s?$")
_MOST_LEADING = 7  # words of a time or place before the subject
_TIMES = frozenset(word_list("leading_words"))
_BETWEEN = frozenset(word_list("between_name_and_verb"))
_NOT_NAMES = _TIMES | _BETWEEN | frozenset(word_list("not_names")) | ENGLISH_STOPS | GERMAN_STOPS
_CALENDAR_WORDS = WEEKDAY_OF.keys() | MONTH_OF.keys()
_TITLES = frozenset(("dr", "prof", "mr", "mrs", "ms", "st", "frau", "herr"))
_BE = frozenset(("is", "was", "ist", "war"))
_PLURAL = frozenset(("are", "were", "have", "do", "sind", "waren", "haben"))
_SAYS_WHO = frozenset(word_list("says_who_it_is"))
_STATES = frozenset(word_list("states_of_people"))
_DEEDS = frozenset(word_list("deeds_of_people"))
_STEMS_OF_DEEDS = frozenset(map(stem_english, _DEEDS))


def find_named_subject(sentence: str, *, language: str = "") -> frozenset[str]:
    """Return the words of the name that a sentence begins with and tells something of, in lower case; else nothing.

    A time or place may come first ("From June on Bruno works at the mill"). Where it says who somebody is ("Dana is
    the manager"), it may be about either, and of what is somebody's it is not about them.
    """
    tokens = _without_time(sentence)
    name = list(takewhile(_is_leading_name, tokens))
    rest = _after_name(tokens)
    if not name or len(name) > 3 or any(map(_is_owner, name)) or not _tells_of(rest, language):
        return frozenset()
    return frozenset(word.lower() for word in name) - _TITLES


def find_named_person(sentence: str, *, language: str = "") -> frozenset[str]:
    """Return the same where it tells what people do or are, and things are not."""
    first, *rest = _after_name(_without_time(sentence)) or [""]
    said = next((word for word in (first, *rest) if not _is_helping(word)), "")
    is_somebody = first in _BE and bool(rest) and rest[0] in _STATES
    is_deed = said in _DEEDS or (language != "de" and stem_english(said) in _STEMS_OF_DEEDS)
    return find_named_subject(sentence, language=language) if is_somebody or is_deed else frozenset()


def find_owner(sentence: str) -> str:
    """Return of whom a sentence begins to tell what is theirs, in lower case ("Bruno's car is red"), or ""."""
    tokens = _without_time(sentence)
    return _OWNED.sub("", tokens[0]).lower() if tokens and _is_owner(tokens[0]) else ""


def _without_time(sentence: str) -> list[str]:
    """Return the words of a sentence from its first name on, a time or place before it left out; none without one."""
    tokens: list[str] = _TOKEN.findall(sentence)
    start = next((place for place, token in enumerate(tokens[:_MOST_LEADING]) if _is_leading_name(token)), None)
    return [] if start is None or (start and tokens[0].lower() not in _TIMES) else tokens[start:]


def _after_name(tokens: Sequence[str]) -> list[str]:
    """Return what follows a name, from the verb on."""
    return list(dropwhile(_BETWEEN.__contains__, (token.lower() for token in dropwhile(_is_leading_name, tokens))))


def _is_leading_name(token: str) -> bool:
    plain = token.lower().strip(".'’-")
    is_word = plain in _NOT_NAMES or plain.removesuffix("s") in ENGLISH_VERBS | _CALENDAR_WORDS
    return token[:1].isupper() and len(plain) > 1 and not is_word


def _is_owner(word: str) -> bool:
    return _OWNED.search(word) is not None


def _tells_of(rest: Sequence[str], language: str) -> bool:
    """Tell whether what follows a name is a verb, and does not only say who that is."""
    if not rest or not _is_verb(rest[0], language):
        return False
    return rest[0] not in _BE or (len(rest) > 1 and rest[1] not in _SAYS_WHO and not _is_owner(rest[1]))


def _is_verb(word: str, language: str) -> bool:
    if word in _PLURAL:
        return False
    if word in ENGLISH_AUXILIARIES | ENGLISH_PAST | _BE or word.endswith(("n't", "n’t", "ed")):
        return True
    ends = ("s", "t") if language == "de" else ("s",)
    return len(word) > 2 and word.endswith(ends) and not word.endswith("ss") and not _is_owner(word)


def _is_helping(word: str) -> bool:
    return word in ENGLISH_AUXILIARIES | _BETWEEN or word in ("used", "to") or word.endswith(("n't", "n’t"))


MOST = 8

_CALENDAR_NAMES = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar "
    "märz mai juni juli oktober dezember christmas easter weihnachten ostern"
)

_NO_NAMES = word_set(
    "i ok okay god mom mum dad user nutzer assistant assistent tbh lol btw fyi asap etc am pm gonna gotta wanna"
)

_OPENERS = word_set(
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
        if _is_entity_word(word, is_first=place == 0 and not _leads_as_name(written)):
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


def _is_entity_word(word: str, *, is_first: bool) -> bool:
    plain = word.casefold().removesuffix("'s")
    if (
        plain in ENGLISH_STOPS
        or plain in GERMAN_STOPS
        or {plain, plain.removesuffix("s")} & (_CALENDAR_NAMES | _NO_NAMES)
    ):
        return False
    if "'" in word.removesuffix("'s") or not word[0].isalpha():
        return False
    if _TECHNICAL.search(word):
        return True
    return word[0].isupper() and not is_first


_NAME_WORD = re.compile(r"[^\W_]+")
_STOPS = ENGLISH_STOPS | GERMAN_STOPS


def names_any(*, query: str, names: Collection[str]) -> bool:
    """Tell whether one of the names stands in a query, word for word, in any case; "Mara's" names Mara."""
    asked = _phrase(_casefolded_words(query))
    phrases = (_phrase(words) for name in names if not _STOPS.issuperset(words := _casefolded_words(name)))
    return any(phrase in asked for phrase in phrases)


def _casefolded_words(text: str) -> list[str]:
    return _NAME_WORD.findall(text.casefold())


def _phrase(words: list[str]) -> str:
    return f" {' '.join(words)} "


_SHORTEST_TOPIC = 3


def topics_of(*, names: Sequence[str], text: str, policy: BoxPolicy) -> tuple[str, ...]:
    """Return what a memory is about: whom and what it names, or else its longest words."""
    if names:
        return tuple(dict.fromkeys(names))
    words = dict.fromkeys(word.casefold() for word in list_words(text))
    telling = [word for word in words if len(word) >= _SHORTEST_TOPIC and word not in _STOPS]
    return tuple(sorted(telling, key=lambda word: (-len(word), word))[: policy.keywords])


# After "I am" and "Ich bin" a capital says little: of names only those that are nothing else.
_FIRST_NAMES = word_set(
    "mia anna ana emma lena lea lina laura lisa julia sophie sophia sofia marie maria mara nina nora clara klara "
    "paula hannah hanna johanna charlotte emily emilia amelie ida frieda helena elena eva sarah sara katharina "
    "kathrin katrin christina kristina stefanie melanie nicole sandra petra sabine susanne monika claudia andrea "
    "birgit ingrid ursula renate heike martina silke anke antje olivia ava isabella amelia evelyn abigail "
    "elizabeth ella chloe zoe zoë lucy alice jane kate katie megan rachel rebecca jessica jennifer ashley amanda "
    "samantha natalie heather michelle karen linda barbara patricia susan margaret dorothy nancy deborah helen "
    "diana priya aisha fatima leila layla yuki mei astrid freya tom tim tobias lukas lucas leon luca jonas jon "
    "john jan finn felix paul max maximilian moritz ben benjamin noah elias emil anton oskar oscar jakob jacob "
    "julian david daniel michael thomas andreas stefan stephan peter klaus jürgen wolfgang hans heinz uwe ralf "
    "dieter bernd matthias sebastian alexander philipp philip florian fabian simon niklas nils lars sven dirk "
    "jens torsten thorsten holger markus marcus martin james robert william richard joseph charles christopher "
    "matthew anthony andrew joshua kevin brian george edward ronald timothy jason jeffrey ryan nicholas eric "
    "jonathan stephen samuel gregory patrick alex sam henry oliver liam ethan logan mason aiden jackson carlos "
    "diego pablo juan miguel pedro luis jorge antonio marco giovanni luigi pierre antoine omar ali ahmed hassan "
    "ibrahim mohammed muhammad raj arjun rahul wei hiroshi kenji ivan dmitri igor sergei olga natasha svetlana "
    "tatiana"
)
_CAPITALISED_NAME = r"(?P<name>[^\W\d_a-zäöüß][\w'’-]*(?: [^\W\d_a-zäöüß][\w'’-]*){0,2})"
_SENTENCE_END = r"\s*[.!]*$"
_OPENING = r"(?i:(?:(?:hi|hello|hey|hallo|moin|servus|guten tag)(?: there| everyone| zusammen)?[,!.]? )?)"
_CALLED = re.compile(rf"{_OPENING}(?i:my name(?: is|['’]s)|i(?:['’]m| am) called) {_CAPITALISED_NAME}{_SENTENCE_END}")
_HEISSE = re.compile(rf"{_OPENING}(?i:ich hei(?:ß|ss)e|mein name ist) {_CAPITALISED_NAME}{_SENTENCE_END}")
_I_AM = re.compile(rf"{_OPENING}(?i:i(?:['’]m| am)) {_CAPITALISED_NAME}{_SENTENCE_END}")
_ICH_BIN = re.compile(rf"{_OPENING}(?i:ich bin)(?: (?:die|der))? {_CAPITALISED_NAME}{_SENTENCE_END}")
_ENGLISH, _GERMAN = "My name is {}.", "Mein Name ist {}."


def as_introduction(*, sentence: str, known: Collection[str] = ()) -> str:
    """Return "My name is Mia." for a sentence that only says who its speaker is, else the sentence.

    `known` are names of people: they are names wherever they stand.
    """
    for pattern, form, is_sure in (
        (_CALLED, _ENGLISH, True), (_HEISSE, _GERMAN, True), (_I_AM, _ENGLISH, False), (_ICH_BIN, _GERMAN, False)
    ):  # fmt: skip
        found = pattern.match(sentence)
        if found and (is_sure or is_persons_name(found["name"], known=known)):
            return form.format(found["name"])
    return sentence


def is_persons_name(name: str, *, known: Collection[str] = ()) -> bool:
    """Tell whether a capitalised name begins with a first name, or is that of somebody known."""
    return name in known or name.split(" ")[0].lower() in _FIRST_NAMES
