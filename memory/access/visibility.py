"""What a caller may see: the one place where rows are filtered by workspace and projects (B21)."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from memory.access.keys import allowed_projects
from memory.domain.lifecycle import BeliefStatus, EpisodeStatus
from memory.models import ApiKey, Belief, Conversation, Episode, Evidence, Project, Turn, Workspace
from memory.models.beliefs import BeliefQuerySet
from memory.models.conversations import ConversationQuerySet, TurnQuerySet
from memory.models.episodes import EpisodeQuerySet
from memory.models.numbered import run_numbered

LIMITED_KEY = "This key is limited to projects: that takes a key without such a limit."
_BEYOND = "This key is limited to projects, and the belief belongs to none: that takes a key without such a limit."


class BeyondProjects(PermissionError):
    """What belongs to no project is for all to see: who is limited to some does not change it (B21)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Someone who looks into one workspace; `projects` are those they are limited to, None for no limit."""

    workspace: Workspace
    projects: tuple[int, ...] | None = None

    @property
    def is_limited(self) -> bool:
        """Tell whether only some projects are open to this viewer."""
        return self.projects is not None


def no_such_project(slug: str) -> str:
    """Say of a project that it is not there, or not for the caller to see: which of the two stays unsaid."""
    return f"There is no project {slug!r} that this key may see."


def viewer_of(*, key: ApiKey) -> Viewer:
    """Return whoever holds this key."""
    allowed = allowed_projects(key)
    return Viewer(workspace=key.workspace, projects=None if allowed is None else tuple(allowed))


def find_project(*, viewer: Viewer, slug: str) -> Project | None:
    """Find the project of this name, if the viewer may see it; plain SQL, for many recalls begin with it."""
    allowed = None if viewer.projects is None else list(viewer.projects)
    asked = {"workspace": viewer.workspace.pk, "slug": slug, "allowed": allowed}
    row = run_numbered(statement=_PROJECT, parameters=asked, keeps_plan=True).fetchone()
    return None if row is None else Project.from_db(connection.alias, _PROJECT_COLUMNS, row)


_PROJECT_COLUMNS = [str(field.column) for field in Project._meta.concrete_fields]
_PROJECT = f"""
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
    """Return by id the named beliefs that a viewer sees, to be changed; raise BeyondProjects for a global one."""
    rows = visible_beliefs(viewer=viewer).filter(pk__in=ids).select_related("workspace", "project").defer("search")
    beliefs: dict[str, Belief] = {belief.pk: belief for belief in rows}
    for belief in beliefs.values():
        check_reach(project_id=belief.project_id, viewer=viewer)
    return beliefs


def check_reach(*, project_id: int | None, viewer: Viewer) -> None:
    """Raise BeyondProjects where a belief of this project, or of none, is global and the viewer limited to projects."""
    if viewer.is_limited and project_id is None:
        raise BeyondProjects(_BEYOND)


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
    """Return the rows of a viewer's beliefs, to be counted; one limited to projects has a global one with its evidence.

    All of that must be of its projects.
    """
    beliefs = Belief.objects.for_workspace(viewer.workspace)
    if viewer.projects is None:
        return beliefs
    evidence = Evidence.objects.filter(belief=OuterRef("pk"))
    seen = Q(episode__project__in=viewer.projects)
    return beliefs.filter(
        Q(project__in=viewer.projects) | Q(Exists(evidence), ~Exists(evidence.exclude(seen)), project=None)
    )
