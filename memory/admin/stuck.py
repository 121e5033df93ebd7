"""What was given up and waits for a person, by workspace, and where it is listed."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from memory.admin.roles import rows_of_member
from memory.models import Episode, Remembrance, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """So many rows of one kind."""

    what: str
    count: int
    link: str


def stuck_of(request: HttpRequest) -> dict[int, list[Stuck]]:
    """Count what waits for somebody in each of a person's workspaces, by the keys of these."""
    found: dict[int, list[Stuck]] = defaultdict(list)
    for what, rows, page, chosen in _kinds():
        for workspace_id, count in _counted(rows_of_member(rows, request=request)).items():
            asked = urlencode({"workspace__id__exact": str(workspace_id), **chosen})
            link = f"{reverse(f'admin:memory_{page}_changelist')}?{asked}"
            found[workspace_id].append(Stuck(what=what, count=count, link=link))
    return found


def _kinds() -> list[tuple[str, models.QuerySet[Any], str, dict[str, str]]]:
    """List what can be stuck: its name, the rows, and where in the admin they are shown."""
    return [
        ("episodes", Episode.objects.dead(), "episode", {"dead_at__isempty": "0"}),
        ("turns", Turn.objects.dead(), "conversation", {"given_up": "yes"}),
        ("texts", Remembrance.objects.failed(), "remembrance", {"state__exact": "failed"}),
    ]


def _counted(rows: Any) -> dict[int, int]:
    return dict(rows.order_by().values_list("workspace").annotate(Count("pk")))
