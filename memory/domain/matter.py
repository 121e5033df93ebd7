"""What counts of a text: not the speaker's name before it, and nothing that we put there ourselves (B1, B4)."""

import re

from memory.domain.ids import IdKind, id_pattern
from memory.domain.lexicon import words

_BRACKETED = r"(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]?"
_NUMBER = r"\d(?:[.,]\d+)?"
_BULLET = r"^[ \t>*+-]*"
_ITEM = r"^[ \t>]*- "
# Recollections, lines of memory_recall, and the section of MEMORY.md: whole, cut off, or its lines alone.
_ECHO = re.compile(
    rf"<!-- ENGRAM:BELIEFS:BEGIN -->.*?(?:<!-- ENGRAM:BELIEFS:END -->|\Z)|<!-- ENGRAM:BELIEFS:END -->"
    rf"|\[Memory flash: {_BRACKETED}"
    rf"|\[Belief \({_NUMBER}\): {_BRACKETED}"
    rf"|{_BULLET}\[[A-Z]\] \([^)\n]*\)[^\n]*[—–-] ID: {id_pattern(IdKind.BELIEF, IdKind.EPISODE, IdKind.TURN)}"
    rf"|{_ITEM}[^\n]*\(confidence: {_NUMBER}, evidence: \d+\)[ \t]*$"
    rf"|{_ITEM}\[NO LONGER TRUE\][^\n]*\(was: {_NUMBER}, now: {_NUMBER}, demoted: [\d-]+\)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_NAME_END = ": "
_INSIDE_NAMES = dict.fromkeys(map(ord, "'’-._"))
# Words of a name that are written small.
_PARTICLES = words("al bin da de del della den der di dos du el la le ter van von zu zur")
# What opens a text as a name would, and names nobody.
_LABELS = words(
    "ps fyi note notes nb todo update edit reminder correction important question answer summary warning"
    " korrektur notiz hinweis nachtrag wichtig erinnerung frage antwort zusammenfassung warnung"
)


def matter_of(text: str, speaker: str = "") -> str:
    """Return a text without its speaker's own prefix and without what we injected; "" if all of it is echo."""
    said = text.removeprefix(speaker + _NAME_END).strip() if speaker else text.strip()
    kept, echoes = _ECHO.subn("", said)
    if not echoes:
        return said or text.strip()
    return _BLANK_LINES.sub("\n\n", kept).strip() if any(character.isalnum() for character in kept) else ""


def opening_name(text: str, *, longest: int) -> str | None:
    """Return the capitalised name of at most `longest` characters in a text that begins `Name: `, else None."""
    name, colon, _ = text[: longest + len(_NAME_END)].partition(_NAME_END)
    is_name = name[:1].isalpha() and not name[0].islower() and all(map(_is_part_of_a_name, name.split(" ")))
    return name if colon and is_name and name.lower() not in _LABELS else None


def _is_part_of_a_name(word: str) -> bool:
    """Tell whether a word begins with a capital, a digit, or a letter of a script without capitals."""
    plain = word.translate(_INSIDE_NAMES)
    return word in _PARTICLES or (plain.isalnum() and not plain[0].islower())
