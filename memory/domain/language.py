"""Tell English from German by their commonest words and letters; anything unsure has no language."""

import re
from functools import lru_cache

WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
GERMAN_LETTERS = re.compile(r"[äöüß]", re.IGNORECASE)
OTHER_LETTERS = re.compile(r"[^\x00-\x7fäöüÄÖÜß‘’“”„–—…€£°§«»×·•\s]")
NEEDED = 1.0  # weight of evidence below which a text has no language
UMLAUT_WEIGHT = 1.5
FOREIGN_WEIGHT = 2.0  # of a letter that neither language has
READ = 400  # characters of a text that are looked at


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = _words("""
the a an and or but of to in on at by for from with without is are was were be been has have had do does did not no
never this that these those it its he she they them their his her him we our you your i my me will would can could
should must when while before after because since than then there here what who which how every all any some only always
usually about into over more less most now still also just like likes prefers uses use wants needs runs works lives as
if don't doesn't isn't longer instead between during each other so up out off very moved starts eats drinks
""")
_GERMAN = _words("""
der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine keinen nie ist sind war waren
hat haben hatte wird werden wurde wurden kann muss soll ich du er sie es wir ihr mich mir mein meine unser unsere sein
seine ihre in im am beim vom zum zur mit ohne auf aus bei von nach für über unter durch um als wie wenn weil dass ob
auch noch nur schon sehr immer mehr weniger jeden jede statt gern gerne lieber zu seit bis vor man sich mag bevorzugt
arbeitet trinkt isst nutzt verwendet benutzt läuft beginnt alle niemand nichts morgens abends freitags montags uhr wohnt
""")
# Languages that share words with the two: they may outvote them, and are never named.
_OTHERS = tuple(
    map(
        _words,
        """
le la les un une des et est sont dans pour avec sur pas ne je il elle nous vous qui que du au aux mon ma mes cette plus
el la los las un una y es son en para con por no se lo que del al mi su yo muy como pero está más
il lo la gli le un una e è sono di che per con non si mi della del nel alla anche più ma io
de het een en is zijn niet van voor met op aan ik hij zij wij dat die maar ook bij naar heeft geen wordt te
o os as um uma e é são em para com por não se que do da dos das no na eu ele ela mais mas meu
och att det som en ett är på för inte med av jag han hon vi de har den till
og det som en et er på for ikke med av jeg han hun vi de har den til
i w na z nie się jest to że do jak ale po od za co ma
""".strip().splitlines(),
    )
)
_LANGUAGES = (_ENGLISH, _GERMAN, *_OTHERS)
# The languages that know a word, so that a text is walked through once.
_KNOWN_BY = {
    word: tuple(number for number, known in enumerate(_LANGUAGES) if word in known)
    for word in frozenset().union(*_LANGUAGES)
}


@lru_cache(maxsize=16_384)
def detect_language(text: str) -> str:
    """Return "en" or "de", or "" where the text is too short, mixed or in another language."""
    english, german, other = _weigh(text)
    if other > max(english, german) or max(english, german) < NEEDED or english == german:
        return ""
    return "en" if english > german else "de"


def could_be_either(text: str) -> bool:
    """Say whether nothing in a text speaks for a language other than English and German."""
    english, german, other = _weigh(text)
    return other <= max(english, german)


def _weigh(text: str) -> tuple[float, float, float]:
    """Return the evidence for English, for German and for the likeliest other language."""
    head = text[:READ]
    counts = [0.0] * len(_LANGUAGES)
    for word in WORD.findall(head.lower().replace("’", "'")):
        for number in _KNOWN_BY.get(word, ()):
            counts[number] += 1
    english, german, *others = counts
    if head.isascii():
        return english, german, max(others)
    umlauts = UMLAUT_WEIGHT * bool(GERMAN_LETTERS.search(head))
    strange = len(OTHER_LETTERS.findall(head)) - 1  # one may be a borrowed word's: café, naïve
    return english, german + umlauts, max(others) + FOREIGN_WEIGHT * max(0, strange)
