"""Tell a clause of its speaker in the third person, by the name that they are told of by (E2, E5).

Unlike `first_person`, it always returns a sentence; what is not of the speaker stays.
"""

import re

from memory.language.first_person import inflect_german, to_third_singular
from memory.language.words import (
    ENGLISH_AUXILIARIES,
    ENGLISH_MODALS,
    ENGLISH_PAST,
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    common_words,
    word_list,
    word_set,
)

_TOKEN = re.compile(r"\w+(?:['./:,-]\w+)*|[^\w\s]|\s+")
_WHOLE = {"'m": "am", "'ve": "have", "'ll": "will", "'d": "would", "'re": "are"}

_CONTRACTED = {
    **{f"i{end}": ("i", verb) for end, verb in _WHOLE.items() if end != "'re"},
    **{f"we{end}": ("we", verb) for end, verb in _WHOLE.items() if end != "'m"},
    "im": ("i", "am"),
    "ive": ("i", "have"),
    "ill": ("i", "will"),
}

_ADVERBS = word_set(
    "also always never usually often just still really definitely totally mostly only already sometimes generally "
    "rarely "
    "normally actually currently now truly absolutely strongly typically hardly almost even ever both all do does "
    "particularly especially honestly personally deeply not no longer again finally mainly sort kind"
)

_BE = {
    "am": "is", "are": "is", "was": "was", "were": "was", "have": "has", "do": "does", "don't": "doesn't",
    "dont": "doesn't", "haven't": "hasn't", "aren't": "isn't", "weren't": "wasn't", "can't": "can't", "cant": "can't",
    "go": "goes",
}  # fmt: skip

_UNINFLECTED = word_set(
    "can could will would shall should may might must won't wouldn't shouldn't couldn't mustn't didn't hadn't wasn't "
    "had did used cannot ought"
)
_AMBIGUOUS_PAST = word_set("put cut let set read cost hit hurt quit shut spread ran")
_ING = re.compile(r"^\w{2,}ing$")

_LISTENER = {
    "you": "the assistant", "your": "the assistant's", "yours": "the assistant's", "you're": "the assistant is",
    "you've": "the assistant has", "you'll": "the assistant will", "yourself": "itself", "u": "the assistant",
}  # fmt: skip


def tell_of(*, clause: str, name: str, german: bool = False) -> str:
    """Return a clause about its speaker as one about `name`, capitalised and closed; what is not of them stays."""
    told = _German(clause, name).tell() if german else _English(clause, name).tell()
    told = re.sub(r"\s+([,.;:!])", r"\1", re.sub(r"\s{2,}", " ", told)).strip(" .,;:-–—!…")
    return f"{told[:1].upper()}{told[1:]}{'' if told.endswith('?') else '.'}" if told else ""


def is_present_verb(word: str) -> bool:
    """Tell whether a word behind "I" is a verb in the present: a known one, or an unknown one that ends like a verb."""
    return word in ENGLISH_VERBS or (
        word.isalpha()
        and len(word) > 2
        and not word.endswith(("ed", "ing", "ly"))
        and (word.endswith("ss") or not word.endswith("s"))
        and word not in _NO_VERBS
    )


_NO_VERBS = (
    ENGLISH_STOPS
    | ENGLISH_AUXILIARIES
    | ENGLISH_PAST
    | _ADVERBS
    | _UNINFLECTED
    | _BE.keys()
    | common_words()
    | frozenset(word_list("no_verbs"))
)


