"""A sentence as it is held against another (R11): of whom it tells, what it says, and whether that is so now."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memory.domain.matching import Claim
from memory.domain.matching.analysis import Analysis, analyse, guess_language
from memory.domain.matching.clauses import Clause
from memory.domain.matching.lexicon import STEMMERS, load_lexicon
from memory.language.attributes import OF_PEOPLE, Attributes, kinds_in, read_attributes
from memory.language.cues import has_cue, word_list
from memory.language.readings import Reading, content_stems, read_sentence
from memory.language.subjects import Subject, put_name, read_subject


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two, as the rules see it."""

    reading: Reading
    subject: Subject
    analysis: Analysis
    attributes: Attributes
    is_actual: bool  # so now: neither over, nor planned, wished or only possible

    @property
    def language(self) -> str:
        """Return the language that it is read in."""
        return self.reading.language

    @cached_property
    def is_denial(self) -> bool:
        """Tell whether a clause of it says no."""
        return any(clause.polarity < 0 or clause.local for clause in self.analysis.clauses)

    @cached_property
    def values(self) -> Mapping[str, frozenset[str]]:
        """Return by kind the values that another would exclude, a time in words among them ("half past five")."""
        spelt = {" ".join(found.group().lower().split()) for found in _SPELT_TIME.finditer(self.reading.sentence)}
        return self.reading.values.excluding() | ({"time": frozenset(spelt)} if spelt else {})

    @cached_property
    def concepts(self) -> frozenset[str]:
        """Return the concepts of all its words but its subject's, and those of times."""
        spoken = frozenset(word.concept for word in self.analysis.words)
        return spoken - load_lexicon(self.language).times - self.subject.words

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the concepts that are written as names; in German every noun is."""
        if self.language == "de":
            return frozenset()
        times = load_lexicon(self.language).times
        return frozenset(word.concept for word in self.analysis.words if word.is_name and word.concept not in times)

    @cached_property
    def content(self) -> frozenset[str]:
        """Return what it says of its subject, but for when, how much, and words that say little."""
        lexicon = load_lexicon(self.language)
        dull = lexicon.times | lexicon.numbers.keys() | lexicon.ordinals.keys() | light(self.language)
        dull |= concepts("beside_values", self.language)
        said = (word.concept for word in self.analysis.words if not word.concept[0].isdigit())
        return frozenset(said) - dull - self.subject.words - {self.subject.owner}

    @property
    def contexts(self) -> frozenset[str]:
        """Return in which circumstances it holds; on which day may be what it says."""
        return self.reading.contexts - _DAYS

    @property
    def circumstances(self) -> frozenset[str]:
        """Return the same without the times of a day."""
        return self.contexts - _PARTS_OF_DAY

    def expand(self, clause: Clause) -> frozenset[str]:
        """Return the concepts of a clause, and the kinds of what the sentence names: who eats steak eats meat."""
        lexicon = load_lexicon(self.language)
        kinds = kinds_in(self.reading.sentence) - (OF_PEOPLE - self.attributes.had)
        return clause.concepts | {lexicon.look_up(kind).concept for kind in kinds}

    @cached_property
    def things(self) -> frozenset[str]:
        """Return the keys of what it tells of whom; two that have none in common contradict each other by no rule."""
        of = self.subject.words | {self.subject.owner}
        said = frozenset(one for clause in self.analysis.clauses for one in self.expand(clause)) | self.reading.stems
        told = {*self.reading.slots, *self.attributes.values, *self.attributes.had, *self.attributes.ruled_out}
        return frozenset(f"{key} of {who}" for who in of for key in said | told if key != who)

    @cached_property
    def ended_things(self) -> frozenset[str]:
        """Return the stems of what it says has ended, whoever tells of it."""
        return content_stems(" ".join(self.reading.ended), language=self.language)


_SPELT_TIME = re.compile(
    r"\b(?:half past|quarter past|quarter to|halb|viertel nach|viertel vor|dreiviertel) [a-zäöü]+\b", re.IGNORECASE
)
_DAYS = frozenset(("saturday", "sunday"))
_PARTS_OF_DAY = frozenset(("morning", "evening", "breakfast"))


@lru_cache(maxsize=8192)
def read_side(sentence: str, *, person: str, subject: str = "", language: str = "en") -> Side | None:
    """Read a sentence of a person's as the rules see it, None in a language that they do not know."""
    if language not in STEMMERS:
        return None
    told = _retell(sentence)
    text = put_name(told, person=person)
    for pattern, plain in _FEARS:
        text = pattern.sub(plain, text)
    return Side(
        reading=read_sentence(sentence, person=person, subject=subject, language=language),
        subject=read_subject(told, person=person, language=language),
        analysis=analyse(Claim(text=text, language=language)),
        attributes=read_attributes(told),
        is_actual=not (_NOT_NOW.search(sentence) or has_cue("plan", sentence, language=language)),
    )


