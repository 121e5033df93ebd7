"""The error that callers catch; its kinds live beside their raisers."""


class EmbeddedServiceError(RuntimeError):
    """An embedded server cannot be used; the message says which, why, and what its log says."""
