"""Projects: named bodies of work inside a workspace."""

from collections.abc import Collection
from datetime import datetime

from django.core.exceptions import ValidationError

from memory.models import Project, Workspace
from memory.redaction.redact import has_known_secret


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
