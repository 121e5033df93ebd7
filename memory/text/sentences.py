"""Cut a message in any language into its sentences."""

import re
from collections.abc import Iterator
from itertools import islice

from memory.text.words import word_set

MOST_SENTENCES = 200  # of a message; what is longer is a document, whose first pages tell what it is about


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a message, at most 200, each with its own end mark and single spaces.

    A sentence ends at its mark, at a semicolon, at a dash between spaces and at a line's end. Left out are bullets, and
    what somebody pasted: fenced code, quoted lines (`> …`), what stands between two ruled lines. The time is linear in
    the length: words are looked at one by one.
    """
    return list(islice(_sentences(text), MOST_SENTENCES))


def _sentences(text: str) -> Iterator[str]:
    outside_code = "\n".join(text.split(_FENCE)[::2])  # a fence that is never closed hides the rest
    parts = _RULED_LINE.split(outside_code)
    said = "\n".join(parts[::2] if len(parts) > _RULED_OFF else parts)
    for line in _UNSPACED_STOP.sub(r"\g<0>\n", said).splitlines():
        if _is_quoted(line):
            continue
        words = _BULLET.sub("", line.strip(), count=1).replace("**", "").split()
        for sentence in _cut_line(words):
            if any(map(str.isalnum, sentence)):
                yield sentence


_FENCE = "```"
_RULED_LINE = re.compile(r"^[ \t]*(?:-{3,}|={3,}|_{3,}|\*{3,})[ \t]*$", re.MULTILINE)
_RULED_OFF = 2  # parts that a single line divides, neither of which is pasted
_UNSPACED_STOP = re.compile("[。！？｡]+[」』”’）]*")  # marks that no space follows
_BULLET = re.compile(r"^(?:[-*•–—+·#]{1,6}|\d{1,3}[.)]|[a-zA-Z]\))\s+(?:\[[ xX]\]\s+)?")
_DASHES = frozenset({"-", "--", "–", "—"})


def _is_quoted(line: str) -> bool:
    stripped = line.lstrip()
    return stripped.startswith(("> ", ">>")) or stripped == ">"


def _cut_line(words: list[str]) -> Iterator[str]:
    start = 0
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in _DASHES:
            before = words[place - 1] if place > start else ""
            if _is_number(before) and _is_number(following):  # "9 - 17"
                continue
            yield " ".join(words[start:place])
            start = place + 1
        elif word.endswith(";") and following:
            yield " ".join(words[start : place + 1]).rstrip(";")
            start = place + 1
        elif _ends_sentence(word, following):
            yield " ".join(words[start : place + 1])
            start = place + 1
    yield " ".join(words[start:])


_CLOSING = "\"'”’“»)]*_"
_END_MARKS = (".", "!", "?", "…", "؟", "۔", "।")


def _ends_sentence(word: str, following: str) -> bool:
    """Tell whether a word ends its sentence: not an abbreviation, an initial, an ordinal or a trailing-off."""
    bare = word.rstrip(_CLOSING)
    if not bare.endswith(_END_MARKS) or not following:
        return False
    if bare.endswith(("..", "…")):
        return not following[0].islower()
    if not bare.endswith("."):
        return True
    stem = bare[:-1].lstrip("(\"'“„‘[").casefold()
    if stem in _ABBREVIATIONS or stem.endswith("str"):  # "Hauptstr. 5"
        return False
    if stem in _BEFORE_NUMBERS:
        return not following[0].isdigit()
    if stem in _MAY_END:
        return following[0].isupper()
    if len(stem) == 1 and stem.isalpha():
        return stem == "i"  # "so am I." ends; "z." and "J." do not
    is_ordinal = stem.isdigit() and len(stem) <= _LONGEST_ORDINAL
    return not (is_ordinal and (following[0].islower() or following.strip(".,;:!?").casefold() in _MONTHS))


def _is_number(word: str) -> bool:
    return word[:1].isdigit() or word[-1:].isdigit()


_LONGEST_ORDINAL = 2  # digits of a day: "am 3. März"
_ABBREVIATIONS = word_set(
    "mr mrs ms mx dr prof med st vs e.g i.e eg ie nr approx ca dept sr fig vol resp mt ft rev hon gen sgt capt"
    " z.b d.h u.a o.ä i.d.r z.t s.o bzw ggf evtl str tel hr fr frl mio mrd sog inkl exkl mind vgl bspw"
    " bijv m.a.w d.w.z dhr mevr p.ex mme mlle sra srta ud uds sig sig.ra dott p.es"
)
_BEFORE_NUMBERS = word_set("no min max")
_MAY_END = word_set("etc usw u.s.w enz ecc inc ltd co corp jr abs a.m p.m u.s u.k e.v uvm")
_MONTHS = word_set(
    "januar februar märz april mai juni juli august september oktober november dezember jan feb mär apr jun jul aug sep"
    " okt nov dez jahrhundert"
)
