"""Take secrets out of texts that come in or go out on behalf of a workspace, and count them (L2).

`redact_lines` cleans checked lines before anything of them is stored, hashed or embedded; `redact_values` cleans the
fields of a request, `redact_all` texts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import transaction
from pydantic import BaseModel

from memory.models.tenancy import Redaction
from memory.redaction.detectors import Redacted, distinct_marker_of
from memory.redaction.redact import redact

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


# A marker may be longer than its secret. What is limited is cut to the least limit that its caller kept to.
_LIMITS = (100, 200, 400, 1000)

# What only tells one thing, or one person, from another.
_NAMES = {
    "project", "user", "agent", "session", "document", "speaker", "subject", "idempotency_key", "turn_id",
    "cursor", "id", "workspace",
}  # fmt: skip
_UNLIMITED = {"text", "content", "verbatim", "causes"}


def redact_for(*, workspace_id: int, text: str) -> str:
    """Return a text without secrets; what was taken out is counted."""
    return redact_all(workspace_id=workspace_id, texts=[text])[0]


def redact_all(*, workspace_id: int, texts: Sequence[str]) -> list[str]:
    """Return texts without secrets, in their order; what was taken out is counted."""
    found = [redact(text) for text in texts]
    count_redactions(workspace_id=workspace_id, counts=_total(found))
    return [one.text for one in found]


def redact_name(name: str) -> Redacted:
    """Take secrets out of a name, as every door does: one name stays one, and two stay two.

    One that would be longer than its limit is a marker as a whole, since what is cut off may be all that it differs in.
    """
    found = redact(name, is_name=True)
    if not found.counts or cut_to_limit(found.text, before=name) == found.text:
        return found
    return Redacted(text=distinct_marker_of("name", secret=name), counts=found.counts)


def redact_values(*, workspace_id: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was sent, checked already, without the secrets in any of its texts.

    What has a limit still keeps to it; what is said as such has none.
    """
    counts: Counter[str] = Counter()
    clean = {name: _redact_value(value, counts, name=name) for name, value in values.items()}
    if not counts:
        return dict(values)
    count_redactions(workspace_id=workspace_id, counts=counts)
    return clean


def count_redactions(*, workspace_id: int, counts: Mapping[str, int]) -> None:
    """Count what was taken out, once what it was taken out of is stored."""
    if counts:
        kept = {str(kind): count for kind, count in counts.items()}
        transaction.on_commit(lambda: Redaction.objects.add(workspace_id=workspace_id, counts=kept), robust=True)


def cut_to_limit(text: str, *, before: str) -> str:
    """Cut a text that grew by its markers to the least limit that it kept to before."""
    return text[: min((limit for limit in _LIMITS if limit >= len(before)), default=None)]


def _total(found: Iterable[Redacted]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in found:
        total.update(one.counts)
    return total


def _redact_value(value: Any, counts: Counter[str], *, name: str, is_cut: bool = True) -> Any:
    is_cut = is_cut and name not in _UNLIMITED
    if isinstance(value, str):
        found = redact_name(value) if name in _NAMES else redact(value)
        counts.update(found.counts)
        return cut_to_limit(found.text, before=value) if found.counts and is_cut else found.text
    if isinstance(value, Mapping):
        return {key: _redact_value(item, counts, name=key, is_cut=is_cut) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redact_value(item, counts, name=name, is_cut=is_cut) for item in value]
    return value
