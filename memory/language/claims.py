"""Read what a message asserts into claims by rules: each a sentence that stands alone, and how it is meant (E1, E2).

A message is cut into clauses; in each, "he" and "she" are named; it is told in the third person, said how it is meant,
and graded by how plainly it states something that lasts. What is no statement (a question apart, which is kept as one)
is left out.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from memory.language.clauses import Clause, Mode, denies, find_change, list_clauses, mode_of
from memory.language.dates import date_sentence
from memory.language.explicit_requests import find_request
from memory.language.quantities import TITLE, Values, find_values
from memory.language.refusals import has_verb, is_german
from memory.language.sentences import list_words, strip_pictographs
from memory.language.slots import fill_slots, without_ended
from memory.language.statements import as_instruction, as_order, grade, is_refused, shorten, strip_frame
from memory.language.subjects import find_named_subject
from memory.language.third_person import tell_of
from memory.language.words import (
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    GERMAN_STOPS,
    common_words,
    detect_language,
    dull_words,
    has_cue,
    word_list,
    word_set,
)

TOLD = 0.6  # strength from which a claim may found a belief by itself (E4)
PLAINLY = 0.5  # the same, of a change that names somebody or something
ANNOUNCED = 0.3  # the same, of a change that names a value
_READ_FOR_LANGUAGE = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """Who says a message, by the name that they are told of, in which language and on which day."""

    user: str
    language: str = ""
    said_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClaim:
    """One thing that a message asserts; `strength` is how plainly it says something that lasts, 0 to 1."""

    sentence: str
    subject: str
    mode: Mode
    kind: str
    words: str  # that it was read from
    language: str
    strength: float
    is_denial: bool = False
    slots: dict[str, frozenset[str]] = field(default_factory=dict)
    values: Values = field(default_factory=Values)
    ended: tuple[str, ...] = ()
    asked_to_remember: bool = False
    is_whole: bool = False  # it is the text as it stands

    @property
    def is_told(self) -> bool:
        """Tell whether it may found a belief by itself: said plainly, asked for, or announced with what holds now."""
        if self.mode is Mode.CHANGE and (self.slots or self.values.excluding()):
            return self.strength >= ANNOUNCED
        if self.mode is Mode.CHANGE and self.values.name and not self.ended:
            return self.strength >= PLAINLY
        return self.asked_to_remember or self.strength >= TOLD


def read_claims(*, text: str, speech: Speech) -> list[ReadClaim]:
    """List what a message asserts, in its order."""
    language = speech.language or detect_language(text[:_READ_FOR_LANGUAGE])
    plain = "\n".join(strip_pictographs(line) if line.strip() else line for line in text.splitlines())
    clauses = list_clauses(_in_first_person(plain, speech.user))
    found: dict[str, ReadClaim] = {}
    person = ""  # whom "she" would mean
    for place, clause in enumerate(clauses):
        german = is_german(clause.sentence, language=language)
        named = name_pronoun(clause=clause.text, person=person, german=german)
        named = name_thing(clause=named, sentence=clause.sentence)
        for claim in _read_clause(clause, named, _said_next(clauses, place), speech, german=german):
            key = claim.sentence.casefold()
            if key not in found or len(claim.words) < len(found[key].words):  # a clause's own words, not its sentence's
                found[key] = claim
        person = people_in(text=clause.text, speaker=speech.user, german=german, before=person)
    return _keep_parts_or_whole(list(found.values()))


def _in_first_person(text: str, name: str) -> str:
    """Let who speaks of themselves by their name say "I", so that both are read alike (E2)."""
    own = re.escape(name)
    text = _MISSPELT.sub(lambda found: f"we're{found[1]}", text)
    owned = re.sub(rf"\b{own}(?:'s|’s|'|’) (?=\w)", "my ", text, flags=re.IGNORECASE)
    return re.sub(rf"(^|[.!?;:,] |\b(?:and|but|so|und|aber) ){own} (?=[a-zäöü])", r"\1I ", owned, flags=re.I | re.M)


_MISSPELT = re.compile(
    r"(?:(?<=^)|(?<=[,.;:!?] )|(?<=\band )|(?<=\bso ))were( (?:on|in|at|using|back|moving|with)\b)", re.I | re.M
)


def _said_next(clauses: Sequence[Clause], place: int) -> str:
    here = clauses[place].sentence
    return next((clause.sentence for clause in clauses[place + 1 :] if clause.sentence != here), "")


def _read_clause(clause: Clause, text: str, after: str, speech: Speech, *, german: bool) -> Iterator[ReadClaim]:
    noted = find_request(text)
    head = (noted or "").partition(",")[0]
    wished = noted is not None and has_verb(list_words(head), german=german) and not has_cue("plan", noted)
    plain = shorten(strip_frame(noted if wished and noted else text))
    said = as_order(plain)
    if len(said.split()) < 2:
        return
    mode = mode_of(clause=said, sentence=clause.sentence, after=after, is_quote=clause.is_quote, german=german)
    mode = Mode.ASSERTED if said != plain and mode is Mode.ASKED else mode  # a kind order, no question
    unsaid = mode in (Mode.IRONIC, Mode.HYPOTHETICAL, Mode.ASKED, Mode.QUOTED)
    instruction = None if unsaid else as_instruction(said, label=clause.label, name=speech.user, german=german)
    told = instruction or _tell(clause, said, speech.user, german=german)
    if is_refused(told=told, said=said, is_wished=wished, mode=mode, german=german):
        return
    kind, strength = grade(
        said=said, clause=clause, is_instruction=instruction is not None, is_change=mode is Mode.CHANGE
    )
    sentence = date_sentence(text=told, said_on=speech.said_on)
    values = find_values(sentence)
    change = find_change(said) if mode is Mode.CHANGE else None
    ended = change.ended if change else ()
    slots = without_ended(fill_slots(said, values), ended)
    strength = _strengthen(strength, kind=kind, said=said, mode=mode, has_slot=bool(slots or values.excluding()))
    strength = min(strength, _most_strength(sentence, said, mode, slots, values, ended, speech.user))
    yield ReadClaim(
        sentence=sentence,
        subject=subject_of(told, speech.user),
        mode=Mode.ASSERTED if instruction and mode is Mode.PLANNED else mode,
        kind=kind,
        words=clause.text,
        language="de" if german else "en",
        strength=strength,
        is_denial=denies(said),
        slots=slots,
        values=values,
        ended=ended,
        asked_to_remember=wished,
    )


def _most_strength(
    sentence: str,
    said: str,
    mode: Mode,
    slots: Mapping[str, Collection[str]],
    values: Values,
    ended: Collection[str],
    user: str,
) -> float:
    """Return below what a claim is told where it states nothing that lasts, however it is put; else 1."""
    is_change = mode is Mode.CHANGE
    below = (ANNOUNCED if is_change else TOLD) - 0.01
    has_value = bool(slots or (values.excluding() and not is_change))
    if not (has_value or _says_anything(sentence, user)) or _FRAGMENT.match(said) or _SAME.match(sentence):
        return below
    if is_change and ended and not slots and not _GAVE_UP.search(said) and not any(map(_is_named, ended)):
        return below  # it only says that something is over
    return 1.0


# What lacks who does it, or asks: `need a summary`, `trying to export`, `how many should I bring`.
_FRAGMENT = re.compile(
    r"(?:going|trying|hoping|looking|thinking|planning|waiting|working|getting|doing|having|wondering|sitting) "
    r"(?!.*\b(?:is|are|isn't|aren't)\b)|"
    r"(?:need|want|check|brauche?|suche?) |(?:how|what|which|why|where|wie|warum|wo|welche\w*) ",
    re.IGNORECASE,
)

_SAME = re.compile(
    r"(?P<who>.+?) (?:is|are|ist|heißt)(?: called| named)? (?P=who)(?: (?:as of|since|from|now|ab|seit)\b.*)?\.$",
    re.IGNORECASE,
)


def _says_anything(sentence: str, user: str) -> bool:
    """Tell whether a sentence has a word beside its person that is not said everywhere ("Mara is good." has none)."""
    dull = dull_words("en") | dull_words("de")
    spoken = {word.lower().removesuffix("'s") for word in list_words(sentence)}
    spoken -= {word for word in spoken if not word[0].isalpha() or find_values(word).excluding()}
    return bool(spoken - dull - {word.lower() for word in list_words(user)} - {"assistant"})


def _is_named(thing: str) -> bool:
    """Tell whether what ended has a name, or is a day: of a common thing nobody knows what it was good for."""
    return any(word[:1].isupper() or any(map(str.isdigit, word)) for word in thing.split())


_GAVE_UP = re.compile(
    r"\b(?:i|we|ich|wir)(?:'ve| have| am|'m| hab\w*)? (?:\w+ )?(?:sold|quit|gave up|given up|stopped|retired|no)\b|"
    r"(?:n't|\bnot) \w+ [^.]*\bany ?more\b",
    re.I,
)

# Of what has no article: who stopped the car has given up nothing.
_QUIT = re.compile(
    r"\b(?:i|we)(?:'ve| have) (?:now |finally )?(?:stopped|quit|given up) "
    r"(?!(?:to|at|by|in|on|for|the|a|an|my|our|this|that|it|there|here|counting|looking|trying|staring|worrying|caring|"
    r"asking|waiting|thinking)\b)\w",
    re.IGNORECASE,
)


def _tell(clause: Clause, said: str, name: str, *, german: bool) -> str:
    """Tell a clause of its speaker; a value behind a label (`food: £85 a week`) keeps it."""
    is_value = clause.label and not has_verb(list_words(said), german=german) and len(clause.label.split()) <= 4
    return tell_of(clause=f"{strip_frame(clause.label)}: {said}" if is_value else said, name=name, german=german)


def _strengthen(strength: float, *, kind: str, said: str, mode: Mode, has_slot: bool) -> float:
    """Weigh what beside its form tells that a clause states something lasting."""
    if mode is Mode.CHANGE:
        strength += 0.15 + 0.1 * has_slot + 0.25 * bool(_QUIT.search(said))
    elif has_slot and kind not in ("event", "label") and not has_cue("transient", said):
        strength += 0.1
    if has_cue("request", said) and kind != "preference":
        strength -= 0.3
    return max(0.0, min(1.0, strength))


def subject_of(told: str, user: str) -> str:
    """Name who or what a told sentence is about: its user, what is theirs, or what it begins with, a time aside."""
    told = re.sub(rf"^{_TIME_FIRST}(?={re.escape(user)}\b)", "", told, flags=re.IGNORECASE)
    if told.lower().startswith(user.lower()):
        owned = re.match(rf"{re.escape(user)}(?:'s|'|s|’) (?P<what>[\w-]+(?: [\w-]+)?)", told, re.IGNORECASE)
        return user if not owned else f"{user}'s {owned['what'].lower()}"
    named = find_named_subject(told)
    if said := [word.lower() for word in list_words(told) if word.lower() in named]:
        return " ".join(dict.fromkeys(said))
    words = [word for word in list_words(told) if word.lower() not in ENGLISH_STOPS | GERMAN_STOPS]
    return words[0].lower() if words else user


_TIME_FIRST = r"(?:from|since|as of|in|on|at|by|after|before|until|every|starting)(?: [\w.'’]+){1,5}?,? "


def _keep_parts_or_whole(claims: Sequence[ReadClaim]) -> list[ReadClaim]:
    """Of a sentence and the clauses that it falls into keep the clauses, or the whole where they say less apart."""
    dropped: set[int] = set()
    for claim in claims:
        parts = [other for other in claims if _is_part(other, claim)]
        if parts and id(claim) not in dropped:
            dropped |= {id(part) for part in parts} if _says_more(claim, parts) else {id(claim)}
    return [claim for claim in claims if id(claim) not in dropped]


def _is_part(part: ReadClaim, whole: ReadClaim) -> bool:
    return part is not whole and part.words != whole.words and part.words in whole.words


def _says_more(whole: ReadClaim, parts: Collection[ReadClaim]) -> bool:
    """Tell whether a sentence is worth more whole: what ends in one clause begins in another, or it hangs together."""
    if whole.asked_to_remember:
        return True
    words = len(whole.sentence.split())
    plain = [part for part in parts if part.strength >= TOLD]
    if len(plain) > 1 and len({part.subject for part in plain}) == 1 and plain[0].kind == "other" and words <= 22:
        return True  # one person, said in two clauses
    ends_apart = any(part.ended for part in parts) and len(parts) > 1
    if whole.mode is Mode.CHANGE and ends_apart and words <= 22:
        return True
    return max(part.strength for part in parts) + 0.05 < whole.strength and words <= 18


_RELATIVES = "|".join(word_list("relatives"))

_PRONOUN = re.compile(
    r"^(?P<before>(?:(?:and|but|so|because|since|und|aber|denn|weil|also|then|now|dann|jetzt) )*)(?P<pronoun>he|she|"
    r"er|sie|die(?= \w+t\b)|der(?= \w+t\b))"
    r"(?P<rest>'s|'d|'ll)?(?= [a-zäöüß'])", re.IGNORECASE,
)  # fmt: skip
_NAME = re.compile(r"(?<![\w@/.-])[A-ZÀ-Þ][a-zß-ÿ]+(?:-[A-ZÀ-Þ][a-zß-ÿ]+)?(?: [A-ZÀ-Þ][a-zß-ÿ]+)?\b")
_SMALL_NAME = re.compile(r"^(?:(?:and|but|so|also) )*(?P<name>[a-zß-ÿ]{3,})(?:'s| is| has) ")

_OWN = re.compile(
    rf"\b(?:my|our|mein\w*|unser\w*) (?P<who>(?:\w+ )?(?:{_RELATIVES}))\b(?: (?P<name>(?-i:[A-ZÄÖÜ][a-zäöüß]+)))?",
    re.IGNORECASE,
)
_TITLED = re.compile(rf"\b(?P<who>{TITLE} [A-ZÄÖÜ][\w-]+)")
_ACTS = frozenset(word_list("acts_of_people"))


def people_in(*, text: str, speaker: str, german: bool, before: str = "") -> str:
    """Return who a later pronoun would mean after this clause: who is named in it, else who was meant `before`."""
    return _named_in(text, speaker, german=german) or ("" if _SOMEBODY_ELSE.match(text) else before)


def name_relative(subject: str) -> str:
    """Return the words of a subject from which on it names one of somebody's people ("colleague tamsin"); else ""."""
    found = _ONES_PEOPLE.search(subject)
    return found["who"].casefold() if found else ""


