"""API keys: shown once, kept as a hash."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache

from django.db import connection, transaction
from django.db.models import Model, QuerySet

from memory.domain.actor import Actor, ActorKind
from memory.models import ApiKey, Permission, Project, Workspace
from memory.models.numbered import run_numbered

_PREFIX = "engram_"
_LAST_USED_GRAIN = timedelta(minutes=1)

# Owner includes all, curate includes read and write, write does not include read.
_INCLUDED = {
    Permission.READ: {Permission.READ},
    Permission.WRITE: {Permission.WRITE},
    Permission.CURATE: {Permission.READ, Permission.WRITE, Permission.CURATE},
    Permission.OWNER: set(Permission),
}

NO_KEY = "Send a key as: Authorization: Bearer <key>"
UNKNOWN_KEY = "This key is unknown or revoked."


def missing_permission(permission: Permission | str) -> str:
    """Say what a key would have to be to do what it may not."""
    return f"This key may not do that: it takes a key with the permission {permission}."


def hash_key(text: str) -> str:
    """Hash a key for storage. Keys hold 256 random bits, so a plain digest cannot be searched backwards."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@transaction.atomic
def create_key(
    *,
    workspace: Workspace,
    permissions: Sequence[Permission],
    now: datetime,
    projects: Sequence[Project] = (),
    name: str = "",
) -> tuple[ApiKey, str]:
    """Create a key and return it with its text, which is stored nowhere."""
    text = _PREFIX + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        workspace=workspace,
        name=name,
        prefix=text[: len(_PREFIX) + 4],
        hash=hash_key(text),
        permissions=list(permissions),
        is_limited=bool(projects),
        created_at=now,
    )
    key.projects.set(projects)
    return key, text


def find_key(*, text: str) -> ApiKey | None:
    """Find the living key of this text. The lookup compares digests only, so its timing tells nothing of a key."""
    row = run_numbered(statement=_find_statement(), parameters={"hash": hash_key(text)}, keeps_plan=True).fetchone()
    if row is None:
        return None
    key_names, workspace_names = _names(ApiKey), _names(Workspace)
    key = ApiKey.from_db(connection.alias, key_names, row[: len(key_names)])
    key.workspace = Workspace.from_db(connection.alias, workspace_names, row[len(key_names) :])
    return key


@cache
def _find_statement() -> str:
    """Write the statement once: every call begins with it, and a query set takes longer to write than to run."""
    keys = ApiKey.objects.select_related("workspace").order_by().filter(hash="", revoked_at=None)
    return keys.query.sql_with_params()[0] % "%(hash)s"


@cache
def _names(model: type[Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


def note_use(*, key: ApiKey, now: datetime) -> None:
    """Remember roughly when a key was last used, without a write on every call."""
    if key.last_used_at is None or now - key.last_used_at > _LAST_USED_GRAIN:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def actor_of(*, key: ApiKey) -> Actor:
    """Name a key's holder as the history does: by the beginning of the key, which is shown with it."""
    return Actor(kind=ActorKind.KEY, name=key.prefix)


def revoke_keys(*, keys: QuerySet[ApiKey], now: datetime) -> int:
    """Revoke the keys that still live, and return how many those were."""
    return keys.filter(revoked_at=None).update(revoked_at=now)


def grants(*, key: ApiKey, permission: Permission) -> bool:
    """Tell whether a key allows what `permission` names."""
    return any(permission in _INCLUDED[Permission(held)] for held in key.permissions)


def allowed_projects(key: ApiKey) -> list[int] | None:
    """List the ids of the projects that a key is limited to, or None for no limit."""
    return list(key.projects.values_list("pk", flat=True)) if key.is_limited else None
