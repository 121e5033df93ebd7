"""MEMORY.md files: what stands in each, what came into it and left it, and the end of publishing into it (P2, P4, P11).

Which paths are written is the operator's to say, with `manage.py write_memory_md`: nobody adds or changes one here.
"""

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db import models, transaction
from django.db.models import Count, F, Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from memory.admin.actions import CONFIRMED, act_on_each, confirmation_context
from memory.admin.columns import NOTHING, badge, column, link_to
from memory.admin.membership import MembersAdmin, OwnWorkspaces, ReadOnlyInline, member_rows, visible_rows
from memory.models import Belief, Cycle, MemoryFile, PublicationStep, PublishedBelief, Role
from memory.publishing.memory_files import disable_file
from memory.publishing.writing import SectionStays

_NEWEST_STEPS = 25
_TIME = "{:%Y-%m-%d %H:%M} UTC".format


class StandingInline(ReadOnlyInline[PublishedBelief, MemoryFile]):
    """The trusted ones first, then the former ones."""

    model = PublishedBelief
    verbose_name_plural = "beliefs that stand in it"
    fields = ("belief_statement", "published", "since", "former_since")
    ordering = (F("demoted_at").desc(nulls_first=True), "-confidence", "id")
    related = ("belief",)
    published = column("confidence", "{:.2f}".format, title="published confidence")
    since = column("promoted_at", _TIME, title="trusted since")
    former_since = column("demoted_at", _TIME, title="former since")


@admin.register(MemoryFile)
class MemoryFileAdmin(MembersAdmin[MemoryFile]):
    """To look at; an owner may end it."""

    actions = ("disable",)
    paginator = Paginator
    list_display = ("path", "project", "whose", "trusted", "former", "published_at", "problem")
    list_filter = (("project", OwnWorkspaces), ("problem", admin.EmptyFieldListFilter))
    search_fields = ("path", "user")
    ordering = ("path",)
    related = ("project",)
    inlines = (StandingInline,)
    fields = (
        "path", ("workspace", "project", "whose"), ("trusted", "former"), ("published_at", "created_at"), "problem",
        "newest_steps",
    )  # fmt: skip
    whose = column("user", title="user", ordering="user", empty="of no user alone")
    trusted = column("trusted_count", ordering="trusted_count", title="trusted beliefs")
    former = column("former_count", ordering="former_count", title="former beliefs")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[MemoryFile]:
        rows: models.QuerySet[MemoryFile] = super().get_queryset(request)
        return rows.annotate(
            trusted_count=Count("beliefs", filter=Q(beliefs__demoted_at__isnull=True)),
            former_count=Count("beliefs", filter=Q(beliefs__demoted_at__isnull=False)),
        )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> MemoryFile | None:
        file = super().get_object(request, object_id, from_field)
        if file is not None:  # read here, once: templates ask a field several times
            steps = PublicationStep.objects.for_workspace(file.workspace_id).filter(path=file.path)
            newest = visible_rows(steps, request=request).select_related("belief").defer("belief__search")
            file.steps = list(newest.order_by("-pk")[:_NEWEST_STEPS])  # type: ignore[attr-defined]
        return file

    @admin.display(description="newest steps")
    def newest_steps(self, file: MemoryFile) -> SafeString | str:
        """List what came into the file, became former or left it, with its confidence then."""
        lines = (
            (
                _TIME(step.at),
                badge(step.step),
                f"{step.confidence:.2f}",
                link_to(Belief, step.belief_id, text=step.belief.statement[: self.text_length]),
                link_to(Cycle, step.cycle_id) if step.cycle_id else "between cycles",
            )
            for step in file.steps  # type: ignore[attr-defined]
        )
        return format_html_join("", '<div class="mb-1">{} {} {} {} ({})</div>', lines) or NOTHING

    @admin.action(description="Take our section out, and write no more", permissions=["own"])
    def disable(self, request: HttpRequest, chosen: models.QuerySet[MemoryFile]) -> HttpResponse | None:
        """End publishing into the chosen files that are the person's to end, after asking."""
        rows = MemoryFile.objects.filter(pk__in=chosen.values("pk"))
        mine = member_rows(rows, request=request, at_least=Role.OWNER).select_related("workspace").order_by("path")
        foreign = rows.count() - mine.count()
        if mine and CONFIRMED not in request.POST:
            context = confirmation_context(self, request, mine, title="Take our sections out?")
            return TemplateResponse(request, "engram/disable_files.html", context)
        files = {str(file.pk): file for file in mine}
        done, refused = act_on_each(files, lambda key: self._end(request, files[key]), refusals=SectionStays)
        self.message_user(request, f"{done} ended.", messages.SUCCESS)
        if foreign:
            self.message_user(request, f"{foreign} left alone: only an owner may do this.", messages.WARNING)
        for error in refused.values():
            self.message_user(request, str(error), messages.WARNING)
        return None

    @transaction.atomic
    def _end(self, request: HttpRequest, file: MemoryFile) -> None:
        self.log_deletions(request, MemoryFile.objects.filter(pk=file.pk))
        disable_file(file=file)
