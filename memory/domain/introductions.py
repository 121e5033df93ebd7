"""Who somebody says they are (L3): "I am Mia" gives a name where "I am German" does not."""

import re
from collections.abc import Collection

from memory.domain.lexicon import words

# After "I am" and "Ich bin" a capital says little: of names only those that are nothing else.
_FIRST_NAMES = words(
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
_NAME = r"(?P<name>[^\W\d_a-zäöüß][\w'’-]*(?: [^\W\d_a-zäöüß][\w'’-]*){0,2})"
_END = r"\s*[.!]*$"
_OPENING = r"(?i:(?:(?:hi|hello|hey|hallo|moin|servus|guten tag)(?: there| everyone| zusammen)?[,!.]? )?)"
_CALLED = re.compile(rf"{_OPENING}(?i:my name(?: is|['’]s)|i(?:['’]m| am) called) {_NAME}{_END}")
_HEISSE = re.compile(rf"{_OPENING}(?i:ich hei(?:ß|ss)e|mein name ist) {_NAME}{_END}")
_AM = re.compile(rf"{_OPENING}(?i:i(?:['’]m| am)) {_NAME}{_END}")
_BIN = re.compile(rf"{_OPENING}(?i:ich bin)(?: (?:die|der))? {_NAME}{_END}")
_ENGLISH, _GERMAN = "My name is {}.", "Mein Name ist {}."


def as_introduction(*, sentence: str, known: Collection[str] = ()) -> str:
    """Return "My name is Mia." for a sentence that only says who its speaker is, else the sentence.

    `known` are names of people: they are names wherever they stand.
    """
    for pattern, form, is_sure in (
        (_CALLED, _ENGLISH, True), (_HEISSE, _GERMAN, True), (_AM, _ENGLISH, False), (_BIN, _GERMAN, False)
    ):  # fmt: skip
        found = pattern.match(sentence)
        if found and (is_sure or is_persons_name(found["name"], known=known)):
            return form.format(found["name"])
    return sentence


def is_persons_name(name: str, *, known: Collection[str] = ()) -> bool:
    """Tell whether a capitalised name begins with a first name, or is that of somebody known."""
    return name in known or name.split(" ")[0].lower() in _FIRST_NAMES
