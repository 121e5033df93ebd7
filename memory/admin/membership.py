"""The base of every admin page: rows by membership, rights by role, tables too long to count.

Django's own permissions and groups are not asked: whoever is staff may open the admin, and finds there the rows of
the workspaces they are a member of. A superuser is no exception.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from django.contrib.admin import RelatedFieldListFilter, ShowFacets
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.forms import ModelChoiceField, ModelForm, ModelMultipleChoiceField
from django.http import HttpRequest

from memory.admin.columns import SharedColumns
from memory.admin.theme import InlineFormSet, ModelAdmin, PagesWithoutCount, TabularInline
from memory.domain.lifecycle import BeliefStatus, EpisodeStatus
from memory.models import (
    Belief,
    Claim,
    Episode,
    Membership,
    Role,
    StructuralChild,
    StructuralJob,
    Turn,
    TurnEpisode,
    Workspace,
)

if TYPE_CHECKING:
    from django.contrib.admin.options import BaseModelAdmin

    _Base = BaseModelAdmin[Any]
else:
    _Base = object

Row = TypeVar("Row", bound=models.Model)
Parent = TypeVar("Parent", bound=models.Model)


class MembershipRights(SharedColumns, _Base):
    """Rows, choices and rights of one model, by the person's membership in each workspace."""

    adds: ClassVar[Role | None] = None
    changes: ClassVar[Role | None] = None
    deletes: ClassVar[Role | None] = None
    related: ClassVar[Sequence[str]] = ()  # foreign rows that the page's query joins

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows = super().get_queryset(request).defer(*_wide_columns(self.model, self.related))
        if self.related:  # without any name, Django would follow every key
            rows = rows.select_related(*self.related)
        return visible_rows(rows, request=request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return _holds_role(request, Role.READER, obj)

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return _holds_role(request, self.adds, obj)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return _holds_role(request, self.changes, obj)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return _holds_role(request, self.deletes, obj)

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return _holds_role(request, Role.CURATOR, None)

    def has_own_permission(self, request: HttpRequest) -> bool:
        return _holds_role(request, Role.OWNER, None)

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        kwargs["queryset"] = self._choices(db_field, request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(
        self, db_field: models.ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelMultipleChoiceField[Any] | None:
        kwargs["queryset"] = self._choices(db_field, request)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def _choices(
        self, field: models.ForeignKey[Any, Any] | models.ManyToManyField[Any, Any], request: HttpRequest
    ) -> models.QuerySet[Any]:
        rows = field.related_model._default_manager.all()
        return member_rows(rows, request=request, at_least=self.adds or self.changes or Role.READER)


def _wide_columns(model: type[models.Model], related: Sequence[str]) -> list[str]:
    """List the columns that no page shows, of a model and the rows joined to it: they outweigh the rest of a row."""
    read: dict[str, Any] = {"": model} | {f"{name}__": model._meta.get_field(name).related_model for name in related}
    return [
        prefix + field.name
        for prefix, each in read.items()
        for field in each._meta.concrete_fields
        if field.name in ("search", "candidate_vector", "vector")
    ]


def _holds_role(request: HttpRequest, role: Role | None, row: models.Model | None) -> bool:
    """Tell whether the person holds a role: in the row's workspace, or for no row in any."""
    if role is None:
        return False
    held = workspaces_of(request, at_least=role)
    return bool(held) if row is None else workspace_of(row) in held


_RANKS = {Role.READER: 1, Role.CURATOR: 2, Role.OWNER: 3}

# One page asks for permissions dozens of times; a request sees the memberships that it began with.
_roles_by_request: WeakKeyDictionary[HttpRequest, Mapping[int, Role]] = WeakKeyDictionary()


def roles_of(request: HttpRequest) -> Mapping[int, Role]:
    """Return the person's role by workspace id."""
    if request not in _roles_by_request:
        held = Membership.objects.filter(user=request.user.pk).values_list("workspace", "role")
        _roles_by_request[request] = {workspace: Role(role) for workspace, role in held}
    return _roles_by_request[request]


def workspaces_of(request: HttpRequest, *, at_least: Role = Role.READER) -> list[int]:
    """List the ids of the workspaces in which the person holds a role or a higher one."""
    return [workspace for workspace, role in roles_of(request).items() if _RANKS[role] >= _RANKS[at_least]]


def member_rows(
    rows: models.QuerySet[Row], *, request: HttpRequest, at_least: Role = Role.READER
) -> models.QuerySet[Row]:
    """Keep the rows of the workspaces in which the person holds a role; rows of no workspace are nobody's."""
    column = "pk" if rows.model is Workspace else "workspace"
    return rows.filter(**{f"{column}__in": workspaces_of(request, at_least=at_least)})


def visible_rows(rows: models.QuerySet[Row], *, request: HttpRequest) -> models.QuerySet[Row]:
    """Keep the rows of a member, without those of what was forgotten where the person is no curator (B19)."""
    mine = member_rows(rows, request=request)
    curated = workspaces_of(request, at_least=Role.CURATOR)
    if set(curated) == set(roles_of(request)):
        return mine
    for forgotten in _forgotten_conditions(rows.model):
        mine = mine.filter(~forgotten | Q(workspace__in=curated))
    return mine


def _forgotten_conditions(model: type[models.Model]) -> Iterator[Q | Exists]:
    """Say which rows are of a forgotten episode or belief: it itself, and what leads to it."""
    if model is Turn:
        yield Exists(TurnEpisode.objects.filter(turn=OuterRef("pk"), episode__status=EpisodeStatus.FORGOTTEN))
    for path, status in _statuses_of_forgotten(model):
        yield Q(**{path: status})


def _statuses_of_forgotten(model: Any) -> Iterator[tuple[str, str]]:
    """List each path from a row to the status of what it quotes, with the status that hides the row."""
    if model is Episode:
        yield "status", EpisodeStatus.FORGOTTEN
    elif model is Belief:
        yield "status", BeliefStatus.FORGOTTEN
    else:
        for field in model._meta.concrete_fields:
            if field.related_model in _REPEATING:
                for path, status in _statuses_of_forgotten(field.related_model):
                    yield f"{field.name}__{path}", status


# Their pages and the columns that link to them quote an episode or a belief.
_REPEATING = (Episode, Belief, Claim, StructuralJob, StructuralChild)


def workspace_of(row: models.Model) -> int:
    """Return the id of the workspace that a row belongs to."""
    workspace: int = row.pk if isinstance(row, Workspace) else row.workspace_id  # type: ignore[attr-defined]
    return workspace


class MembersAdmin(MembershipRights, ModelAdmin[Row]):
    """A model's pages for its workspaces' members: read-only unless a class names a role and `editable` fields."""

    editable: ClassVar[Sequence[str]] = ()
    set_once: ClassVar[Sequence[str]] = ()  # chosen when a row is added, and fixed from then on

    # Neither bulk deletion nor any other act on many rows, but where a page names one.
    actions: Any = None
    ordering: ClassVar[Any] = ("-id",)
    paginator = PagesWithoutCount
    list_per_page = 50
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # each would count the whole table
    list_filter_submit = True
    text_length: ClassVar[int | None] = 160

    def get_list_display(self, request: HttpRequest) -> Any:
        """Name the workspace of each row to whoever belongs to several."""
        columns = super().get_list_display(request)
        if len(workspaces_of(request)) < 2 or "workspace" in columns or not _has_workspace(self.model):
            return columns
        return (*columns, "workspace")

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Offer the person's workspaces before what the page names."""
        filters = super().get_list_filter(request)
        return [("workspace", OwnWorkspaces), *filters] if _has_workspace(self.model) else filters

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        writable = self.editable if obj else (*self.editable, *self.set_once)
        return [name for name in flatten_fieldsets(self.get_fieldsets(request, obj)) if name not in writable]

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows.select_related("workspace") if _has_workspace(self.model) else rows

    def save_model(self, request: HttpRequest, obj: Row, form: ModelForm[Row], change: bool) -> None:
        """Write only what the person changed: workers write the same rows meanwhile."""
        if change:
            obj.save(update_fields=form.changed_data)
        else:
            super().save_model(request, obj, form, change)

    def log_change(self, request: HttpRequest, obj: Row, message: Any) -> LogEntry:
        """Log the id and no text, so that erasing an episode or a belief leaves no copy here."""
        return LogEntry.objects.create(
            user=request.user,  # type: ignore[misc]  # nobody anonymous comes this far
            content_type=ContentType.objects.get_for_model(obj),
            object_id=obj.pk,
            object_repr=str(obj.pk),
            action_flag=CHANGE,
            change_message=json.dumps(message),
        )


class ReadOnlyFormSet(InlineFormSet):
    """Rows that are shown beside a form and take no part in it: whatever is posted, they stay as they are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["data"] = kwargs["files"] = None
        super().__init__(*args, **kwargs)

    def _construct_form(self, i: int, **kwargs: Any) -> ModelForm[Any]:
        """Hang the parent, which is at hand, on each row, so that none reads it again."""
        form: ModelForm[Any] = super()._construct_form(i, **kwargs)  # type: ignore[misc]
        setattr(form.instance, self.fk.name, self.instance)
        return form

    def is_valid(self) -> bool:
        return True

    def save(self, commit: bool = True) -> list[Any]:
        self.new_objects: list[Any] = []
        self.changed_objects: list[Any] = []
        self.deleted_objects: list[Any] = []
        return []


class ReadOnlyInline(MembershipRights, TabularInline[Row, Parent]):
    """Rows beside their parent, to look at."""

    formset = ReadOnlyFormSet
    extra = 0
    max_num = 0
    per_page = 25
    can_delete = False
    hide_title = True
    show_change_link = False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields or ()


class OwnWorkspaces(RelatedFieldListFilter):
    """A filter whose values are rows of the person's own workspaces."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        rows = member_rows(field.related_model._default_manager.all(), request=request)
        return sorted(((row.pk, str(row)) for row in rows), key=lambda choice: choice[1].casefold())


def _has_workspace(model: type[models.Model]) -> bool:
    return any(field.name == "workspace" for field in model._meta.fields)
