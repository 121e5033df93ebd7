"""One request to the API, and how it is put together; what calls there are stands in `calls`."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

from engram_client.parts import in_requests, split_line

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
    return Call(method="GET", path=path, query=given(query), is_repeatable=True)


def post(
    path: str, body: Mapping[str, Any] | None = None, *, is_repeatable: bool = False, is_slow: bool = False
) -> Call[Any]:
    """Describe sending a body to an address."""
    return Call(method="POST", path=path, body=given(body or {}), is_repeatable=is_repeatable, is_slow=is_slow)


def batch(path: str, name: str, rows: Iterable[Mapping[str, Any]], *, text: str, known_by: str) -> Call[Any]:
    """Send lines in one request; it may be repeated if each of them names what it is known by.

    A line whose text is too long for one is sent as several, and it may take several requests then.
    """
    given_lines = _lines_of(name, rows)
    groups = [split_line(line, text=text, name=known_by) for line in given_lines]
    lines = [part for group in groups for part in group]
    is_repeatable = all(line.get(known_by) for line in lines)
    call: Call[Any] = Call(method="POST", path=path, is_repeatable=is_repeatable, lines=name)
    if len(lines) == len(given_lines):
        return replace(call, body={name: _as_json(lines)})
    requests = [replace(call, body={name: _as_json(some)}) for some in in_requests(lines, text=text)]
    return replace(call, parts=[len(group) for group in groups], requests=requests)


def _lines_of(name: str, rows: object) -> list[Mapping[str, Any]]:
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


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what was given, times as RFC 3339 has them."""
    return {name: _as_json(value) for name, value in values.items() if value is not None}


def named(text: str) -> str:
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
