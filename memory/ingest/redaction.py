"""Take secrets out of what comes in, at the doors (L2)."""

from memory.redaction.findings import Redacted
from memory.redaction.redact import redact

__all__ = ["Redacted", "redact"]
