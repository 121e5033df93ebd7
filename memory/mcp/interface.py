"""How a function becomes a tool for agents: `tool`, the caller, the errors, and the argument types that tools share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from django.utils import timezone
from pydantic import Field

from memory.access import (
    LIMITED_KEY,
    UNKNOWN_KEY,
    CallKind,
    Viewer,
    actor_of_key,
    changeable_beliefs,
    check_rate,
    find_key,
    find_project,
    grants,
    missing_permission,
    note_key_use,
    resolve_id,
    viewer_of,
    visible_beliefs,
    visible_episodes,
)
from memory.answers.base import Answer
from memory.domain.errors import EngramError
from memory.domain.identity import Actor, IdKind, beginning_pattern, id_pattern, is_episode_id
from memory.ingest.schemas import STORABLE
from memory.ledger.transactions import NotFound
from memory.models import ApiKey, Belief, Episode, Permission, Project, Turn, Workspace
from memory.recall.cards import find_turn
from memory.redaction.redact import redact
from memory.redaction.service import redact_values

Row = TypeVar("Row", Belief, Episode, Turn)


class Forbidden(EngramError):
    """The key is unknown or lacks a permission; the message names what the call requires."""

    status = HTTPStatus.FORBIDDEN


class InvalidRequest(EngramError):
    """An argument cannot be used; the message says why."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The holder of a key at a moment."""

    key: ApiKey
    viewer: Viewer
    now: datetime
    is_local: bool = False  # they started the server themselves, on this machine

    @property
    def workspace(self) -> Workspace:
        """Return the only workspace that this caller can see."""
        return self.key.workspace

    @property
    def actor(self) -> Actor:
        """Name the caller as the history does."""
        return actor_of_key(key=self.key)

    def may(self, permission: Permission) -> bool:
        """Tell whether the key holds a permission."""
        return grants(key=self.key, permission=permission)

    def project(self, slug: str | None) -> Project | None:
        """Return the project of this name, None for no name; raise ProjectNotFound for one outside the key's reach."""
        return find_project(viewer=self.viewer, slug=slug)

    def belief(self, belief_id: str) -> Belief:
        """Return a belief that the key may see."""
        beliefs = visible_beliefs(viewer=self.viewer).select_related("workspace", "project").defer("search")
        belief: Belief | None = beliefs.filter(pk=belief_id).first()
        return _require(belief, belief_id)

    def belief_to_change(self, belief_id: str) -> Belief:
        """Return a belief that the key may see and change."""
        return _require(changeable_beliefs(viewer=self.viewer, ids=[belief_id]).get(belief_id), belief_id)

    def whole_id(self, name: str) -> str:
        """Return the id of a memory that the key may see, named by it or by a beginning that no other has."""
        return resolve_id(name=name, key=self.key)

    def episode(self, episode_id: str) -> Episode:
        """Return an episode that the key may see."""
        episodes = visible_episodes(viewer=self.viewer).select_related("workspace", "project").defer("search")
        episode: Episode | None = episodes.filter(pk=episode_id).first()
        return _require(episode, episode_id)

    def turn(self, turn_id: str) -> Turn:
        """Return a turn that the key may see."""
        return _require(find_turn(memory_id=turn_id, viewer=self.viewer), turn_id)

    def memory(self, memory_id: str) -> Episode | Belief:
        """Return an episode or a belief that the key may see."""
        return self.episode(memory_id) if is_episode_id(memory_id) else self.belief(memory_id)


def _require(row: Row | None, named: str) -> Row:
    if row is None:
        raise NotFound(f"There is no {named} here. Ids come from memory_recall: ep_… for episodes, bl_… for beliefs.")
    return row


def admit(
    *,
    key_text: str,
    permission: Permission,
    usage: CallKind,
    is_for_whole_workspace: bool = False,
    is_local: bool = False,
    now: datetime,
) -> Caller:
    """Let a key's holder in for one call; raise Forbidden, or RateLimited where its share is used up."""
    key = find_key(text=key_text) if key_text else None
    if key is None:
        raise Forbidden(UNKNOWN_KEY)
    note_key_use(key=key, now=now)
    if key.is_limited and is_for_whole_workspace:
        raise Forbidden(LIMITED_KEY)
    if not grants(key=key, permission=permission):
        raise Forbidden(missing_permission(permission))
    check_rate(key=key, usage=usage)
    return Caller(key=key, viewer=viewer_of(key=key), now=now, is_local=is_local)


class ToolRefused(Exception):
    """Why a tool did not do what it was asked; the message is for the model."""


class Effect(StrEnum):
    """What a call does to memories."""

    READ = "read"
    CHANGE = "change"
    REPEATABLE = "repeatable"  # a change that the same call again adds nothing to
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: `run` takes the caller and the arguments of its signature."""

    name: str
    title: str
    description: str
    run: Callable[..., Answer]
    permission: Permission
    usage: CallKind
    effect: Effect
    is_for_whole_workspace: bool  # not for keys that are limited to projects

    def call(self, *, key_text: str, arguments: dict[str, Any], is_local: bool = False) -> Answer:
        """Run the tool for a key's holder on arguments without secrets; raise ToolRefused for a model to act on."""
        try:
            caller = admit(
                key_text=key_text,
                permission=self.permission,
                usage=self.usage,
                is_for_whole_workspace=self.is_for_whole_workspace,
                is_local=is_local,
                now=timezone.now(),
            )
            told = redact_values(workspace_id=caller.workspace.pk, values=arguments)
            return self.run(caller, **told)
        except EngramError as error:
            raise ToolRefused(redact(str(error)).text) from error


def tool(
    name: str,
    *,
    title: str,
    permission: Permission,
    effect: Effect,
    usage: CallKind | None = None,
    is_for_whole_workspace: bool = False,
) -> Callable[[Callable[..., Answer]], Tool]:
    """Make a tool of a function of the caller and typed arguments.

    The function's docstring is the description that models read, and its annotations are the tool's schema.
    Without a usage, a call counts as one of its permission's kind.
    """

    def made(run: Callable[..., Answer]) -> Tool:
        return Tool(
            name=name,
            title=title,
            description=" ".join((run.__doc__ or "").split()),
            run=run,
            permission=permission,
            usage=usage or CallKind(permission),
            effect=effect,
            is_for_whole_workspace=is_for_whole_workspace,
        )

    return made


MemoryId = Annotated[
    str, Field(pattern=f"^{id_pattern(IdKind.EPISODE, IdKind.BELIEF)}$", description="An id: ep_… or bl_….")
]

MemoryName = Annotated[
    str,
    Field(
        pattern=f"^{beginning_pattern(IdKind.EPISODE, IdKind.BELIEF, IdKind.TURN)}$",
        description="An id: ep_…, bl_… or tn_…; or the beginning of one of the first two, of four digits at least, "
        "that no other memory has.",
    ),
]
ProjectName = Annotated[str, Field(max_length=200, description="A project's short name (slug).")]
UserName = Annotated[str, Field(max_length=200, description="Whose memory it is, where several people share one.")]
BeliefId = Annotated[str, Field(pattern=f"^{id_pattern(IdKind.BELIEF)}$", description="A belief's id: bl_….")]
Reason = Annotated[str, Field(min_length=1, max_length=200, description="Why; kept in the history."), STORABLE]
