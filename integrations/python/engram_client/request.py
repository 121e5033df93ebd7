"""One request to the API: how it is put together, and how a text that is too long for one is sent in parts.

The calls that there are stand in `calls`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

T = TypeVar("T")
JSON = "application/json"
LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request. `T` is what its answer is; `is_repeatable`: sent twice it does what it does once.

    `is_slow`: the server asks a model meanwhile, or looks at all that is believed. `lines` names the list in which a
    batch's lines are answered, each for itself. A batch with texts that are too long for one line has `parts`, of how
    many lines each line that was given became, and is sent as its `requests`.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content: bytes | None = None
    is_repeatable: bool = False
    is_slow: bool = False
    lines: str = ""
    parts: Sequence[int] = ()
    requests: Sequence["Call[T]"] = ()


def get(path: str, **query: Any) -> Call[Any]:
    """Describe reading from an address."""
    return Call(method="GET", path=path, query=without_none(query), is_repeatable=True)


def post(
    path: str, body: Mapping[str, Any] | None = None, *, is_repeatable: bool = False, is_slow: bool = False
) -> Call[Any]:
    """Describe sending a body to an address."""
    return Call(method="POST", path=path, body=without_none(body or {}), is_repeatable=is_repeatable, is_slow=is_slow)


def batch(path: str, name: str, rows: Iterable[Mapping[str, Any]], *, text: str, known_by: str) -> Call[Any]:
    """Send lines in one request; it may be repeated if each of them names what it is known by.

    A line whose text is too long for one is sent as several, and it may take several requests then.
    """
    given_lines = _checked_rows(name, rows)
    groups = [split_line(line, text=text, name=known_by) for line in given_lines]
    lines = [part for group in groups for part in group]
    is_repeatable = all(line.get(known_by) for line in lines)
    call: Call[Any] = Call(method="POST", path=path, is_repeatable=is_repeatable, lines=name)
    if len(lines) == len(given_lines):
        return replace(call, body={name: _as_json(lines)})
    requests = [replace(call, body={name: _as_json(some)}) for some in group_lines(lines, text=text)]
    return replace(call, parts=[len(group) for group in groups], requests=requests)


def _checked_rows(name: str, rows: object) -> list[Mapping[str, Any]]:
    """Return lines as a list; raise TypeError for what is none, before anything is sent."""
    wanted = f"a list of dictionaries is needed, one for each of the {name}"
    if isinstance(rows, Mapping):
        raise TypeError(f"{wanted}; this is a single one: put it into a list")
    if isinstance(rows, (str, bytes, Set)) or not isinstance(rows, Iterable):
        raise TypeError(f"{wanted}, in their order; this is a {type(rows).__name__}")
    lines = list(rows)
    for place, line in enumerate(lines):
        if not isinstance(line, Mapping):
            raise TypeError(f"{wanted}; number {place} is a {type(line).__name__}")
    return lines


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what was given, times as RFC 3339 has them."""
    return {name: _as_json(value) for name, value in values.items() if value is not None}


def quote_id(text: str) -> str:
    """Return an id as a part of an address: nothing in it leads elsewhere."""
    return quote(text, safe="")


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _as_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return value


LONGEST_TEXT = 32 * 1024  # bytes of a text
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
    return isinstance(text, str) and len(text.encode("utf-8", "replace")) > LONGEST_TEXT


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


def group_lines(lines: Sequence[Mapping[str, Any]], *, text: str) -> Iterator[list[Mapping[str, Any]]]:
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
            joined.append({**of_line[0], **_merge_deduplicated(of_line), "parts": of_line})
    return joined


def _merge_deduplicated(of_line: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Tell that not all of a line was known, where its first part says that it was."""
    is_new = not all(answer.get("deduplicated") for answer in of_line)
    return {"deduplicated": False} if is_new and of_line[0].get("deduplicated") else {}


def split_text(*, text: str, longest: int = LONGEST_TEXT) -> list[str]:
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
