"""Workspaces, projects, members and API keys, and what the holder of a key may see and do.

`visible_episodes` and `visible_beliefs` are the one place where rows are filtered by workspace and projects (B21).
"""

import hashlib
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from http import HTTPStatus
from typing import TypeVar

import redis
import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory.domain.errors import EngramError
from memory.domain.identity import Actor, ActorKind, is_episode_id, is_turn_id, is_whole
from memory.domain.lifecycle import BeliefStatus, EpisodeStatus
from memory.models import (
    ApiKey,
    Belief,
    Conversation,
    Episode,
    Evidence,
    Membership,
    Permission,
    Project,
    Role,
    Turn,
    Workspace,
)
from memory.models.beliefs import BeliefQuerySet
from memory.models.conversations import ConversationQuerySet, TurnQuerySet
from memory.models.episodes import EpisodeQuerySet
from memory.redaction.redact import has_known_secret
from memory.search.prepared import run_prepared

log = structlog.get_logger(__name__)
LIMITED_KEY = "This key is limited to projects: that takes a key without such a limit."
_OUTSIDE_PROJECTS = (
    "This key is limited to projects, and the belief belongs to none: that takes a key without such a limit."
)


class OutsideProjects(EngramError, PermissionError):
    """What belongs to no project is for all to see: who is limited to some does not change it (B21)."""

    status = HTTPStatus.FORBIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Someone who looks into one workspace; `projects` are those they are limited to, None for no limit."""

    workspace: Workspace
    projects: tuple[int, ...] | None = None

    @property
    def is_limited(self) -> bool:
        """Tell whether only some projects are open to this viewer."""
        return self.projects is not None


def viewer_of(*, key: ApiKey) -> Viewer:
    """Return whoever holds this key."""
    allowed = allowed_projects(key)
    return Viewer(workspace=key.workspace, projects=None if allowed is None else tuple(allowed))


class ProjectNotFound(EngramError):
    """A project that does not exist or that the viewer may not see; the message leaves open which of the two."""

    status = HTTPStatus.NOT_FOUND
    field = "project"


def find_project(*, viewer: Viewer, slug: str | None) -> Project | None:
    """Return the project of this name, None for no name; raise ProjectNotFound for one the viewer may not see.

    Plain SQL, because many recalls begin with it.
    """
    if not slug:
        return None
    allowed = None if viewer.projects is None else list(viewer.projects)
    asked = {"workspace": viewer.workspace.pk, "slug": slug, "allowed": allowed}
    row = run_prepared(statement=_FIND_PROJECT, parameters=asked, keeps_plan=True).fetchone()
    if row is None:
        raise ProjectNotFound(f"There is no project {slug!r} that this key may see.")
    return Project.from_db(connection.alias, _PROJECT_COLUMNS, row)


_PROJECT_COLUMNS = [str(field.column) for field in Project._meta.concrete_fields]

_FIND_PROJECT = f"""
    SELECT {", ".join(_PROJECT_COLUMNS)} FROM memory_project
    WHERE workspace_id = %(workspace)s::bigint AND slug = %(slug)s::text
      AND (%(allowed)s::bigint[] IS NULL OR id = ANY(%(allowed)s::bigint[]))
"""  # noqa: S608  (names of the model's columns)


def visible_episodes(*, viewer: Viewer) -> EpisodeQuerySet:
    """Return the episodes a viewer may see, none that was forgotten; one limited to projects sees none without one."""
    return existing_episodes(viewer=viewer).exclude(status=EpisodeStatus.FORGOTTEN)


def visible_beliefs(*, viewer: Viewer) -> BeliefQuerySet:
    """Return the beliefs a viewer may see, none that was forgotten."""
    return existing_beliefs(viewer=viewer).exclude(status=BeliefStatus.FORGOTTEN)


def changeable_beliefs(*, viewer: Viewer, ids: Collection[str]) -> dict[str, Belief]:
    """Return by id the named beliefs that a viewer sees, to be changed; raise OutsideProjects for a global one."""
    rows = visible_beliefs(viewer=viewer).filter(pk__in=ids).select_related("workspace", "project").defer("search")
    beliefs: dict[str, Belief] = {belief.pk: belief for belief in rows}
    for belief in beliefs.values():
        check_may_change(project_id=belief.project_id, viewer=viewer)
    return beliefs


def check_may_change(*, project_id: int | None, viewer: Viewer) -> None:
    """Raise OutsideProjects for a global belief (of this project, or of none) and a viewer limited to projects."""
    if viewer.is_limited and project_id is None:
        raise OutsideProjects(_OUTSIDE_PROJECTS)


def existing_episodes(*, viewer: Viewer) -> EpisodeQuerySet:
    """Return the rows of a viewer's episodes, to be counted: what was forgotten is among them."""
    episodes = Episode.objects.for_workspace(viewer.workspace)
    return episodes if viewer.projects is None else episodes.filter(project__in=viewer.projects)