class _English:
    """One clause, token by token: the speaker's first mention is the name, later ones are they and their."""

    def __init__(self, clause: str, name: str) -> None:
        self.tokens = _expand(_TOKEN.findall(clause))
        self.name, self.is_named = re.sub(r"^The (?=[a-z])", "the ", name), False
        self.has_rival = re.search(r"\b(?:they|them|their|he|she|him|her|his)\b", clause, re.IGNORECASE) is not None
        self.out: list[str] = []
        self.subject_verb = False

    def tell(self) -> str:
        place = 0
        while place < len(self.tokens):
            place = self._step(place, self.tokens[place].lower())
        return "".join(self.out)

    def _step(self, place: int, word: str) -> int:
        if word in ("i", "we") and not self._is_enumeration(place):
            return self._subject(place)
        if word in ("my", "our"):
            return self._say("their" if self._may_shorten() else _possessive(self.name), place)
        if word in ("me", "us"):
            return self._say("them" if self._may_shorten() else self.name, place)
        if word in ("mine", "ours"):
            return self._say(_possessive(self.name), place)
        if word in ("myself", "ourselves"):
            return self._say("themselves", place, is_mention=False)
        if word in ("you", "u") and self._acts(place):
            return self._inflected(self._say(_LISTENER[word], place, is_mention=False))
        if word in _LISTENER:
            return self._say(_LISTENER[word], place, is_mention=False)
        if word in ("and", "but", "or") and self.subject_verb:
            return self._coordinate(place)
        return self._say(self.tokens[place], place, is_mention=False)

    def _is_enumeration(self, place: int) -> bool:
        return self.tokens[place + 1 : place + 2] == [")"] or "".join(self.tokens[place : place + 3]).lower() == "i/o"

    def _may_shorten(self) -> bool:
        return self.is_named and not self.has_rival

    def _say(self, word: str, place: int, *, is_mention: bool = True) -> int:
        self.out.append(word)
        self.is_named = self.is_named or is_mention
        return place + 1

    def _subject(self, place: int) -> int:
        plural, is_one = self._may_shorten(), self.tokens[place].lower() == "i"
        self._say("they" if plural else self.name, place)
        place += 1
        while place < len(self.tokens) and (self.tokens[place].isspace() or _is_adverb(self.tokens[place].lower())):
            if self.tokens[place].lower() in ("do", "does") and not plural:
                break
            self.out.append(self.tokens[place])
            place += 1
        if place >= len(self.tokens):
            return place
        verb = self.tokens[place].lower()
        self.subject_verb = not plural and not self._is_fixed(verb)
        self.out.append(
            verb if plural and verb != "am" else "are" if plural else self._inflect(self.tokens[place], is_one)
        )
        return place + 1

    @staticmethod
    def _is_fixed(verb: str) -> bool:
        is_past = verb in ENGLISH_PAST and verb not in _AMBIGUOUS_PAST
        return (
            verb in _UNINFLECTED or is_past or (verb.endswith("ed") and verb not in ("need", "feed", "speed", "embed"))
        )

    def _inflect(self, token: str, is_one: bool = False) -> str:
        verb = token.lower()
        if verb in _BE:
            return _BE[verb]
        if (
            not verb.isalpha()
            or verb in ENGLISH_MODALS
            or self._is_fixed(verb)
            or (_ING.match(verb) and verb not in ("bring", "sing"))
        ):
            return token
        return to_third_singular(verb) if verb in ENGLISH_VERBS or (is_one and is_present_verb(verb)) else token

    def _coordinate(self, place: int) -> int:
        """Inflect the verb that a coordination shares with the speaker (`I cook and freeze it`)."""
        self.out.append(self.tokens[place])
        return self._inflected(place + 1)

    def _inflected(self, place: int) -> int:
        """Say adverbs and the verb that follows, in the third person; what is no verb is left."""
        while place < len(self.tokens) and (self.tokens[place].isspace() or _is_adverb(self.tokens[place].lower())):
            self.out.append(self.tokens[place])
            place += 1
        if place < len(self.tokens) and self.tokens[place].lower() in ENGLISH_VERBS | {"have", "do", "don't"}:
            self.out.append(self._inflect(self.tokens[place]))
            return place + 1
        return place

    def _acts(self, place: int) -> bool:
        """Tell whether who is spoken to does something, and is not told or given it."""
        before = next((token.lower() for token in reversed(self.tokens[:place]) if not token.isspace()), "")
        return before not in _BEFORE_OBJECTS


_BEFORE_OBJECTS = (
    word_set("to for with of from at on about by than like let") | ENGLISH_VERBS | ENGLISH_PAST | ENGLISH_AUXILIARIES
)


def _expand(tokens: list[str]) -> list[str]:
    out: list[str] = []
    for token in tokens:
        pair = _CONTRACTED.get(token.lower())
        before = [one.lower() for one in out if not one.isspace()][-1:]
        if pair and ("'" in token or not before or before[0] in _OPENS):
            out += [pair[0], " ", pair[1]]
        else:
            out.append(token)
    return out


_OPENS = frozenset({",", ";", "-", "–", "and", "but", "so", "that", "because", "if", "when", "now", "then"})


