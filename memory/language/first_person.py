"""First person: find it, and turn a first-person sentence into one about its speaker where that is safe, else None.

`list_claims` does so for every sentence of a turn that claims something. A turn greets, thanks, asks and tells in one
breath, so that its cosine as a whole says little: its sentences are compared one by one, without the speaker's name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memory.language.refusals import NOTHING_SAID, Refusal, is_german, refuse_statement
from memory.language.sentences import (
    drop_quotes,
    drop_shared,
    list_shortened,
    split_sentences,
    strip_opening,
    strip_pictographs,
)
from memory.language.words import ENGLISH_MODALS, ENGLISH_PAST, ENGLISH_VERBS, word_set

_FIRST_ENGLISH = re.compile(
    r"(?<![\w/])(?:I(?!\s*/|\w|\.\w)|i(?=['’](?:m|ve|d|ll)\b| )|[Mm]e|[Mm]y|[Mm]yself|[Ww]e|us|Us|[Oo]urs?|"
    r"[Oo]urselves)"
    r"(?![\w-])"
)
_ROMAN = re.compile(r"\b(?:War|Phase|Part|Chapter|Stage|Type|Class|Volume|Act|Teil|Band|Kapitel) I\b")

_FIRST_GERMAN = re.compile(
    r"\b(?:ich|mich|mir|wir|uns|mein(?:e[nmrs]?)?|unser(?:e[nmrs]?|n|m)?|unsre[nmrs]?)\b", re.IGNORECASE
)


def is_first_person(text: str, language: str = "") -> bool:
    """Tell whether the writer speaks of themselves outside quotes; both languages are tried if none is given."""
    unquoted = _ROMAN.sub(" ", drop_quotes(text))
    tag = language.lower()[:2]
    if tag != "de" and _FIRST_ENGLISH.search(unquoted):
        return True
    return tag != "en" and _FIRST_GERMAN.search(unquoted) is not None


def to_third_person(sentence: str, *, speaker: str, language: str = "") -> str | None:
    """Rewrite a statement by `speaker` about themselves as one about them, or answer None where that is not safe."""
    plain = sentence.replace("’", "'").strip()
    if not is_first_person(plain, language):
        return None if re.search(r"\by(?:ou|our|ours|ourself)\b", plain, re.IGNORECASE) else plain
    if "?" in plain or drop_quotes(plain) != plain or not speaker.strip():
        return None
    if language.lower().startswith("de") or (not language and not _FIRST_ENGLISH.search(plain)):
        return _German(plain, speaker.strip()).rewrite()
    return _English(plain, speaker.strip()).rewrite()


_UNSAFE_ENGLISH = re.compile(
    r"\b(?:we|us|our|ours|ourselves|let's|you|your|yours|you're|yourself|y'all|mine|myself|told me|asked me|"
    r"remind(?:s|ed)? me|said|says|i guess|i think so|i mean|i swear|i bet|thou|between me)\b|\bI\s*/|\bwe'|\byou'",
    re.IGNORECASE,
)

_ADVERBS = word_set(
    "also always never usually often just still really definitely totally mostly only already sometimes generally "
    "rarely normally actually currently now truly absolutely strongly typically hardly almost even ever both "
    "particularly especially honestly personally probably deeply sure"
)
_LY_VERBS = word_set("rely fly apply reply supply")

_SUBORDINATORS = word_set(
    "because that when if while since as so before after until unless where though although what how which who "
    "whenever once than whether"
)
_CONTRACTIONS = {"i'm": "is", "i've": "has", "i'll": "will"}
_AMBIGUOUS_PAST = frozenset({"put", "cut", "let", "set", "read", "cost", "hit", "hurt", "quit", "shut", "spread"})
_WORDS = re.compile(r"\w+(?:[-'./]\w+)*|[^\w\s]|\s+")


class _English:
    """One sentence on its way into the third person; every doubt raises `_UnsafeError`."""

    def __init__(self, sentence: str, speaker: str) -> None:
        self.tokens = _WORDS.findall(sentence)
        self.speaker = speaker
        self.out: list[str] = []
        self.is_named = False
        self.is_subject = False
        self.is_present = False
        self.sentence = sentence

    def rewrite(self) -> str | None:
        if _UNSAFE_ENGLISH.search(self.sentence) or self._has_rival():
            return None
        try:
            self._walk()
        except _UnsafeError:
            return None
        text = "".join(self.out)
        return text[:1].upper() + text[1:]

    def _has_rival(self) -> bool:
        """Tell whether another "they" is about, so that "their" would not be the speaker's."""
        return re.search(r"\b(?:they|them|their|he|she|him|her|his)\b", self.sentence, re.IGNORECASE) is not None

    def _walk(self) -> None:
        position = 0
        while position < len(self.tokens):
            step = self._handler(self.tokens[position].lower())
            position = step(position)

    def _handler(self, word: str) -> Callable[[int], int]:
        if word == "i" or word in _CONTRACTIONS or word == "i'd":
            return self._subject
        if word in {"me", "my"}:
            return self._oblique
        if word in {"and", "or", "but"} and self.is_present:
            return self._coordinate
        return self._copy

    def _copy(self, position: int) -> int:
        self.out.append(self.tokens[position])
        return position + 1

    def _oblique(self, position: int) -> int:
        possessive = self.tokens[position].lower() == "my"
        if self.is_named:
            self.out.append("their" if possessive else "them")
        else:
            self.out.append(self._possessive() if possessive else self.speaker)
            self.is_named = True
        return position + 1

    def _possessive(self) -> str:
        return f"{self.speaker}'" if self.speaker.endswith("s") else f"{self.speaker}'s"

    def _subject(self, position: int) -> int:
        """Rewrite I and the verb that follows it, over adverbs in between."""
        word = self.tokens[position].lower()
        plural = self.is_subject and not self._drops_into_coordination()
        self._name_subject(plural=plural)
        if word in _CONTRACTIONS:
            verb = _CONTRACTIONS[word]
            self.out.append(" " + ({"is": "are", "has": "have"}.get(verb, verb) if plural else verb))
            self.is_present = verb != "will"
            return position + 1
        following = self._skip_adverbs(position + 1)
        if following >= len(self.tokens):
            raise _UnsafeError
        if word == "i'd":
            return self._conditional(position, following)
        self.out.extend(self.tokens[position + 1 : following])
        self.out.append(self._inflect(self.tokens[following], plural=plural))
        return following + 1

    def _conditional(self, position: int, following: int) -> int:
        """Read "I'd" as would before a base form; "I'd" for had is left alone."""
        verb = self.tokens[following].lower()
        if verb not in ENGLISH_VERBS | {"rather", "be", "have"} or verb in _AMBIGUOUS_PAST:
            raise _UnsafeError
        self.out.append(" would")
        self.out.extend(self.tokens[position + 1 : following])
        self.is_present = False
        return following

    def _drops_into_coordination(self) -> bool:
        before = [token.lower() for token in self.out if not token.isspace()]
        return before[-1:] in (["and"], ["but"])

    def _name_subject(self, *, plural: bool) -> None:
        if not self.is_subject:
            if self.out and not self.is_named and not self._may_follow():
                raise _UnsafeError
            self.out.append(self.speaker)
        elif plural:
            self.out.append("they")
        else:
            while self.out and self.out[-1].isspace():
                self.out.pop()
        self.is_named = self.is_subject = True

    def _may_follow(self) -> bool:
        """Tell whether a first I in mid-sentence stands after a comma, a conjunction or nothing but adverbs."""
        before = [token.lower() for token in self.out if not token.isspace()]
        return not before or before[-1] in _SUBORDINATORS | _ADVERBS | {",", "and", "but"} or len(before) <= 4

    def _skip_adverbs(self, position: int) -> int:
        while position < len(self.tokens):
            token = self.tokens[position].lower()
            if not (token.isspace() or token in _ADVERBS or (token.endswith("ly") and token not in _LY_VERBS)):
                break
            position += 1
        return position

    def _inflect(self, token: str, *, plural: bool) -> str:
        verb = token.lower()
        self.is_present = False
        if verb in ENGLISH_MODALS or (verb in ENGLISH_PAST and verb not in _AMBIGUOUS_PAST | {"was"}):
            return verb
        if verb == "was":
            return "were" if plural else "was"
        if verb == "wasn't":
            return "weren't" if plural else "wasn't"
        if verb in {"didn't", "hadn't"}:
            return verb
        self.is_present = verb != "don't"
        if plural:
            return {"am": "are"}.get(verb, self._known_or_unsafe(verb))
        return to_third_singular(self._known_or_unsafe(verb))

    def _known_or_unsafe(self, verb: str) -> str:
        if verb in ENGLISH_VERBS | {"am", "have", "haven't", "do", "don't"} and verb not in _AMBIGUOUS_PAST | {"ran"}:
            return verb
        if verb.endswith("ed") and len(verb) > 4:
            self.is_present = False
            return verb
        raise _UnsafeError

    def _coordinate(self, position: int) -> int:
        """Refuse "I … and go": the second verb would need an ending, unless the conjunction opens a new clause."""
        following = self._skip_adverbs(position + 1)
        word = self.tokens[following].lower() if following < len(self.tokens) else ""
        if word in ENGLISH_VERBS or word in {"am", "have", "haven't", "don't"}:
            raise _UnsafeError
        return self._copy(position)