def visible_conversations(*, viewer: Viewer) -> ConversationQuerySet:
    """Return the conversations of a viewer's projects."""
    conversations = Conversation.objects.for_workspace(viewer.workspace)
    return conversations if viewer.projects is None else conversations.filter(project__in=viewer.projects)


def visible_turns(*, viewer: Viewer) -> TurnQuerySet:
    """Return the turns of these conversations, none of which anything was forgotten."""
    return Turn.objects.tellable().filter(conversation__in=visible_conversations(viewer=viewer))


def existing_beliefs(*, viewer: Viewer) -> BeliefQuerySet:
    """Return the rows of a viewer's beliefs, to be counted.

    A viewer limited to projects has a global belief only if all of its evidence is of those projects.
    """
    beliefs = Belief.objects.for_workspace(viewer.workspace)
    if viewer.projects is None:
        return beliefs
    evidence = Evidence.objects.filter(belief=OuterRef("pk"))
    seen = Q(episode__project__in=viewer.projects)
    return beliefs.filter(
        Q(project__in=viewer.projects) | Q(Exists(evidence), ~Exists(evidence.exclude(seen)), project=None)
    )


_KEY_PREFIX = "engram_"
_LAST_USED_GRAIN = timedelta(minutes=1)

# Owner includes all, curate includes read and write, write does not include read.
_INCLUDED_PERMISSIONS = {
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
    text = _KEY_PREFIX + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        workspace=workspace,
        name=name,
        prefix=text[: len(_KEY_PREFIX) + 4],
        hash=hash_key(text),
        permissions=list(permissions),
        is_limited=bool(projects),
        created_at=now,
    )
    key.projects.set(projects)
    return key, text


def find_key(*, text: str) -> ApiKey | None:
    """Find the living key of this text. The lookup compares digests only, so its timing tells nothing of a key."""
    row = run_prepared(statement=_find_key_statement(), parameters={"hash": hash_key(text)}, keeps_plan=True).fetchone()
    if row is None:
        return None
    key_names, workspace_names = _column_names(ApiKey), _column_names(Workspace)
    key = ApiKey.from_db(connection.alias, key_names, row[: len(key_names)])
    key.workspace = Workspace.from_db(connection.alias, workspace_names, row[len(key_names) :])
    return key


@cache
def _find_key_statement() -> str:
    """Write the statement once: every call begins with it, and a query set takes longer to write than to run."""
    keys = ApiKey.objects.select_related("workspace").order_by().filter(hash="", revoked_at=None)
    return keys.query.sql_with_params()[0] % "%(hash)s"


