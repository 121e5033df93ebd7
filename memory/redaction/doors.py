"""Take secrets out of what comes in or goes out on behalf of a workspace, and count them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from memory.models.redactions import Redaction
from memory.redaction.findings import Redacted
from memory.redaction.redact import redact

# A marker may be longer than its secret. What is limited is cut to the least limit that its caller kept to.
_LIMITS = (100, 200, 400, 1000)
# What only tells one thing from another.
_NAMES = {"project", "user", "agent", "session", "document", "idempotency_key", "turn_id", "cursor", "id", "workspace"}
_UNLIMITED = {"text", "content", "verbatim", "causes"}


def redact_for(*, workspace_id: int, text: str) -> str:
    """Return a text without secrets; what was taken out is counted."""
    return redact_all(workspace_id=workspace_id, texts=[text])[0]


def redact_all(*, workspace_id: int, texts: Sequence[str]) -> list[str]:
    """Return texts without secrets, in their order; what was taken out is counted."""
    found = _redact_each(texts)
    note_redactions(workspace_id=workspace_id, counts=_total(found))
    return [one.text for one in found]


def redact_values(*, workspace_id: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was sent, checked already, without the secrets in any of its texts.

    What has a limit still keeps to it; what is said as such has none.
    """
    said: list[str] = []
    names: list[str] = []
    _collect(values, said, names)
    found = {**_by_text(said), **_by_text(names, is_name=True)}
    counts = _total(found.values())
    if not counts:
        return dict(values)
    note_redactions(workspace_id=workspace_id, counts=counts)
    clean = {text: one.text for text, one in found.items()}
    return {name: _replaced(value, clean, is_cut=name not in _UNLIMITED) for name, value in values.items()}


def note_redactions(*, workspace_id: int, counts: Mapping[str, int]) -> None:
    """Count what was taken out, once what it was taken out of is stored."""
    if counts:
        kept = {str(kind): count for kind, count in counts.items()}
        transaction.on_commit(lambda: Redaction.objects.add(workspace_id=workspace_id, counts=kept), robust=True)


def cut_to_limit(text: str, *, before: str) -> str:
    """Cut a text that grew by its markers to the least limit that it kept to before."""
    return text[: min((limit for limit in _LIMITS if limit >= len(before)), default=None)]


def _redact_each(texts: Sequence[str], *, is_name: bool = False) -> list[Redacted]:
    """Redact several texts, looking through all of them at once: nearly always there is nothing to find."""
    if not redact("\n".join(texts), is_name=is_name).counts:
        return [Redacted(text=text, counts={}) for text in texts]
    return [redact(text, is_name=is_name) for text in texts]


def _by_text(texts: Sequence[str], *, is_name: bool = False) -> dict[str, Redacted]:
    return dict(zip(texts, _redact_each(texts, is_name=is_name), strict=True))


def _total(found: Iterable[Redacted]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in found:
        total.update(one.counts)
    return total


def _collect(value: Any, said: list[str], names: list[str], *, is_name: bool = False) -> None:
    if isinstance(value, str):
        (names if is_name else said).append(value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _collect(item, said, names, is_name=name in _NAMES)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, said, names, is_name=is_name)


def _replaced(value: Any, clean: Mapping[str, str], *, is_cut: bool) -> Any:
    if isinstance(value, str):
        return cut_to_limit(clean[value], before=value) if is_cut else clean[value]
    if isinstance(value, Mapping):
        return {name: _replaced(item, clean, is_cut=is_cut and name not in _UNLIMITED) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, clean, is_cut=is_cut) for item in value]
    return value
