"""Cut a text into words and chunks, and clear away what nobody said in it.

What nobody said: echoes of what we injected (B1, B4). At the end, which of several texts hold the same words.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from memory.domain.identity import IdKind, content_hash, id_pattern
from memory.domain.taxonomy import ConversationTurn
from memory.language.words import ENGLISH_STOPS, GERMAN_STOPS, word_set
from memory.text.sentences import split_sentences

_WORD = re.compile(r"[^\W_]+(?:[.'’+#/_-]*[^\W_]+)*[+#]*")


def list_words(text: str) -> list[str]:
    """List the words of a text as written, with inner apostrophes, hyphens, C++ and C# kept."""
    return [match.group().replace("’", "'") for match in _WORD.finditer(text)]


_BRACKETED = r"(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]?"
_NUMBER = r"\d(?:[.,]\d+)?"
_BULLET = r"^[ \t>*+-]*"
_ITEM = r"^[ \t>]*- "

# Recollections, lines of memory_recall, and the sections of MEMORY.md: whole, cut off, or single lines.
_ECHO = re.compile(
    r"<!-- ENGRAM:(?P<part>BELIEFS|MEMORIES):BEGIN -->.*?(?:<!-- ENGRAM:(?P=part):END -->|\Z)"
    r"|<!-- ENGRAM:(?:BELIEFS|MEMORIES):END -->"
    rf"|\[Memory flash: {_BRACKETED}"
    rf"|\[Belief \({_NUMBER}\): {_BRACKETED}"
    rf"|{_BULLET}\[[A-Z]\] \([^)\n]*\)[^\n]*[—–-] ID: {id_pattern(IdKind.BELIEF, IdKind.EPISODE, IdKind.TURN)}"
    rf"|{_ITEM}[^\n]*\(confidence: {_NUMBER}, evidence: \d+\)[ \t]*$"
    rf"|{_ITEM}[^\n]*\N{{NO-BREAK SPACE}}\(\d{{4}}-\d\d-\d\d\)[ \t]*$"
    rf"|{_ITEM}\[NO LONGER TRUE\][^\n]*\(was: {_NUMBER}, (?:now: {_NUMBER}|ended: [\d-]+), demoted: [\d-]+\)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_NAME_END = ": "
_INSIDE_NAMES = dict.fromkeys(map(ord, "'’-._"))

# Words of a name that are written small.
_PARTICLES = word_set("al bin da de del della den der di dos du el la le ter van von zu zur")

# What opens a text as a name would, and names nobody.
_LABELS = word_set(
    "ps fyi note notes nb todo update edit reminder correction important question answer summary warning"
    " korrektur notiz hinweis nachtrag wichtig erinnerung frage antwort zusammenfassung warnung"
)


def strip_echo(text: str, speaker: str = "") -> str:
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


_FENCE = "```"

_BORDERS = (
    re.compile(r"\n\s*\n"),  # between paragraphs, rather than
    re.compile(r"\n+"),  # between lines, rather than
    re.compile(r"[.!?…][\"'”“’»)\]]*\s+(?=\S)"),  # between sentences, rather than
    re.compile(r"\s+"),  # between words
)


def chunk_text(*, text: str, longest: int) -> list[str]:
    """Cut a text into pieces of at most so many characters, at the last border that leaves a piece more than half full.

    Nothing is lost but the spaces between pieces; a short text is one piece. Code that is cut is code in both pieces.
    """
    if len(text) <= longest:
        return [text]
    return list(_close_code(piece for piece in _cut_chunks(text, longest - 2 * len(_FENCE) - 2) if piece))


def split_text(*, text: str, longest: int) -> list[str]:
    """Split a text into parts of at most so many bytes of UTF-8, four or more; joined again they are the text.

    A part ends where a piece would. The plugin for Claude Code and the Python client split by the same rule, in files
    of their own: turns that the plugin has sent and that are imported later are the same turns.
    """
    parts, start = [], 0
    while (full := start + _count_fitting(text, start, longest)) < len(text):
        end = _find_end(text, start, full)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _count_fitting(text: str, start: int, longest: int) -> int:
    """Count the characters from a place on that fit into so many bytes; a half of a surrogate pair is one byte."""
    window = text[start : start + longest].encode("utf-8", "replace")
    return max(len(window[:longest].decode("utf-8", "ignore")), 1)  # however little is allowed, it goes on


def _close_code(pieces: Iterable[str]) -> Iterator[str]:
    is_open = False
    for piece in pieces:
        whole = f"{_FENCE}\n{piece}" if is_open else piece
        is_open = whole.count(_FENCE) % 2 == 1
        yield f"{whole}\n{_FENCE}" if is_open else whole


def _cut_chunks(text: str, longest: int) -> Iterator[str]:
    start = 0
    while len(text) - start > longest:
        end = _find_end(text, start, start + longest)
        yield text[start:end].strip()
        start = end
    yield text[start:].strip()


def _find_end(text: str, start: int, full: int) -> int:
    """Return where a piece ends: at the last border of the best kind in the second half of what it may hold."""
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(text, start + (full - start) // 2, full)]
        if ends:
            return ends[-1]
    return full


_STEM_LETTERS = 5  # letters of a word that its forms share
_SHORTEST_STEM = 3


def turns_that_repeat(*, texts: Sequence[str], turns: Sequence[ConversationTurn]) -> list[ConversationTurn]:
    """Return the turns that hold every word of one of some texts, but for the name of who speaks."""
    wanted = [_stems(text) for text in texts]
    return [turn for turn in turns if _holds_any(wanted, said=_stems(turn.text), name=_stems(turn.speaker))]


def says_more(*, summary: str, told: Sequence[str], share: float) -> bool:
    """Tell whether a summary has a sentence of which texts have less than a share of the words, or not all numbers."""
    known = {word for text in told for word in _stems(text) | _numbers_in(text)}
    sentences = [(_stems(sentence), _numbers_in(sentence)) for sentence in split_sentences(summary)]
    return any(len(words & known) < share * len(words) or not numbers <= known for words, numbers in sentences)


def _numbers_in(text: str) -> set[str]:
    return {word for word in list_words(text) if any(map(str.isdigit, word))}


def _holds_any(wanted: Sequence[set[str]], *, said: set[str], name: set[str]) -> bool:
    return any(words - name <= said for words in wanted if words - name)


def _stems(text: str) -> set[str]:
    words = (word.casefold() for word in list_words(text))
    kept = (word for word in words if word not in ENGLISH_STOPS and word not in GERMAN_STOPS)
    return {word[:_STEM_LETTERS] for word in kept if len(word) >= _SHORTEST_STEM}


_STOPS = ENGLISH_STOPS | GERMAN_STOPS


def find_cause(*, cause: str, texts: Sequence[str], least: float) -> tuple[int, float] | None:
    """Return the place of the text that says the cause, the first of equals, and the share of its words that it has."""
    wanted = _telling_words(cause)
    hashed = content_hash(cause)
    shares = [1.0 if content_hash(text) == hashed else _share_said(wanted, _telling_words(text)) for text in texts]
    best = max(range(len(shares)), key=lambda place: (shares[place], -place), default=None)
    return None if best is None or shares[best] < least else (best, shares[best])


def _telling_words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in list_words(text)) - _STOPS


def _share_said(wanted: frozenset[str], said: frozenset[str]) -> float:
    return len(wanted & said) / len(wanted) if wanted else 0.0
