"""The people who may sign in. Superusers alone keep this list; what each may do is said by memberships."""

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.contrib.auth.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
else:
    from unfold.admin import ModelAdmin
    from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

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
