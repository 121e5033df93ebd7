"""Forms of members and keys."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError

from memory.access import check_slug, is_last_owner, lock_members
from memory.models import ApiKey, Membership, Permission, Project, Role

if TYPE_CHECKING:
    from django.forms import CheckboxSelectMultiple, TextInput
else:
    from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget as CheckboxSelectMultiple
    from unfold.widgets import UnfoldAdminTextInputWidget as TextInput


class MembershipForm(forms.ModelForm[Membership]):
    """Change a member's role; the last owner keeps theirs."""

    def clean_role(self) -> str:
        role: str = self.cleaned_data["role"]
        lock_members(workspace_id=self.instance.workspace_id)
        if role != Role.OWNER and is_last_owner(membership=self.instance):
            raise ValidationError("A workspace needs an owner: make somebody else one first.")
        return role


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


class ProjectForm(forms.ModelForm[Project]):
    """A project's name is no key or token."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        check_slug(cleaned.get("slug", ""))
        return cleaned


class ProjectChoices(forms.ModelMultipleChoiceField[Project]):
    """Projects by name and workspace: two workspaces may each have one of the same name."""

    def label_from_instance(self, obj: Project) -> str:
        """Say whose project it is."""
        return f"{obj.slug} ({obj.workspace})"


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
