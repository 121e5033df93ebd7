"""What stands around the rows: the navigation, notices, and the first page's overview of each workspace."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db import models
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from memory.admin.membership import member_rows, roles_of
from memory.models import Belief, Cycle, Episode, RememberJob, Role, Turn, Workspace

OFFLINE_NOTICE = "Offline models: a small reader on this machine"
BELIEFS_NOTICE = "Beliefs off, in the whole installation (ENGRAM_BELIEFS): no cycle runs, recall has episodes alone"
OFFLINE_EMBEDDINGS_NOTICE = "Offline embeddings: a small model on this machine"


def beliefs_notice() -> str:
    """Say so where the installation keeps no beliefs (B22); else return nothing."""
    return "" if settings.ENGRAM_BELIEFS else BELIEFS_NOTICE


def offline_notice() -> str:
    """Say so where language or vectors are the work of a small model on this machine; else return nothing."""
    if settings.ENGRAM_LLM == "offline":
        return OFFLINE_NOTICE
    return OFFLINE_EMBEDDINGS_NOTICE if settings.ENGRAM_EMBEDDINGS in {"offline", "static"} else ""


admin.site.index_template = "engram/index.html"
admin.site.index_title = "Your workspaces"

_SECTIONS = (
    (
        "Memory",
        (
            ("Beliefs", "belief", "neurology"),
            ("Episodes", "episode", "history"),
            ("Conversations", "conversation", "forum"),
            ("Texts told at once", "rememberjob", "bolt"),
            ("Entities", "entity", "sell"),
            ("Links", "edge", "link"),
            ("Boxes", "box", "inventory_2"),
        ),
    ),
    (
        "Why",
        (
            ("Evidence", "evidence", "balance"),
            ("Lineage", "lineage", "account_tree"),
            ("Gate decisions", "gatedecision", "gavel"),
            ("Changes of status", "transition", "swap_horiz"),
            ("Claims", "claim", "format_quote"),
            ("Contradictions?", "contradictioncandidate", "compare_arrows"),
        ),
    ),
    (
        "Consolidation",
        (
            ("Cycles", "cycle", "autorenew"),
            ("Steps", "cyclestep", "steps"),
            ("Jobs", "clusterjob", "hub"),
            ("Verdicts", "jobverdict", "rule"),
            ("Structural jobs", "structuraljob", "call_split"),
            ("Proposed beliefs", "structuralchild", "tips_and_updates"),
            ("Verdicts on them", "childverdict", "fact_check"),
            ("Model calls", "modelcall", "receipt_long"),
        ),
    ),
    (
        "Workspace",
        (
            ("Workspaces", "workspace", "apartment"),
            ("Members", "membership", "group"),
            ("Projects", "project", "folder"),
            ("MEMORY.md files", "memoryfile", "description"),
            ("API keys", "apikey", "key"),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckRows:
    """So many rows of one kind."""

    what: str
    count: int
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One workspace at a glance."""

    workspace: Workspace
    role: Role
    beliefs: int
    pending: int
    stuck: Sequence[StuckRows]
    last_cycle: Cycle | None


def sections(request: HttpRequest) -> list[dict[str, Any]]:
    """List the navigation's groups, each with what this person may open."""
    groups = [{"title": title, "separator": True, "items": _section_items(request, rows)} for title, rows in _SECTIONS]
    if request.user.is_active and request.user.is_superuser:
        accounts = {"title": "Accounts", "icon": "person", "link": reverse("admin:auth_user_changelist")}
        groups.append({"title": "Site", "separator": True, "items": [accounts]})
    return [group for group in groups if group["items"]]


def _section_items(request: HttpRequest, rows: Any) -> list[dict[str, str]]:
    opened = {
        model._meta.model_name for model, page in admin.site._registry.items() if page.has_module_permission(request)
    }
    return [
        {"title": title, "icon": icon, "link": reverse(f"admin:memory_{model}_changelist")}
        for title, model, icon in rows
        if model in opened
    ]


def environment_label(request: HttpRequest) -> list[str] | None:
    """Name the offline models, and beliefs that are off, at the top of every page."""
    names = [re.split("[:,]", notice)[0] for notice in _notices()]
    return [", ".join(names), "warning"] if names else None


def shared_context(request: HttpRequest) -> dict[str, Any]:
    """Give every page what is to be said of the whole installation."""
    return {"notices": _notices()}


def _notices() -> list[str]:
    return [notice for notice in (beliefs_notice(), offline_notice()) if notice]


def with_overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Give the first page the person's workspaces at a glance."""
    return context | {"overview": overview_of(request)}


def overview_of(request: HttpRequest) -> list[Overview]:
    """Count what each of the person's workspaces holds."""
    beliefs = _count_by_workspace(member_rows(Belief.objects.active(), request=request))
    pending = _count_by_workspace(member_rows(Episode.objects.pending(), request=request))
    cycles = member_rows(Cycle.objects.all(), request=request)
    stuck = count_stuck(request)
    newest = {cycle.workspace_id: cycle for cycle in cycles.order_by("workspace", "-opened_at").distinct("workspace")}
    return [
        Overview(
            workspace=workspace,
            role=roles_of(request)[workspace.pk],
            beliefs=beliefs.get(workspace.pk, 0),
            pending=pending.get(workspace.pk, 0),
            stuck=stuck.get(workspace.pk, ()),
            last_cycle=newest.get(workspace.pk),
        )
        for workspace in member_rows(Workspace.objects.order_by("name"), request=request)
    ]


def _count_by_workspace(rows: Any) -> dict[int, int]:
    return dict(rows.order_by().values_list("workspace").annotate(Count("pk")))


def count_stuck(request: HttpRequest) -> dict[int, list[StuckRows]]:
    """Count what waits for somebody in each of a person's workspaces, by the keys of these."""
    found: dict[int, list[StuckRows]] = defaultdict(list)
    for what, rows, page, chosen in _stuck_kinds():
        for workspace_id, count in _count_by_workspace(member_rows(rows, request=request)).items():
            asked = urlencode({"workspace__id__exact": str(workspace_id), **chosen})
            link = f"{reverse(f'admin:memory_{page}_changelist')}?{asked}"
            found[workspace_id].append(StuckRows(what=what, count=count, link=link))
    return found


def _stuck_kinds() -> list[tuple[str, models.QuerySet[Any], str, dict[str, str]]]:
    """List what can be stuck: its name, the rows, and where in the admin they are shown."""
    return [
        ("episodes", Episode.objects.dead(), "episode", {"dead_at__isempty": "0"}),
        ("turns", Turn.objects.dead(), "conversation", {"given_up": "yes"}),
        ("texts", RememberJob.objects.failed(), "rememberjob", {"state__exact": "failed"}),
    ]