class _UnsafeError(Exception):
    """The sentence cannot be rewritten without guessing."""


_IRREGULAR = {"am": "is", "be": "is", "have": "has", "haven't": "hasn't", "do": "does", "don't": "doesn't"}


def to_third_singular(verb: str) -> str:
    """Inflect an English base form for he, she, it; a past form in -ed stays."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("ed") and verb not in {"need", "feed", "speed", "exceed", "embed", "seed"}:
        return verb
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


_GERMAN_IRREGULAR = {
    "bin": "ist", "habe": "hat", "werde": "wird", "weiß": "weiß", "fahre": "fährt", "esse": "isst", "lese": "liest",
    "nehme": "nimmt", "gebe": "gibt", "sehe": "sieht", "spreche": "spricht", "schlafe": "schläft", "laufe": "läuft",
    "helfe": "hilft", "trage": "trägt", "lasse": "lässt", "halte": "hält", "treffe": "trifft", "vergesse": "vergisst",
    "wasche": "wäscht", "werfe": "wirft", "empfehle": "empfiehlt", "fange": "fängt", "lade": "lädt", "rate": "rät",
    "messe": "misst",
}  # fmt: skip

_GERMAN_UNCHANGED = word_set(
    "kann will soll muss darf mag möchte würde könnte sollte müsste dürfte war hatte wurde konnte wollte musste "
    "ging kam fand nahm gab sah las blieb"
)

_GERMAN_REGULAR = word_set(
    "trinke mache arbeite mag nutze benutze liebe hasse kaufe koche brauche finde denke glaube bevorzuge plane "
    "schreibe lerne spiele teste prüfe wohne gehe stehe komme bleibe suche bestelle buche zahle backe reise "
    "telefoniere programmiere verwende schicke sage freue bekomme verstehe hoffe wünsche höre kenne lebe "
    "deploye starte beginne trainiere schwimme jogge wandere vertrage meide vermeide beantworte lege stelle setze"
)

_UNSAFE_GERMAN = re.compile(
    r"\b(?:wir|uns|unser\w*|du|dich|dir|dein\w*|ihr|euch|euer\w*|Sie|Ihnen|Ihr\w*|er|sie|ihm|ihn|mein(?:em|er|es))\b"
)


class _German:
    """A German sentence with one "ich" beside its verb, or with "mein" before a noun; all else is refused."""

    def __init__(self, sentence: str, speaker: str) -> None:
        self.sentence = sentence
        self.speaker = speaker

    def rewrite(self) -> str | None:
        subjects = re.findall(r"\bich\b", self.sentence, re.IGNORECASE)
        if _UNSAFE_GERMAN.search(self.sentence) or len(subjects) > 1:
            return None
        owned = re.findall(r"\bmein(?:e|en)?\b", self.sentence, re.IGNORECASE)
        if owned and (subjects or len(owned) > 1):
            return None
        text = self._rewrite_owned() if owned else self._rewrite_subject() if subjects else self._rewrite_object()
        return text[:1].upper() + text[1:] if text else None

    def _rewrite_owned(self) -> str | None:
        if re.search(r"\b(?:mich|mir)\b", self.sentence):
            return None
        owner = f"{self.speaker}’" if self.speaker.endswith(("s", "ß", "x", "z")) else f"{self.speaker}s"
        text, count = re.subn(r"\b[Mm]ein(?:e|en)? (?=[A-ZÄÖÜ])", f"{owner} ", self.sentence)
        return text if count else None

    def _rewrite_subject(self) -> str | None:
        pattern = re.compile(r"\b[Ii]ch (?P<after>\w+)\b|\b(?P<before>\w+) ich\b")
        found = pattern.search(self.sentence)
        verb = (found["after"] or found["before"]) if found else ""
        inflected = inflect_german(verb.lower())
        if not found or not inflected or self._is_object_elsewhere():
            return None
        pair = f"{self.speaker} {inflected}" if found["after"] else f"{inflected} {self.speaker}"
        text = self.sentence[: found.start()] + pair + self.sentence[found.end() :]
        return re.sub(r"\b(?:mich|mir)\b", "sich", text)

    def _is_object_elsewhere(self) -> bool:
        """Tell whether "mich" stands in a clause of another subject, where it is no "sich"."""
        clauses = self.sentence.lower().split(",")
        return any(re.search(r"\b(?:mich|mir)\b", one) and not re.search(r"\bich\b", one) for one in clauses)

    def _rewrite_object(self) -> str | None:
        text, count = re.subn(r"\b(?:mich|mir|Mich|Mir)\b", self.speaker, self.sentence)
        return text if count == 1 else None


def inflect_german(verb: str) -> str | None:
    """Turn a known German verb from the first into the third person singular, else None."""
    if verb in _GERMAN_UNCHANGED:
        return verb
    if verb in _GERMAN_IRREGULAR:
        return _GERMAN_IRREGULAR[verb]
    if verb not in _GERMAN_REGULAR:
        return None
    stem = verb[:-1]
    return stem + ("et" if stem.endswith(("t", "d", "fn", "gn", "chn")) else "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """What somebody said, with the speaker's name ("" for a note) and the language ("" → guessed)."""

    text: str
    speaker: str = ""
    language: str = ""


_SAYS_NOTHING = NOTHING_SAID | {Refusal.TOO_LONG}


def list_claims(turn: Utterance) -> list[str]:
    """List the sentences in which a speaker claims something, told in the third person where that is safe."""
    claims = []
    for sentence in split_sentences(strip_pictographs(drop_shared(turn.text))):
        tag = "de" if is_german(sentence, language=turn.language) else "en"
        plain = strip_opening(sentence, is_addressed=bool(turn.speaker))
        if plain and refuse_statement(plain, language=tag) not in _SAYS_NOTHING:
            told = (to_third_person(part, speaker=turn.speaker, language=tag) for part in list_shortened(plain))
            claims.extend([claim for claim in told if claim])
    return claims


def leave_name_out(text: str, *, name: str) -> str:
    """Drop a name, which would make all that one person says look alike."""
    if not name:
        return text
    return re.sub(rf"\b{re.escape(name)}(?:'s|’s?|s)?\b\s*", "", text).strip() or text
