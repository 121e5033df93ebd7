"""Workspaces with their members, projects and keys, and the accounts of the people who sign in."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from memory.access import check_slug, create_key, is_last_owner, lock_members, revoke_keys
from memory.admin.actions import actor_of
from memory.admin.columns import badge, column, facts_of
from memory.admin.membership import MembersAdmin, ReadOnlyInline, member_rows
from memory.admin.theme import (
    AdminPasswordChangeForm,
    CheckboxSelectMultiple,
    ModelAdmin,
    TextInput,
    UserChangeForm,
    UserCreationForm,
)
from memory.consolidation.cycle import describe_pause, end_pause, find_pause, open_cycle
from memory.consolidation.schedule import describe_backlog, read_backlog
from memory.ledger.confidence import RECOMPUTE_FIELDS, recompute_workspace
from memory.models import ApiKey, Membership, MemoryFile, Permission, Project, Role, Trigger, Workspace
from memory.publishing.memory_files import disable_files
from memory.publishing.writing import SectionStays
from memory.status import read_graph, read_redactions


class MembersInline(ReadOnlyInline[Membership, Workspace]):
    model = Membership
    fields = ("user", "role")
    verbose_name_plural = "members (add and change them under Memberships)"
    ordering = ("user__username",)
    related = ("user",)


@admin.register(Workspace)
class WorkspaceAdmin(MembersAdmin[Workspace]):
    """A superuser may found one and becomes its owner; nobody deletes one here."""

    changes = Role.OWNER
    editable = (
        "name", "beliefs_enabled", "confidence_model", "discount_repeats", "daily_token_cap", "daily_cost_cap_usd",
        "daily_recall_token_cap",
    )  # fmt: skip
    actions = ("resume",)
    paginator = Paginator
    list_display = (
        "name", "beliefs_enabled", "confidence_model", "daily_token_cap", "daily_cost_cap_usd", "rests", "created_at",
    )  # fmt: skip
    search_fields = ("name",)
    ordering = ("name",)
    related = ("pause",)
    inlines = (MembersInline,)
    fieldsets = (
        (None, {"fields": ("name", "created_at")}),
        ("How it believes", {"fields": ("beliefs_enabled", "confidence_model", "discount_repeats")}),
        (
            "Caps per day (UTC)",
            {
                "fields": ("daily_token_cap", "daily_cost_cap_usd", "daily_recall_token_cap"),
                "description": "At a cap, consolidation makes no model call until the next day. Recall's embeddings "
                "are counted apart; beyond theirs, recall searches by words alone. Offline models use no tokens.",
            },
        ),
        ("When cycles start", {"fields": ("backlog", "rests", "next_cycle_held_until")}),
        ("What was counted", {"fields": ("links", "redacted")}),
    )

    @admin.display(description="rests")
    def rests(self, workspace: Workspace) -> str:
        """Say why no cycle starts by itself, if so."""
        pause = find_pause(workspace=workspace) if hasattr(workspace, "pause") else None
        return f"until {pause.until:%Y-%m-%d %H:%M} UTC: {describe_pause(pause)}" if pause else "no"

    @admin.display(description="episodes that wait for cycles")
    def backlog(self, workspace: Workspace) -> str:
        """Say how many wait, how fast they were taken up lately, and when that comes to an end."""
        return describe_backlog(read_backlog(workspace_id=workspace.pk, now=timezone.now()))

    @admin.display(description="links between memories")
    def links(self, workspace: Workspace) -> SafeString:
        return facts_of(asdict(read_graph(workspace=workspace)))

    @admin.display(description="secrets taken out")
    def redacted(self, workspace: Workspace) -> SafeString | str:
        return facts_of(read_redactions(workspace=workspace)) or "none"

    @admin.action(description="Resume consolidation: end the rest and start a cycle", permissions=["change"])
    def resume(self, request: HttpRequest, workspaces: models.QuerySet[Workspace]) -> None:
        """Start a cycle in each chosen workspace that the person owns, rested or not."""
        owned = member_rows(workspaces, request=request, at_least=Role.OWNER)
        owned = owned.filter(pk__in=Workspace.objects.believing())
        for workspace_id in owned.values_list("pk", flat=True):
            end_pause(workspace_id=workspace_id)
            open_cycle(workspace_id=workspace_id, now=timezone.now(), trigger=Trigger.PERSON)
        self.message_user(request, f"{owned.count()} resumed.", messages.SUCCESS)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) or self.has_add_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def get_fieldsets(self, request: HttpRequest, obj: Workspace | None = None) -> Any:
        return self.fieldsets if obj else self.fieldsets[:-1]

    def get_inlines(self, request: HttpRequest, obj: Workspace | None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        if not change:
            obj.created_at = timezone.now()
        super().save_model(request, obj, form, change)
        chosen = [name for name in RECOMPUTE_FIELDS if name in form.changed_data]
        if change and chosen:
            self._recount(request, obj, chosen)
        if not change:
            Membership.objects.create(workspace=obj, user=request.user, role=Role.OWNER)  # type: ignore[misc]

    def _recount(self, request: HttpRequest, workspace: Workspace, chosen: Sequence[str]) -> None:
        """B4, R10a: what the beliefs' numbers hang on has changed; the whole request is one transaction."""
        told = ", ".join(f"{name} is {getattr(workspace, name)}" for name in chosen)
        counted = recompute_workspace(
            workspace_id=workspace.pk, actor=actor_of(request), reason=f"counted anew: {told}", now=timezone.now()
        )
        self.message_user(request, f"{counted} beliefs counted anew.", messages.SUCCESS)


