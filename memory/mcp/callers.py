"""Who calls a tool: the holder of a key, with what it may see and do."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from memory.access import (
    LIMITED_KEY,
    UNKNOWN_KEY,
    CallKind,
    Viewer,
    actor_of_key,
    changeable_beliefs,
    check_rate,
    describe_unknown_project,
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
from memory.domain.actor import Actor
from memory.domain.ids import is_episode_id
from memory.models import ApiKey, Belief, Episode, Permission, Project, Turn, Workspace
from memory.recall.turn_cards import find_turn

Row = TypeVar("Row", Belief, Episode, Turn)


class NotAllowed(Exception):
    """The key is unknown, or may not do this; the message says what it would take."""


class NothingThere(Exception):
    """Something that is named is not there, or not for this key to see."""


class Refused(Exception):
    """What was sent cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The holder of a key at a moment."""

    key: ApiKey
    viewer: Viewer
    now: datetime

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
        """Return the project of this name, None for no name; raise NothingThere for one outside the key's reach."""
        if not slug:
            return None
        project = find_project(viewer=self.viewer, slug=slug)
        if project is None:
            raise NothingThere(describe_unknown_project(slug))
        return project

    def belief(self, belief_id: str) -> Belief:
        """Return a belief that the key may see."""
        beliefs = visible_beliefs(viewer=self.viewer).select_related("workspace", "project").defer("search")
        belief: Belief | None = beliefs.filter(pk=belief_id).first()
        return _found(belief, belief_id)

    def belief_to_change(self, belief_id: str) -> Belief:
        """Return a belief that the key may see and change."""
        return _found(changeable_beliefs(viewer=self.viewer, ids=[belief_id]).get(belief_id), belief_id)

    def whole_id(self, name: str) -> str:
        """Return the id of a memory that the key may see, named by it or by a beginning that no other has."""
        return resolve_id(name=name, key=self.key)

    def episode(self, episode_id: str) -> Episode:
        """Return an episode that the key may see."""
        episodes = visible_episodes(viewer=self.viewer).select_related("workspace", "project").defer("search")
        episode: Episode | None = episodes.filter(pk=episode_id).first()
        return _found(episode, episode_id)

    def turn(self, turn_id: str) -> Turn:
        """Return a turn that the key may see."""
        return _found(find_turn(memory_id=turn_id, viewer=self.viewer), turn_id)

    def memory(self, memory_id: str) -> Episode | Belief:
        """Return an episode or a belief that the key may see."""
        return self.episode(memory_id) if is_episode_id(memory_id) else self.belief(memory_id)


def _found(row: Row | None, named: str) -> Row:
    if row is None:
        raise NothingThere(
            f"There is no {named} here. Ids come from memory_recall: ep_… for episodes, bl_… for beliefs."
        )
    return row


def admit(
    *, key_text: str, permission: Permission, usage: CallKind, is_for_whole_workspace: bool = False, now: datetime
) -> Caller:
    """Let a key's holder in for one call; raise NotAllowed, or TooOften where its share is used up."""
    key = find_key(text=key_text) if key_text else None
    if key is None:
        raise NotAllowed(UNKNOWN_KEY)
    note_key_use(key=key, now=now)
    if key.is_limited and is_for_whole_workspace:
        raise NotAllowed(LIMITED_KEY)
    if not grants(key=key, permission=permission):
        raise NotAllowed(missing_permission(permission))
    check_rate(key=key, usage=usage)
    return Caller(key=key, viewer=viewer_of(key=key), now=now)
