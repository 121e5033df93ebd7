"""Keys: `Authorization: Bearer <key>`."""

from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from memory.access import NO_KEY, UNKNOWN_KEY, actor_of_key, find_key, note_key_use
from memory.domain.actor import Actor
from memory.models import ApiKey, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """Whoever holds a key: stands in for a user wherever the framework asks for one."""

    key: ApiKey
    is_authenticated: bool = True

    @property
    def workspace(self) -> Workspace:
        """Return the only workspace that this caller can see."""
        return self.key.workspace

    @property
    def actor(self) -> Actor:
        """Name the caller as the history does."""
        return actor_of_key(key=self.key)


class ApiKeyAuthentication(BaseAuthentication):
    """Find the caller's key; a missing, unknown or revoked one is a 401."""

    def authenticate(self, request: Request) -> tuple[KeyHolder, ApiKey] | None:
        words = get_authorization_header(request).split()
        if not words:
            return None
        if len(words) != 2 or words[0].lower() != b"bearer":
            raise AuthenticationFailed(NO_KEY)
        key = find_key(text=words[1].decode("latin-1"))
        if key is None:
            raise AuthenticationFailed(UNKNOWN_KEY)
        note_key_use(key=key, now=timezone.now())
        return KeyHolder(key=key), key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def holder_of(request: Any) -> KeyHolder:
    """Return the authenticated caller of a request."""
    holder: KeyHolder = request.user
    return holder