class MembershipForm(forms.ModelForm[Membership]):
    """Change a member's role; the last owner keeps theirs."""

    def clean_role(self) -> str:
        role: str = self.cleaned_data["role"]
        lock_members(workspace_id=self.instance.workspace_id)
        if role != Role.OWNER and is_last_owner(membership=self.instance):
            raise ValidationError("A workspace needs an owner: make somebody else one first.")
        return role


@admin.register(Membership)
class MembershipAdmin(MembersAdmin[Membership]):
    """Owners invite people by their user name: a list to choose from would show them everybody's."""

    adds = changes = deletes = Role.OWNER
    editable = ("role",)
    set_once = ("workspace", "username")
    paginator = Paginator
    list_display = ("user", "workspace", "role")
    list_filter = ("role",)
    related = ("user",)
    search_fields = ("user__username",)
    ordering = ("workspace", "user")
    form = MembershipForm

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change=change, **kwargs | ({} if obj else {"form": NewMembershipForm}))

    def get_fields(self, request: HttpRequest, obj: Membership | None = None) -> Any:
        return ("workspace", "user", "role") if obj else ("workspace", "username", "role")

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        if isinstance(obj, Membership) and is_last_owner(membership=obj):
            return False
        return super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        lock_members(workspace_id=obj.workspace_id)
        if is_last_owner(membership=obj):  # two owners may have left at the same moment
            raise PermissionDenied
        super().delete_model(request, obj)


class ProjectForm(forms.ModelForm[Project]):
    """A project's name is no key or token."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        check_slug(cleaned.get("slug", ""))
        return cleaned


@admin.register(Project)
class ProjectAdmin(MembersAdmin[Project]):
    """A project that has episodes or beliefs cannot be deleted; with one, our sections leave its MEMORY.md (P11)."""

    adds = changes = Role.CURATOR
    deletes = Role.OWNER
    editable = ("slug", "path")
    set_once = ("workspace",)
    form = ProjectForm
    paginator = Paginator
    list_display = ("slug", "workspace", "path", "created_at")
    search_fields = ("slug",)
    ordering = ("workspace", "slug")
    fields = ("workspace", "slug", "path", "created_at")

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        if not change:
            obj.created_at = timezone.now()
        super().save_model(request, obj, form, change)
        if change and "path" in form.changed_data:
            self._tell_of_files(request, obj)

    def _tell_of_files(self, request: HttpRequest, project: Project) -> None:
        """P11: which files are written is the operator's to say, whatever a curator calls the project's folder."""
        for file in project.memory_files.all():
            moves = f"`manage.py write_memory_md --enable --project {project.slug}` moves it"
            self.message_user(request, f"{file.path} is still written where it is: {moves}.", messages.WARNING)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Let the project's files go with it, which nobody may delete by themselves."""
        named, counts, lacking, protected = super().get_deleted_objects(objs, request)
        return named, counts, set(lacking) - {MemoryFile._meta.verbose_name}, protected

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Delete nothing while a file would keep what the project's beliefs say; tell which."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except SectionStays as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(reverse("admin:memory_project_change", args=[object_id]))

    def delete_model(self, request: HttpRequest, obj: Project) -> None:
        disable_files(files=obj.memory_files.all())
        super().delete_model(request, obj)


