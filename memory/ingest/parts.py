"""Lines whose text is longer than one may be come in as several: a line for each part, known by the whole's name."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from django.conf import settings

from memory.domain.pieces import split_text
from memory.redaction.doors import redact_name

_LONGEST_NAME = 200  # characters of a turn_id or an idempotency_key
_FULL = 16 * 2**20  # bytes or characters from which a batch is full, however few lines it has

Item = TypeVar("Item")


def split_line(*, line: Mapping[str, object], text: str, name: str) -> list[Mapping[str, object]]:
    """Return a line once for each part of its text; as it is if that is short enough, or no text.

    `text` and `name` are fields: what is split, and what a line is known by. Parts have names made of the whole's, so
    that they are the same when they are sent again. What is blank is no part: nothing was said.
    """
    whole, known_by = line.get(text), line.get(name)
    parts = split_text(text=whole, longest=settings.POLICY.ingest.text_bytes) if isinstance(whole, str) else []
    if len(parts) < 2:
        return [line]
    said: list[Mapping[str, object]] = [{**line, text: part} for part in parts if part.strip()]
    if isinstance(known_by, str) and known_by:
        said = [{**part, name: name_part(whole=known_by, number=number)} for number, part in enumerate(said, start=1)]
    return said or [line]


def in_batches(items: Iterable[Item], *, most: int, size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Cut what comes from a file into batches of so many, or of few where they are long."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if len(batch) >= most or size >= _FULL:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def name_part(*, whole: str, number: int) -> str:
    """Name a part; the first has the name of the whole."""
    suffix = "" if number == 1 else f":{number}"
    if len(whole) + len(suffix) <= _LONGEST_NAME:
        return f"{whole}{suffix}"
    return f"{_digest(redact_name(whole).text)}{suffix}"


def document_of(text: str) -> str:
    """Name the document that a text's parts are of, where nothing else says that they belong together."""
    return f"text:{_digest(text)[:32]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