def _is_adverb(word: str) -> bool:
    return word in _ADVERBS - {"do", "does", "not", "have"} or (
        word.endswith("ly") and word not in ("rely", "fly", "apply", "reply", "supply")
    )


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") and not name.startswith("the ") else f"{name}'s"


_GERMAN_VERBS = {
    "bin": "ist",
    "sind": "ist",
    "habe": "hat",
    "hab": "hat",
    "haben": "hat",
    "werde": "wird",
    "werden": "wird",
}

_GERMAN_MODAL = {
    "wollen": "will",
    "können": "kann",
    "müssen": "muss",
    "sollen": "soll",
    "dürfen": "darf",
    "mögen": "mag",
    "möchten": "möchte",
}


class _German:
    """A German clause; a verb beside ich or wir takes the ending of the third person."""

    def __init__(self, clause: str, name: str) -> None:
        self.clause, self.name = clause, name

    def tell(self) -> str:
        told = re.sub(r"\b(?:[Ii]ch|[Ww]ir)'s\b", "ich es", self.clause)
        told = re.sub(
            r"\b(?P<verb>[a-zäöüß]+)['’]?(?: es)? (?P<who>ich|wir)\b", self._inverted, told, flags=re.IGNORECASE
        )
        told = re.sub(r"\b(?P<who>ich|wir) (?P<verb>[a-zäöüß]+)\b", self._straight, told, flags=re.IGNORECASE)
        told = re.sub(r"\b(?:ich|wir)\b", self.name, told, flags=re.IGNORECASE)
        owner = f"{self.name}’" if self.name.endswith(("s", "ß", "x", "z")) else f"{self.name}s"
        told = re.sub(r"\b(?:mein|unser|unsr)(?:e[nmrs]?)?\b", owner, told, flags=re.IGNORECASE)
        told = re.sub(
            r"\b(?:mich|mir|uns)\b",
            "sich" if re.search(rf"\b{re.escape(self.name)}\b", told) else self.name,
            told,
            flags=re.IGNORECASE,
        )
        told = re.sub(r"\b(?:du)\b", "der Assistent", told, flags=re.IGNORECASE)
        return re.sub(r"\b(?:dir|dich)\b", "den Assistenten", told, flags=re.IGNORECASE)

    def _straight(self, found: re.Match[str]) -> str:
        return f"{self.name} {_third_german(found['verb'], found['who'])}"

    def _inverted(self, found: re.Match[str]) -> str:
        verb = found["verb"]
        if not _is_german_verb(verb, found["who"]):
            return f"{verb} {self.name}"
        return f"{_third_german(verb, found['who'])} {self.name}"


def _is_german_verb(word: str, who: str) -> bool:
    lower = word.lower()
    return lower in _GERMAN_VERBS or lower in _GERMAN_MODAL or inflect_german(lower) is not None or (
        who.lower() == "wir" and lower.endswith(("en", "rn", "ln"))
    ) or (who.lower() == "ich" and lower.endswith("e") and len(lower) > 3)  # fmt: skip


def _third_german(verb: str, who: str) -> str:
    lower = verb.lower()
    if lower in _GERMAN_VERBS:
        return _GERMAN_VERBS[lower]
    if lower in _GERMAN_MODAL:
        return _GERMAN_MODAL[lower]
    if who.lower() == "wir":
        if lower.endswith(("ern", "eln")):
            return f"{lower[:-1]}t"
        if not lower.endswith("en"):
            return verb
        lower = lower[:-1]  # wir messen, ich messe
    known = inflect_german(lower) or inflect_german(f"{lower}e")
    if known:
        return known
    if not lower.endswith("e"):
        return (
            f"{verb}t"
            if who.lower() == "ich" and lower.endswith(("b", "ch", "g", "k", "r", "l")) and len(lower) > 3
            else verb
        )
    stem = lower[:-1]
    return stem + ("et" if stem.endswith(("t", "d", "fn", "gn", "chn")) else "t")


# Ids of letters alone that are nobody's name.
_ROLES = word_set("""
    admin administrator agent anon anonymous assistant bot client customer default demo dev guest human local me
    nobody none null operator owner person root self someone somebody system test tester undefined unknown user
    """)
_ASSISTANTS = word_set("ai assistant assistent bot chatbot ki")


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