class ApiKeyForm(forms.ModelForm[ApiKey]):
    """Say what a new key may do and where."""

    permissions = forms.MultipleChoiceField(
        choices=Permission.choices,
        widget=CheckboxSelectMultiple(),
        help_text="Curate includes read and write, owner includes all; write alone does not include read.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        workspace = cleaned.get("workspace")
        if any(project.workspace_id != getattr(workspace, "pk", None) for project in cleaned.get("projects") or ()):
            self.add_error("projects", "Choose projects of the key's own workspace.")
        return cleaned


@admin.register(ApiKey)
class ApiKeyAdmin(MembersAdmin[ApiKey]):
    """A key's text is in the answer to its creation and nowhere else: no message, no session, no row keeps it."""

    adds = changes = Role.OWNER
    editable = ("name",)
    set_once = ("workspace", "permissions", "projects")
    actions = ("revoke",)
    paginator = Paginator
    list_display = ("prefix", "name", "workspace", "granted", "is_limited", "state", "last_used_at", "created_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "prefix")
    ordering = ("-created_at", "-id")
    form = ApiKeyForm
    granted = column("permissions", ", ".join)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        new = ("workspace", "name", "permissions", "projects")
        return (*new, "prefix", "state", "is_limited", "created_at", "last_used_at", "revoked_at") if obj else new

    def formfield_for_manytomany(
        self, db_field: models.ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelMultipleChoiceField[Any] | None:
        return super().formfield_for_manytomany(db_field, request, form_class=ProjectChoices, **kwargs)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        """Offer one way to save: the answer is the key, whatever would come next."""
        one_way = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, (extra_context or {}) | one_way)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        chosen = form.cleaned_data
        key, text = create_key(
            workspace=obj.workspace,
            permissions=chosen["permissions"],
            projects=chosen["projects"],
            name=obj.name,
            now=timezone.now(),
        )
        obj.pk, obj.prefix, obj.created_at, obj._state.adding = key.pk, key.prefix, key.created_at, False
        request.new_key_text = text  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: Any = None) -> HttpResponse:
        """Answer with the key itself, once; nothing on the way may keep a copy."""
        context = {
            **self.admin_site.each_context(request),
            "title": "The new key",
            "opts": self.opts,
            "original": obj,
            "key_text": request.new_key_text,  # type: ignore[attr-defined]
        }
        response = TemplateResponse(request, "engram/key_created.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @admin.display(description="state")
    def state(self, key: ApiKey) -> str:
        return badge("revoked" if key.revoked_at else "active")

    @admin.action(description="Revoke the chosen keys, at once and for good", permissions=["change"])
    def revoke(self, request: HttpRequest, keys: models.QuerySet[ApiKey]) -> None:
        """Revoke the keys of workspaces the person owns, and say how many were not theirs to revoke."""
        owned = member_rows(keys, request=request, at_least=Role.OWNER)
        refused = keys.count() - owned.count()
        revoked = revoke_keys(keys=owned, now=timezone.now())
        self.message_user(request, f"{revoked} revoked.", messages.SUCCESS)
        if refused:
            self.message_user(request, f"{refused} left alone: only an owner revokes a key.", messages.WARNING)


class NewMembershipForm(forms.ModelForm[Membership]):
    """Invite a person by user name."""

    username = forms.CharField(label="User name", widget=TextInput(), help_text="Of somebody who can sign in here.")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        user = (
            get_user_model().objects.filter(username=cleaned.get("username", ""), is_active=True, is_staff=True).first()
        )
        if user is None:
            self.add_error("username", "Nobody of this name can sign in here.")
        elif Membership.objects.filter(workspace=cleaned.get("workspace"), user=user).exists():
            self.add_error("username", "This person is a member already.")
        else:
            self.instance.user = user
        return cleaned


class ProjectChoices(forms.ModelMultipleChoiceField[Project]):
    """Projects by name and workspace: two workspaces may each have one of the same name."""

    def label_from_instance(self, obj: Project) -> str:
        """Say whose project it is."""
        return f"{obj.slug} ({obj.workspace})"


admin.site.unregister(User)
admin.site.unregister(Group)  # a group would promise rights that only memberships give


@admin.register(User)
class PersonAdmin(UserAdmin[User], ModelAdmin[User]):
    """A person's account, without the groups and permissions that the admin does not ask.

    Accounts are switched off and not deleted: the page that asks whether to go on would name every workspace they are
    in, and whoever did something should stay named in the logs.
    """

    form = UserChangeForm  # type: ignore[assignment]  # Django's own stubs disagree here
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_filter = ("is_staff", "is_active")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "May sign in",
            {
                "fields": ("is_active", "is_staff", "is_superuser"),
                "description": "Staff may open the admin. A superuser also keeps accounts and founds workspaces; "
                "neither sees a workspace without being its member.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False
