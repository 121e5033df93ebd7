"""Take secrets out of lines before anything of them is stored, hashed or embedded (L2)."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from memory.redaction.doors import redact_values

_CHOSEN = {"project", "source", "category", "language", "role"}  # of lists or forms of their own; a slug is checked

Line = TypeVar("Line", bound=BaseModel)


def redact_lines(*, workspace_id: int, lines: Sequence[Line]) -> list[Line]:
    """Return checked lines without secrets, in their order; what was taken out is counted.

    An idempotency key and the names of a session or a document are texts, too: what hashes and origins are made of
    holds no secret that could be guessed from them.
    """
    harmless: set[tuple[str, str]] = set()
    return [_redact_line(workspace_id, line, harmless) for line in lines]


def _redact_line(workspace_id: int, line: Line, harmless: set[tuple[str, str]]) -> Line:
    """Redact a line; what is known to hold no secret, as the few names of a batch are, is not searched again."""
    given: dict[str, Any] = {
        name: value
        for name, value in vars(line).items()
        if (isinstance(value, str) and name not in _CHOSEN and (name, value) not in harmless) or isinstance(value, list)
    }
    clean = redact_values(workspace_id=workspace_id, values=given)
    if clean != given:
        return line.model_copy(update=clean)
    harmless.update((name, value) for name, value in given.items() if isinstance(value, str))
    return line