@cache
def _column_names(model: type[Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


def note_key_use(*, key: ApiKey, now: datetime) -> None:
    """Remember roughly when a key was last used, without a write on every call."""
    if key.last_used_at is None or now - key.last_used_at > _LAST_USED_GRAIN:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def actor_of_key(*, key: ApiKey) -> Actor:
    """Name a key's holder as the history does: by the beginning of the key, which is shown with it."""
    return Actor(kind=ActorKind.KEY, name=key.prefix)


def revoke_keys(*, keys: QuerySet[ApiKey], now: datetime) -> int:
    """Revoke the keys that still live, and return how many those were."""
    return keys.filter(revoked_at=None).update(revoked_at=now)


def grants(*, key: ApiKey, permission: Permission) -> bool:
    """Tell whether a key allows what `permission` names."""
    return any(permission in _INCLUDED_PERMISSIONS[Permission(held)] for held in key.permissions)


def allowed_projects(key: ApiKey) -> list[int] | None:
    """List the ids of the projects that a key is limited to, or None for no limit."""
    return list(key.projects.values_list("pk", flat=True)) if key.is_limited else None


_MOST_MATCHES = 6
Memory = TypeVar("Memory", Episode, Belief)


class AmbiguousId(EngramError, LookupError):
    """More than one id begins so; `ids` are a few of them, which the message does not tell: not every key may read."""

    exit_status = 2

    def __init__(self, *, beginning: str, ids: list[str]) -> None:
        super().__init__(f"More than one id begins with {beginning}: give more of it.")
        self.ids = ids


class WholeIdRequired(EngramError, PermissionError):
    """Who may not read gave but the beginning of an id: by trying, it would find and forget what it never saw."""

    status = HTTPStatus.FORBIDDEN

    def __init__(self) -> None:
        super().__init__("A key that may not read names a memory by its whole id.")


def find_by_prefix(*, among: QuerySet[Memory], beginning: str) -> Memory | None:
    """Find the one memory whose id begins so, None if there is none; raise AmbiguousId if there are more."""
    if is_whole(beginning):
        return among.filter(pk=beginning).first()
    found = list(among.filter(pk__startswith=beginning).order_by("pk")[:_MOST_MATCHES])
    if len(found) > 1:
        raise AmbiguousId(beginning=beginning, ids=[one.pk for one in found])
    return found[0] if found else None


def resolve_id(*, name: str, key: ApiKey) -> str:
    """Return the id that begins so among what a key may see, the beginning itself where there is none.

    A turn, which soon has another id, is named by its whole one. Raises AmbiguousId, and WholeIdRequired for a key
    that may not read.
    """
    if is_whole(name) or is_turn_id(name):
        return name
    if not grants(key=key, permission=Permission.READ):
        raise WholeIdRequired
    viewer = viewer_of(key=key)
    found: Episode | Belief | None
    if is_episode_id(name):
        found = find_by_prefix(among=visible_episodes(viewer=viewer).only("pk"), beginning=name)
    else:
        found = find_by_prefix(among=visible_beliefs(viewer=viewer).only("pk"), beginning=name)
    return found.pk if found else name


_SECONDS_A_MINUTE = 60.0
_TIMEOUT_SECONDS = 0.2
_REST_SECONDS = 5.0  # without counting, after the broker did not answer

# The generic cell rate algorithm (ATM Forum, 1996): the key holds when the bucket will be full again, by the broker's
# clock. Returns the seconds to wait, '0' where the call may go on.
_TAKE_CALL = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local full_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0')) + tonumber(ARGV[1])
local wait = full_at - now - tonumber(ARGV[2])
if wait > 0 then return string.format('%.3f', math.max(wait, 0.001)) end
redis.call('SET', KEYS[1], string.format('%.6f', full_at), 'PX', math.ceil((full_at - now) * 1000))
return '0'
"""


class CallKind(StrEnum):
    """What a call is for; each kind has a rate of its own."""

    RECALL = "recall"
    READ = "read"
    WRITE = "write"
    CURATE = "curate"
    OWNER = "owner"


class RateLimited(EngramError):
    """A key calls more often than it may; `wait` says for how many seconds it should not."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, *, usage: CallKind, wait: float) -> None:
        super().__init__(f"This key's rate of {usage} calls is used up; come back in {wait:.1f} s.")
        self.wait = wait


class _RateCounter:
    """The broker's count, left alone for a while where it does not answer: then calls pass uncounted."""

    def __init__(self, url: str) -> None:
        timeouts = {"socket_timeout": _TIMEOUT_SECONDS, "socket_connect_timeout": _TIMEOUT_SECONDS}
        self._client: redis.Redis = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **timeouts)
        self._take = self._client.register_script(_TAKE_CALL)
        self._rests_until = 0.0

    def take(self, *, name: str, per_minute: float) -> float:
        """Take one call out of a bucket; return the seconds to wait if it is empty."""
        if time.monotonic() < self._rests_until:
            return 0.0
        try:
            return float(
                self._take(keys=[f"engram:rate:{name}"], args=[_SECONDS_A_MINUTE / per_minute, _SECONDS_A_MINUTE])
            )
        except redis.RedisError as error:
            self._rests_until = time.monotonic() + _REST_SECONDS
            log.warning("throttle.broker_away", error=str(error))
            return 0.0


@cache
def _rate_counter(url: str) -> _RateCounter:
    return _RateCounter(url)


def check_rate(*, key: ApiKey, usage: CallKind) -> None:
    """Count a call of a key; raise RateLimited where it has had its share of this minute."""
    per_minute: float = getattr(settings.POLICY.throttle, f"{usage}_per_minute")
    if not per_minute:
        return
    url = settings.BROKER_URL.replace("redis+socket://", "unix://", 1)
    wait = _rate_counter(url).take(name=f"{key.hash[:16]}:{usage}", per_minute=per_minute)
    if wait:
        raise RateLimited(usage=usage, wait=wait)


def call_kind_of(*, permission: Permission) -> CallKind:
    """Return what a call that needs a permission is for; a recall is told apart by whoever serves it."""
    return CallKind(permission.value)


class UnknownWorkspace(EngramError, LookupError):
    """There is no workspace of this name."""

    status = HTTPStatus.NOT_FOUND
    exit_status = 2


def create_workspace(*, name: str, now: datetime) -> Workspace:
    """Create a workspace; raise ValidationError for a name that is empty, too long or taken."""
    workspace = Workspace(name=name, created_at=now)
    workspace.full_clean()
    workspace.save()
    return workspace


def find_workspace(*, name: str) -> Workspace:
    """Find the workspace of this name, or raise UnknownWorkspace."""
    workspace = Workspace.objects.filter(name=name).first()
    if workspace is None:
        raise UnknownWorkspace(f"There is no workspace {name!r}; make one with create_workspace.")
    return workspace


def create_project(*, workspace: Workspace, slug: str, now: datetime, path: str = "") -> Project:
    """Create a project; raise ValidationError for a slug or path that cannot be one, or that is taken."""
    check_slug(slug)
    project = Project(workspace=workspace, slug=slug, path=path, created_at=now)
    project.full_clean()
    project.save()
    return project


def check_slug(slug: str) -> None:
    """Raise ValidationError for a slug that looks like a key or a token (L2)."""
    if has_known_secret(slug):
        raise ValidationError({"slug": "This looks like a key or a token, which must not name a project."})


def find_projects(*, workspace: Workspace, slugs: Collection[str]) -> dict[str, int]:
    """Return the ids of those of the named projects that exist."""
    if not slugs:
        return {}
    return dict(Project.objects.for_workspace(workspace).filter(slug__in=slugs).values_list("slug", "pk"))


def ensure_projects(*, workspace: Workspace, slugs: Collection[str], now: datetime) -> dict[str, int]:
    """Return the ids of the named projects; create those that are unknown."""
    known = find_projects(workspace=workspace, slugs=slugs)
    # Sorted, so that two writers of the same new names wait for each other in one order.
    new = [Project(workspace=workspace, slug=slug, created_at=now) for slug in sorted(set(slugs) - set(known))]
    if not new:
        return known
    Project.objects.bulk_create(new, ignore_conflicts=True)
    return find_projects(workspace=workspace, slugs=slugs)


def is_last_owner(*, membership: Membership) -> bool:
    """Tell whether the workspace would have no owner without this member."""
    owners = Membership.objects.for_workspace(membership.workspace_id).filter(role=Role.OWNER)
    return list(owners.values_list("pk", flat=True)[:2]) == [membership.pk]


def lock_members(*, workspace_id: int) -> None:
    """Hold the workspace's row to the end of the transaction, so that two owners cannot leave at once."""
    Workspace.objects.select_for_update().get(pk=workspace_id)
