"""Cut a long text into pieces that a model reads one after another (L3)."""

import re
from collections.abc import Iterable, Iterator

_FENCE = "```"
_BORDERS = (
    re.compile(r"\n\s*\n"),  # between paragraphs, rather than
    re.compile(r"[.!?…][\"'”“’»)\]]*\s+(?=\S)|\n+"),  # between sentences, rather than
    re.compile(r"\s+"),  # between words
)


def cut_pieces(*, text: str, longest: int) -> list[str]:
    """Cut a text into pieces of at most so many characters, at the last border that leaves a piece more than half full.

    Nothing is lost but the spaces between pieces; a short text is one piece. Code that is cut is code in both pieces.
    """
    if len(text) <= longest:
        return [text]
    return list(_close_code(piece for piece in _cut(text, longest - 2 * len(_FENCE) - 2) if piece))


def _close_code(pieces: Iterable[str]) -> Iterator[str]:
    is_open = False
    for piece in pieces:
        whole = f"{_FENCE}\n{piece}" if is_open else piece
        is_open = whole.count(_FENCE) % 2 == 1
        yield f"{whole}\n{_FENCE}" if is_open else whole


def _cut(text: str, longest: int) -> Iterator[str]:
    start = 0
    while len(text) - start > longest:
        end = _find_end(text, start, longest)
        yield text[start:end].strip()
        start = end
    yield text[start:].strip()


def _find_end(text: str, start: int, longest: int) -> int:
    """Return where a piece ends: at the last border of the best kind in the second half of what it may hold."""
    full = start + longest
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(text, start + longest // 2, full)]
        if ends:
            return ends[-1]
    return full
