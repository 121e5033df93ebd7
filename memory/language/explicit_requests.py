"""Explicit requests to remember: how strongly a turn asks for it (L1), and what a sentence wishes to be noted (L3).

A cue is a pattern that stands near a word, its anchor. A text is taken apart into words once; only the cues of anchors
that it has are tried, each in a short stretch around the anchor, and at so many places at most. So the time of a scan
grows with the length of a text and with nothing else, whatever it holds.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from memory.domain.policy_memories import TurnsPolicy

LANGUAGES_FOLDER = Path(__file__).parent / "signal_cues"
_BEFORE, _AFTER = 64, 100  # characters around an anchor in which its cues are looked for
_PLACES_OF_ONE, _PLACES = 12, 32  # places of one anchor, and of all, that are looked at
_BULLETS = " \t-*>•–—\"'“„(`#"
_LEVELS = ("high", "soft")
_APART = bytes.maketrans(b'\t\n\r!"#$%&()*+,./:;<=>?@[\\]^_`{|}~-', b" " * 34)


class Signal(StrEnum):
    """How strongly a turn asks to be remembered."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NONE = "none"


class BadCue(ValueError):
    """A cue that cannot be used; the message names its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """The cues of some languages, by anchor: patterns that make a signal high, and soft ones with their kinds.

    Those of the anchor "" are tried everywhere in a text.
    """

    high: Mapping[str, re.Pattern[str]]
    soft: Mapping[str, Sequence[tuple[str, re.Pattern[str]]]]
    anchors: Mapping[bytes, str]


def scan_signal(*, text: str, cues: Cues, policy: TurnsPolicy) -> Signal:
    """Scan a text, a long one at its two ends: what people say stands before or after what they paste."""
    lowered = _ends_of(text, policy.scan_characters).lower().replace("’", "'")
    words = Counter(lowered.encode("utf-8", "replace").translate(_APART).split())
    rarest = sorted((words[word], cues.anchors[word]) for word in words.keys() & cues.anchors.keys())
    stretches = list(_stretches(lowered, [anchor for _, anchor in rarest]))
    if any(anchor in cues.high and cues.high[anchor].search(stretch) for anchor, stretch in stretches):
        return Signal.HIGH
    kinds: set[str] = set()
    for anchor, stretch in stretches:
        kinds.update(
            kind for kind, pattern in cues.soft.get(anchor, ()) if kind not in kinds and pattern.search(stretch)
        )
        if len(kinds) >= policy.soft_cues:
            return Signal.MEDIUM
    return Signal.LOW if kinds else Signal.NONE


def _ends_of(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-(most // 2) :]}"


def _stretches(text: str, anchors: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield where anchors stand, in their order, each with its sentence up to there and what follows it.

    Of words that come often, and of all together, only so many places are looked at. The whole text comes last, for
    the cues that have no anchor.
    """
    left = _PLACES
    for anchor in anchors:
        for place in _places(text, anchor, most=min(_PLACES_OF_ONE, left)):
            left -= 1
            start = max(text.rfind(end, place - _BEFORE if place > _BEFORE else 0, place) for end in ".!?\n") + 1
            yield anchor, text[max(start, place - _BEFORE) : place + len(anchor) + _AFTER].lstrip(_BULLETS)
    yield "", text


def _places(text: str, anchor: str, *, most: int) -> Iterator[int]:
    """Yield the first places of a word, as a word of its own."""
    place, size = text.find(anchor), len(anchor)
    while place >= 0 and most:
        if not text[place - 1 : place].isalpha() and not text[place + size : place + size + 1].isalpha():
            most -= 1
            yield place
        place = text.find(anchor, place + size)


@cache
def load_cues(*, languages: tuple[str, ...], own: str = "") -> Cues:
    """Read the cues of some languages, and those of a file of one's own (TOML, "" for none); raise BadCue."""
    files = [_file_of(language) for language in languages] + ([Path(own)] if own else [])
    return _compile([cue for file in files for cue in _read(file)])


