"""Rows for tests, with everything that a test does not care about filled in."""

import hashlib
from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.db.models import F

from memory.access import create_key
from memory.models import (
    ApiKey,
    Belief,
    Conversation,
    Episode,
    Evidence,
    Permission,
    Project,
    Turn,
    Workspace,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

_numbers = count(1)


def workspace(**given: Any) -> Workspace:
    """Store a workspace."""
    return Workspace.objects.create(**{"name": f"workspace {next(_numbers)}", "created_at": NOW} | given)


def project(*, workspace: Workspace, **given: Any) -> Project:
    """Store a project."""
    return Project.objects.create(
        workspace=workspace, **{"slug": f"project-{next(_numbers)}", "created_at": NOW} | given
    )


def key(*permissions: str, workspace: Workspace, projects: tuple[Project, ...] = ()) -> tuple[ApiKey, str]:
    """Store a key and return it with its text; without permissions it is an owner's."""
    held = [Permission(name) for name in permissions] or [Permission.OWNER]
    return create_key(workspace=workspace, permissions=held, projects=projects, now=NOW)


def episode(*, workspace: Workspace, **given: Any) -> Episode:
    """Store an episode of its own words, from an origin of its own."""
    number = next(_numbers)
    text = given.get("text", f"Episode number {number}.")
    fields = {
        "text": text,
        "origin": f"session:{number}",
        "content_hash": hashlib.sha256(text.encode()).hexdigest(),
        "created_at": NOW,
        "occurred_at": NOW,
    }
    return Episode.objects.create(workspace=workspace, **fields | given)


def turn(*, workspace: Workspace, session: str = "", **given: Any) -> Turn:
    """Store a turn of its own words, in a conversation of its own unless a session is named."""
    number = next(_numbers)
    state = given.get("state", "buffered")
    conversation, _ = Conversation.objects.get_or_create(
        workspace=workspace,
        session=session or f"session {number}",
        project=given.pop("project", None),
        user=given.pop("user", ""),
        defaults={"created_at": NOW, "last_turn_at": NOW},
    )
    fields = {
        "number": conversation.turn_count + 1,
        "role": "user",
        "content": f"Turn number {number}.",
        "line_hash": f"{number:064}",
        "created_at": NOW,
        "occurred_at": NOW,
        "settled_at": None if state in ("buffered", "leased") else NOW,
    }
    stored = Turn.objects.create(workspace=workspace, conversation=conversation, **fields | given)
    Conversation.objects.filter(pk=conversation.pk).update(
        turn_count=F("turn_count") + 1,
        buffered=F("buffered") + int(state == "buffered"),
        leased=F("leased") + int(state == "leased"),
    )
    stored.conversation.refresh_from_db()
    return stored


def belief(*, workspace: Workspace, **given: Any) -> Belief:
    """Store a belief of its own words."""
    statement = given.get("statement", f"Belief number {next(_numbers)} holds.")
    fields = {
        "statement": statement,
        "statement_hash": hashlib.sha256(statement.encode()).hexdigest(),
        "created_at": NOW,
        "updated_at": NOW,
        "statement_changed_at": NOW,
    }
    return Belief.objects.create(workspace=workspace, **fields | given)


def evidence(*, belief: Belief, episode: Episode, **given: Any) -> Evidence:
    """Store what an episode says about a belief: support, unless said otherwise."""
    fields = {"verdict": "SUPPORTS", "basis": "guard", "created_at": NOW}
    return Evidence.objects.create(workspace=belief.workspace, belief=belief, episode=episode, **fields | given)
