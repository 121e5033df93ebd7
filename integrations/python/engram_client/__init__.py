"""A client for Engram, a belief memory for AI agents."""

from engram_client.client import AsyncEngram, Engram, Options
from engram_client.errors import (
    ApiError,
    BadRequest,
    Closed,
    Conflict,
    EngramError,
    Forbidden,
    Invalid,
    NotFound,
    PartlyRefused,
    RateLimited,
    ServerFailed,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unreachable,
)

__all__ = [
    "ApiError",
    "AsyncEngram",
    "BadRequest",
    "Closed",
    "Conflict",
    "Engram",
    "EngramError",
    "Forbidden",
    "Invalid",
    "NotFound",
    "Options",
    "PartlyRefused",
    "RateLimited",
    "ServerFailed",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
]
