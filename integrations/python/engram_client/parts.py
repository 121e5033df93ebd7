"""A text that is longer than the API takes, in parts: a line for each, and one answer for all of them."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

LONGEST = 32 * 1024  # bytes of a text

_LONGEST_NAME = 200  # characters of a turn_id or an idempotency_key
_MOST_LINES = 1000  # of a request
_MOST_BYTES = 2**20  # of the texts of a request, which as JSON may take six times as much; a body may have 8 MiB

_BORDERS = (
    re.compile(r"\n\s*\n"),  # between paragraphs, rather than
    re.compile(r"\n+"),  # between lines, rather than
    re.compile(r"[.!?…][\"'”“’»)\]]*\s+(?=\S)"),  # between sentences, rather than
    re.compile(r"\s+"),  # between words
)


def is_too_long(text: object) -> bool:
    """Tell whether a text is longer than the API takes."""
    return isinstance(text, str) and len(text.encode("utf-8", "replace")) > LONGEST


def split_line(line: Mapping[str, Any], *, text: str, name: str) -> list[Mapping[str, Any]]:
    """Return a line once for each part of its text; as it is if that is short enough, or no text.

    `text` and `name` are fields: what is split, and what a line is known by. Parts have names made of the whole's, so
    that they are the same when they are sent again. What is blank is no part: nothing was said.
    """
    if not is_too_long(line.get(text)):
        return [line]
    parts = [{**line, text: part} for part in split_text(text=line[text]) if part.strip()] or [{**line}]
    known_by = line.get(name)
    if not isinstance(known_by, str) or not known_by:
        return list(parts)
    if text == "text" and not (line.get("session") or line.get("document")):
        parts = [{**part, "document": f"text:{_digest(known_by)[:32]}"} for part in parts]
    return [{**part, name: _name_part(known_by, number)} for number, part in enumerate(parts, start=1)]


def _name_part(whole: str, number: int) -> str:
    """Name a part; the first has the name of the whole."""
    suffix = "" if number == 1 else f":{number}"
    return f"{whole if len(whole) + len(suffix) <= _LONGEST_NAME else _digest(whole)}{suffix}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def in_requests(lines: Sequence[Mapping[str, Any]], *, text: str) -> Iterator[list[Mapping[str, Any]]]:
    """Yield lines in their order, as many at once as one request may have."""
    some: list[Mapping[str, Any]] = []
    size = 0
    for line in lines:
        weight = len(str(line.get(text)).encode("utf-8", "replace"))
        if some and (len(some) == _MOST_LINES or size + weight > _MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(line)
        size += weight
    if some:
        yield some


def join_answers(answers: Sequence[Mapping[str, Any]], *, parts: Sequence[int]) -> list[Mapping[str, Any]]:
    """Return an answer for each line that was given: of one in parts the first part's, with those of all its `parts`.

    A line of which a part was refused is refused, though its other parts are stored.
    """
    joined: list[Mapping[str, Any]] = []
    rest = iter(answers)
    for index, count in enumerate(parts):
        of_line = [next(rest) for _ in range(count)]
        errors = [answer["error"] for answer in of_line if "error" in answer]
        if errors:
            joined.append({"error": {**errors[0], "index": index}})
        elif count == 1:
            joined.append(of_line[0])
        else:
            joined.append({**of_line[0], **_known(of_line), "parts": of_line})
    return joined


def _known(of_line: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Tell that not all of a line was known, where its first part says that it was."""
    is_new = not all(answer.get("deduplicated") for answer in of_line)
    return {"deduplicated": False} if is_new and of_line[0].get("deduplicated") else {}


def split_text(*, text: str, longest: int = LONGEST) -> list[str]:
    """Split a text into parts of at most so many bytes of UTF-8, which joined again are the text.

    A part ends at the last border of the best kind in the second half of what it may hold.
    """
    parts, start = [], 0
    while (full := start + _count_fitting(text, start, longest)) < len(text):
        end = _find_end(text, start, full)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _count_fitting(text: str, start: int, longest: int) -> int:
    """Count the characters from a place on that fit into so many bytes."""
    window = text[start : start + longest].encode("utf-8", "replace")
    return len(window[:longest].decode("utf-8", "ignore"))


def _find_end(text: str, start: int, full: int) -> int:
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(text, start + (full - start) // 2, full)]
        if ends:
            return ends[-1]
    return full
