"""What counts as one independent source of evidence."""

from datetime import UTC, datetime


def origin_of(*, session: str, document: str, user: str, source: str, occurred_at: datetime) -> str:
    """Name the origin: the session, else the document, else user, source and UTC day of what happened."""
    if session:
        return f"session:{session}"
    if document:
        return f"document:{document}"
    return f"day:{occurred_at.astimezone(UTC).date().isoformat()}:{source}:{user}"
