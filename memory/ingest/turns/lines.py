"""A turn of a conversation as programs send it, checked before anything is stored."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from memory.ingest.lines import BadLine, Key, Name, PastTime, Slug, Text, bad_line, fingerprint


class TurnLine(BaseModel):
    """What one side of a conversation said. Session, role and content are needed; the rest may be left out, or null."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    session: Key
    role: Literal["user", "assistant", "system", "tool"]
    content: Text
    turn_id: Key | None = None
    project: Slug | None = None
    user: Name | None = None
    speaker: Name | None = None
    occurred_at: PastTime = None

    def fingerprint(self) -> str:
        """Return the SHA-256 of the line's canonical JSON.

        Asked of a redacted line: of what was taken out not even a hash is kept, for a card number could be found by
        trying all.
        """
        return fingerprint(self.model_dump(mode="json", exclude_none=True))


def read_turn(*, raw: object, now: datetime) -> TurnLine:
    """Check one turn as JSON gave it; raise BadLine with every reason."""
    if not isinstance(raw, dict):
        raise BadLine(status=422, detail="A turn is a JSON object.", errors={})
    try:
        return TurnLine.model_validate(raw, context={"now": now})
    except ValidationError as error:
        raise bad_line(error.errors(include_url=False, include_input=False)) from None
