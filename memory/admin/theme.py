"""The theme's classes, with the types of the Django classes that they derive from: unfold ships none."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin, TabularInline
    from django.contrib.admin.helpers import ActionForm
    from django.contrib.auth.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
    from django.core.paginator import Paginator
    from django.forms import BaseInlineFormSet, CheckboxSelectMultiple, ModelForm, TextInput

    InlineFormSet = BaseInlineFormSet[Any, Any, ModelForm[Any]]
    PagesWithoutCount = Paginator[Any]
else:
    from unfold.admin import ModelAdmin, TabularInline
    from unfold.forms import (
        ActionForm,
        AdminPasswordChangeForm,
        UserChangeForm,
        UserCreationForm,
    )
    from unfold.forms import PaginationInlineFormSet as InlineFormSet
    from unfold.paginator import (
        InfinitePaginator as PagesWithoutCount,
    )  # templates look for this very class name
    from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget as CheckboxSelectMultiple
    from unfold.widgets import UnfoldAdminTextInputWidget as TextInput

__all__ = [
    "ActionForm",
    "AdminPasswordChangeForm",
    "CheckboxSelectMultiple",
    "InlineFormSet",
    "ModelAdmin",
    "PagesWithoutCount",
    "TabularInline",
    "TextInput",
    "UserChangeForm",
    "UserCreationForm",
]
