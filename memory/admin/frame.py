"""The frame around every page: navigation, the label of offline models, and the first page's overview."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse

from memory.admin.presentation import beliefs_notice, offline_notice
from memory.admin.roles import roles_of, rows_of_member
from memory.admin.stuck import Stuck, stuck_of
from memory.models import Belief, Cycle, Episode, Role, Workspace

admin.site.index_template = "engram/index.html"
admin.site.index_title = "Your workspaces"

_SECTIONS = (
    (
        "Memory",
        (
            ("Beliefs", "belief", "neurology"),
            ("Episodes", "episode", "history"),
            ("Conversations", "conversation", "forum"),
            ("Texts told at once", "remembrance", "bolt"),
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
            ("Contradictions?", "rival", "compare_arrows"),
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
            ("API keys", "apikey", "key"),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One workspace at a glance."""

    workspace: Workspace
    role: Role
    beliefs: int
    pending: int
    stuck: Sequence[Stuck]
    last_cycle: Cycle | None


def sections(request: HttpRequest) -> list[dict[str, Any]]:
    """List the navigation's groups, each with what this person may open."""
    groups = [{"title": title, "separator": True, "items": _items(request, rows)} for title, rows in _SECTIONS]
    if request.user.is_active and request.user.is_superuser:
        accounts = {"title": "Accounts", "icon": "person", "link": reverse("admin:auth_user_changelist")}
        groups.append({"title": "Site", "separator": True, "items": [accounts]})
    return [group for group in groups if group["items"]]


def _items(request: HttpRequest, rows: Any) -> list[dict[str, str]]:
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
    beliefs = _counted(rows_of_member(Belief.objects.active(), request=request))
    pending = _counted(rows_of_member(Episode.objects.pending(), request=request))
    cycles = rows_of_member(Cycle.objects.all(), request=request)
    stuck = stuck_of(request)
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
        for workspace in rows_of_member(Workspace.objects.order_by("name"), request=request)
    ]


def _counted(rows: Any) -> dict[int, int]:
    return dict(rows.order_by().values_list("workspace").annotate(Count("pk")))