def known_languages() -> list[str]:
    """List the languages whose cues come along."""
    return sorted(file.stem for file in LANGUAGES_FOLDER.glob("*.toml"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cue:
    """One pattern as it is written, and where."""

    level: str
    kind: str
    anchor: str
    pattern: str
    place: str


def _file_of(language: str) -> Path:
    if language not in known_languages():
        raise BadCue(f"there are no cues of {language!r}; those that come along: {', '.join(known_languages())}")
    return LANGUAGES_FOLDER / f"{language}.toml"


def _read(file: Path) -> Iterator[_Cue]:
    """Read level → kind → anchor → patterns."""
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadCue(f"{file}: {error}") from None
    for level, kinds in content.items():
        if level not in _LEVELS:
            raise BadCue(f"{file}: {level} is neither high nor soft")
        for kind, anchors in _table(kinds, f"{file}: {level}"):
            for anchor, patterns in _table(anchors, f"{file}: {level}.{kind}"):
                yield from _cues(level, kind, anchor, patterns, place=f"{file}: {level}.{kind}.{anchor!r}")


def _table(value: object, place: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise BadCue(f"{place} is no table")
    return value.items()


def _cues(level: str, kind: str, anchor: str, patterns: object, *, place: str) -> Iterator[_Cue]:
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise BadCue(f"{place} is no list of patterns")
    if len(anchor.split()) > 1 or anchor != anchor.lower() or anchor.encode().translate(_APART) != anchor.encode():
        raise BadCue(f"{place}: an anchor is one word in small letters, without signs")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadCue(f"{place}: {pattern!r} is no pattern: {error}") from None
        yield _Cue(level=level, kind=kind, anchor=anchor, pattern=pattern, place=place)


def _compile(found: Sequence[_Cue]) -> Cues:
    """Join the patterns of an anchor, and those of a kind where kinds are counted."""
    high: dict[str, list[str]] = {}
    soft: dict[str, dict[str, list[str]]] = {}
    for cue in found:
        own = (
            high.setdefault(cue.anchor, [])
            if cue.level == "high"
            else soft.setdefault(cue.anchor, {}).setdefault(cue.kind, [])
        )
        own.append(cue.pattern)
    return Cues(
        high={anchor: _joined(patterns) for anchor, patterns in high.items()},
        soft={
            anchor: tuple((kind, _joined(patterns)) for kind, patterns in kinds.items())
            for anchor, kinds in soft.items()
        },
        anchors={anchor.encode(): anchor for anchor in {*high, *soft} if anchor},
    )


def _joined(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(f"(?:{pattern})" for pattern in patterns) + ")")


_OPENING = (
    r"(?P<opening>(?:(?:hey|hi|hello|ok|okay|oh|so|and|also|no|actually|by the way|btw|thanks|great|hallo|ach|übrigens|"
    r"nein|und)(?: (?-i:[A-ZÄÖÜ]\w+))??[,!]? +){0,3}?(?:(?-i:[A-ZÄÖÜ]\w+), )??)"
)
_POLITE = r"(?:(?:please|kindly|just|also|so|and|bitte|mal|auch) +){0,4}"
_WILL_YOU = r"(?:can|could|would|will) you (?:mind )?"

_KEEP = (
    r"(?:remember|(?:make|take) (?:a )?note|note(?: down)?|keep in mind|bear in mind|memori[sz]e|"
    r"(?:don't|do not) forget)(?: (?:for me|please))?"
)
_MERKEN = r"(?:merk(?:e)? dir|denk daran|beachte|vergiss nicht|notier(?:e)? dir)(?: bitte)?"
_THIS = r"(?: (?:this|the following|folgendes|das))? *(?::| [–-] ) *| (?:this|the following), "

# What may follow "remember" in a question that wishes it: a clause, not a thing ("that restaurant").
_CLAUSE = (
    r"(?:i|we|he|she|it|they|you|my|our|his|her|their|the|a|an|there|all|every|no|"
    r"(?-i:[A-ZÄÖÜ]\w*)|\w+'(?:s|m|re|ve))\b"
)

_TOLD = re.compile(
    rf"{_OPENING}(?:(?:i(?:'d like| would like| want| need) you to )?{_POLITE}(?:{_KEEP}|{_MERKEN})"
    rf"(?:{_THIS}| that |,? dass |[\s,]+)|{_POLITE}(?:for the record|fyi|just so you know|important|wichtig|zur info)"
    rf"\b[\s,:–-]+)(?=\w)(?!to\b)(?P<noted>.+)",
    re.IGNORECASE | re.DOTALL,
)

_ASKED = re.compile(
    rf"{_OPENING}(?:{_WILL_YOU}{_POLITE}(?:{_KEEP}|remembering|keeping in mind)"
    rf"(?:{_THIS}| that (?={_CLAUSE})| (?=i(?:'\w+)? )| (?=my [\w ]+? (?:is|are|was)\b))"
    rf"|(?:kannst|könntest|würdest) du (?:dir )?{_POLITE}(?:merken|daran denken|notieren)(?:,? dass |: *))"
    rf"(?P<noted>\w.+)",
    re.IGNORECASE | re.DOTALL,
)

_DO = (
    "(?:answer|reply|respond|use|write|speak|talk|call|address|format|include|keep|start|end|begin|send|put|add|ask|run|"
    "give|show|check|make|explain|summari[sz]e|avoid|mention|commit|push|delete|deploy)"
)
_SURE = r"(?:(?:make sure|be sure|remember)(?: (?:to|that you))? )?"
_LASTING = r"(?:from now on|in (?:the )?future|ab jetzt|künftig|von nun an|in zukunft)"

_ORDERED = re.compile(
    rf"{_OPENING}(?:"
    rf"{_WILL_YOU}(?:kindly |just |also )*please {_SURE}(?=(?:always|never)\b)"
    rf"|{_WILL_YOU}{_POLITE}(?:{_SURE}(?=(?:always|never) {_DO}\b)|(?={_DO}\b.*\b{_LASTING}[ ?.!]*$))"
    rf"|(?:please|kindly|bitte) (?:(?:remember|make sure|be sure) to )?(?=(?:always|never|immer|nie|niemals)\b)"
    rf"|remember to (?=(?:always|never)\b)"
    rf"|(?:kannst|könntest|würdest) du (?:bitte )?(?=(?:immer|nie|niemals|{_LASTING})\b)"
    rf")(?P<noted>.+)",
    re.IGNORECASE | re.DOTALL,
)

# "Always answer in French", not "Always loved the sea" or "Never mind"; "from now on, call me Al", not "… I live here".
_STANDING = re.compile(
    rf"{_OPENING}(?:(?:i(?:'d like| would like| want| need) you to|you (?:should|must)|"
    rf"(?:make|be) sure(?: (?:to|you|that you))?|remember(?: to| that you)?) )?{_POLITE}(?:"
    r"(?:always|never|(?:don't|do not) ever) (?!(?:mind|again|been|had|was|were|is|are|am|an?|the|my|our|his|her|in|on|"
    r"at|too|so|knew|thought|saw|\w+ed)\b)[a-z]+"
    rf"|(?:{_LASTING}|going forward)\b(?!,? (?:i|we|my|our|it|he|she|they|ich|wir|will|möchten?|werden?)\b"
    r"(?! (?:want|need|would like) you))"
    r"|(?:whenever|every time|each time) i ask\b|when i ask (?:you|for|about)\b|(?:immer|jedes mal),? wenn ich\b"
    r"|(?:antworte|schreibe?|sprich|verwende|benutze?|nutze?|nimm|nenne?|gib|zeige?|frage?|mache?|sage?|erkläre?|fasse?|"
    r"prüfe?|teste?|lösche?|lasse?|vermeide|erwähne|formatiere|halte?|setze?)(?: mir| dir| dich)? (?:bitte )?"
    rf"(?:immer|niemals|nie|stets|{_LASTING})\b)",
    re.IGNORECASE,
)
_COURTESY = re.compile(r",? (?:please|thanks|for me|bitte)$", re.IGNORECASE)

# "…, dass ich vegan bin": the verb of a German clause stands last, that of a sentence second.
_GERMAN_CLAUSE = re.compile(
    r"(?P<subject>ich|wir|er|sie|es|(?:(?:der|die|das|(?:m|d|s|k)?eine?|unsere?|ihre?) )?"
    r"(?:[a-zäöüß]+ )?[A-ZÄÖÜ][\w-]+) (?P<rest>[^,;:]*?) (?P<verb>[a-zäöüß]+)[.!]?"
)


def find_request(sentence: str, *, may_ask: bool = True) -> str | None:
    """Return what a sentence wishes to be remembered or always done, without the wish; None if it wishes neither.

    Without `may_ask` what reads as a question is none of it.
    """
    asked = (_ORDERED.match(sentence) or _ASKED.match(sentence)) if may_ask else None
    if asked:
        return asked["opening"] + _as_statement(asked, _close(asked["noted"]))
    told = _TOLD.match(sentence)
    return told["opening"] + _as_statement(told, told["noted"]) if told else None


@lru_cache(maxsize=16_384)  # recall asks this of hundreds of texts, mostly of the same ones
def is_standing_order(opening: str) -> bool:
    """Tell by how a text begins whether it says what is to be done always, never, or from now on."""
    return bool(_STANDING.match(opening) or _ORDERED.match(opening))


def _as_statement(heard: re.Match[str], noted: str) -> str:
    wish = heard.group()[: heard.start("noted") - heard.start()]
    if wish.rstrip().lower().endswith("dass"):
        clause = _GERMAN_CLAUSE.fullmatch(noted.strip())
        noted = f"{clause['subject']} {clause['verb']} {clause['rest']}." if clause else noted
    return noted if heard["opening"] else noted[:1].upper() + noted[1:]


def _close(noted: str) -> str:
    """End what was asked as a statement: "… at seven, please?" with a full stop."""
    return _COURTESY.sub("", noted.rstrip(" ?!.\n")).rstrip(" ,") + "."
