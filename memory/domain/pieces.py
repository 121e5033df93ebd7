"""Cut a long text: into pieces that a model reads one after another (L3), or into parts that are kept (B1)."""

import re
from collections.abc import Iterable, Iterator

_FENCE = "```"
_BORDERS = (
    re.compile(r"\n\s*\n"),  # between paragraphs, rather than
    re.compile(r"\n+"),  # between lines, rather than
    re.compile(r"[.!?…][\"'”“’»)\]]*\s+(?=\S)"),  # between sentences, rather than
    re.compile(r"\s+"),  # between words
)


def cut_pieces(*, text: str, longest: int) -> list[str]:
    """Cut a text into pieces of at most so many characters, at the last border that leaves a piece more than half full.

    Nothing is lost but the spaces between pieces; a short text is one piece. Code that is cut is code in both pieces.
    """
    if len(text) <= longest:
        return [text]
    return list(_close_code(piece for piece in _cut(text, longest - 2 * len(_FENCE) - 2) if piece))


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


def _cut(text: str, longest: int) -> Iterator[str]:
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
