"""Explicit requests to remember: how strongly a turn asks for it (L1).

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
from functools import cache
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
