"""Take secrets out of what a model is to see, so that rows from before redaction never leave with them (L2)."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from memory.llm.requests import Request
from memory.redaction.service import redact_all

Asked = TypeVar("Asked", bound=Request)


def redact_request(*, workspace_id: int, request: Asked) -> Asked:
    """Return a request without secrets in any of its texts, itself if it has none; what was taken out is counted."""
    texts: list[str] = []
    _collect(request, texts)
    clean = dict(zip(texts, redact_all(workspace_id=workspace_id, texts=texts), strict=True))
    if all(text == found for text, found in clean.items()):
        return request
    redacted: Asked = _replaced(request, clean)
    return redacted


def redact_texts(*, workspace_id: int, texts: Sequence[str]) -> list[str]:
    """Return texts that a server is to embed without secrets; what was taken out is counted."""
    return redact_all(workspace_id=workspace_id, texts=texts)


def _collect(value: Any, texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, tuple):
        for item in value:
            _collect(item, texts)
    elif is_dataclass(value):
        for field in fields(value):
            _collect(getattr(value, field.name), texts)


def _replaced(value: Any, clean: dict[str, str]) -> Any:
    if isinstance(value, str):
        return clean.get(value, value)
    if isinstance(value, tuple):
        return tuple(_replaced(item, clean) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _replaced(getattr(value, field.name), clean) for field in fields(value)})
    return value