_ONES_PEOPLE = re.compile(
    rf"(?:['’]s?|\bmy|\bour|\bmein\w*|\bunser\w*) (?P<who>(?:\w+ )?(?:{_RELATIVES})\b.*)", re.IGNORECASE
)

_SOMEBODY_ELSE = re.compile(
    r"(?:(?:and|but|so|und|aber) )*(?:the|a|an|another|some|der|die|ein|eine) (?:\w+ )?(?:supervisor|teacher|doctor|"
    r"physio|nurse|man|woman|lady|guy|customer|"
    r"driver|neighbour|neighbor|boss|manager|vet|friend|colleague|kollege|kollegin|ärztin|arzt|frau|mann|lehrerin|"
    r"lehrer|professorin)\b",
    re.IGNORECASE,
)


def _named_in(text: str, speaker: str, *, german: bool) -> str:
    if own := _last(_OWN, text):
        return own["name"] or tell_of(clause=own.group(), name=speaker, german=german).rstrip(".")
    if titled := _last(_TITLED, text):
        return titled["who"]
    for found in _NAME.finditer(text):
        name = _without_verb(found.group())
        follows = text[found.end() :].lstrip().split(" ", 1)[0].lower().strip(",")
        is_word = not name or name.split()[0].lower() in common_words() | ENGLISH_STOPS | GERMAN_STOPS
        if not is_word and (follows in _ACTS or (not german and _is_person_place(text, found, name))):
            return name
    return _named_small(text) if not german else ""