def language_of(sentence: str, *, known: str, usual: str = "") -> str:
    """Return the language that a sentence is read in where nobody could tell: the likelier one, else the usual."""
    return known or guess_language(sentence) or usual or "en"


def _retell(sentence: str) -> str:
    for pattern, plain in _RETOLD:
        sentence = pattern.sub(plain, sentence)
    return sentence


# What can be said in two ways is read in one: "Mara has a cat called Tilly" as what her cat is called.
_RETOLD: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"^(?P<who>[\w ]+?) (?:has|owns|keeps|got|hat|besitzt|hält) (?:got )?(?:an?|eine?n?) (?:\w+ )?"
            r"(?P<what>\w+),? (?:which is |who is |that is |die |der |das )?(?:called|named|namens|heißt)\b"
        ),
        r"\g<who>'s \g<what> is called",
    ),
    (re.compile(r"(?<=['’]s) name is\b"), " is called"),
    (re.compile(r"['’]s? (?:home|flat|house|apartment|place) is in (?=[A-ZÄÖÜ])"), " lives in "),
    (re.compile(r"['’]s? favou?rite (?:dish|food|meal|drink|snack|herb|fruit|animal|pastime|hobby) is\b"), " likes"),
    (re.compile(r"\b(?:is|was) (?:an? )?(?:\w+ )?smoker\b"), "smokes"),
    (re.compile(r"\bis (?:an? )?non-?smoker\b"), "does not smoke"),
    (re.compile(r"\bist (?:eine? )?(?:\w+ )?Raucher(?:in)?\b"), "raucht"),
    (re.compile(r"\bist (?:eine? )?Nichtraucher(?:in)?\b"), "raucht nicht"),
)

# To be afraid of something is, for two sentences, not to like it.
_FEARS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:is|are) (?:\w+ly |very |so )?(?:afraid|scared|terrified|frightened|phobic) of\b"), "hates"),
    (re.compile(r"\b(?:is|are) not (?:at all )?(?:afraid|scared|terrified|frightened) of\b"), "likes"),
    (re.compile(r"\b(?:has|have) (?:an? )?(?:\w+ )?(?:fear|phobia|horror) of\b"), "hates"),
    (re.compile(r"\bhat keine Angst vor\b"), "mag"),
    (re.compile(r"\bhat (?:\w+ )?Angst vor\b|\bfürchtet sich vor\b"), "hasst"),
)

_NOT_NOW = re.compile(
    r"\b(?:used to|was (?!born|called|named)|were|had been|formerly|previously|once|ago|"
    r"as a (?:child|girl|boy|kid|teenager|student)|in the past|(?<!has )(?<!have )(?:lived|worked)|"
    r"wants? to|would|hopes?|plans?|might|may(?= [a-z])|maybe|perhaps|considering|thinking|dreams? of|wishes|could|"
    r"should|if|will|going to|about to|soon|next (?:year|month|summer|winter|spring|autumn)|"
    r"früher|damals|einst|ehemals|als kind|war|hatte|wohnte|lebte|arbeitete|"
    r"möchte|würde|könnte|vielleicht|plant|überlegt|hofft|bald|wird|wenn|falls)\b",
    re.IGNORECASE,
)


@lru_cache
def light(language: str) -> frozenset[str]:
    """Return the concepts that say no more than that something is had; whether it is liked says more."""
    return (load_lexicon(language).light | concepts("having", language)) - concepts("liking", language)


@lru_cache
def concepts(name: str, language: str) -> frozenset[str]:
    """Return the concepts of a closed list of words."""
    lexicon = load_lexicon(language)
    return frozenset(lexicon.look_up(word).concept for word in word_list(name))