def _named_small(text: str) -> str:
    """Return the name with which a clause typed in small letters begins ("jenna's on nights"), "" for none."""
    found = _SMALL_NAME.match(text)
    known = common_words() | ENGLISH_STOPS | ENGLISH_VERBS
    return found["name"].capitalize() if found and found["name"] not in known else ""


def _without_verb(name: str) -> str:
    """Drop the verb with which an order begins from what looks like two names ("Ask Devika")."""
    first, _, rest = name.partition(" ")
    return rest if first.lower() in ENGLISH_VERBS else name


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007  (the last one is meant)
        pass
    return found


def _is_person_place(text: str, found: re.Match[str], name: str) -> bool:
    """Tell whether a name stands where people do: asked, told, given, or with somebody."""
    before = text[: found.end() - len(name)].rstrip().rsplit(" ", 1)[-1].lower()
    return before in word_set(
        "ask asked tell told remind with for from and give gave call called meet met write mail send sent thank by"
    )


def name_pronoun(*, clause: str, person: str, german: bool) -> str:
    """Say who "he" or "she" is at the head of a clause, where somebody was named before; else return it as it is."""
    found = _PRONOUN.match(clause)
    if not found or not person or (german and found["pronoun"] == "Sie"):
        return clause
    if german != (found["pronoun"].lower() in ("er", "sie", "die", "der")):
        return clause
    rest = {"'s": " is", "'d": " would", "'ll": " will"}.get(found["rest"] or "", "")
    has = re.match(r" (?:got|been|gone|had|taken|moved|done|lost|left|sent|asked|made)\b", clause[found.end() :])
    return f"{found['before']}{person}{' has' if rest == ' is' and has else rest}{clause[found.end() :]}"


_THAT_ONE = re.compile(
    r"^(?:(?:and|but|so) )*(?P<it>that one|this one|it)(?P<rest>'s)?(?= (?:is|must|has|goes|costs|will|should|now|"
    r"stays)\b|'s)",
    re.IGNORECASE,
)
_TOPIC = re.compile(r"^(?:\w+ ){0,2}?(?P<thing>(?:the|our|my) [\w-]+), ", re.IGNORECASE)


def name_thing(*, clause: str, sentence: str) -> str:
    """Say what "that one" is at the head of a clause whose sentence began with the thing (`the rye, …, that one …`)."""
    found, topic = _THAT_ONE.match(clause), _TOPIC.match(sentence)
    if not found or not topic or clause == sentence:
        return clause
    return f"{topic['thing']}{' is' if found['rest'] else ''}{clause[found.end() :]}"
