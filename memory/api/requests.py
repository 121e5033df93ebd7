"""What callers send, checked: a field that nobody knows is an error, never ignored."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.http import Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.settings import api_settings

from memory.access import Viewer, changeable_beliefs, describe_unknown_project, find_project, viewer_of
from memory.api.authentication import holder_of
from memory.models import Belief, Project
from memory.redaction.service import redact_values

MAX_NAME = 200


class NoSuchProject(Http404):
    """A project that is not there, or not for the caller to see."""


class NothingThere(Http404):
    """What a request names is not there, or not for the caller to see; the message names it."""


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not declare, and says what a closed set holds."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            _name_choices(field)
        return fields

    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            raise serializers.ValidationError({sendable(name): ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)


def _name_choices(field: Any) -> None:
    if closed := _closed_set(field):
        names = ", ".join(map(str, closed.choices))
        closed.error_messages["invalid_choice"] = f"One of these is expected: {names}."


def _closed_set(field: Any) -> serializers.ChoiceField | None:
    """Return what holds the choices of a field, or of each in its list; None where anything can be said, as in keys."""
    held = field.child if isinstance(field, serializers.ListField) else field
    return held if isinstance(held, serializers.ChoiceField) else None


class Nothing(StrictSerializer):
    """Nothing can be said beside the address."""


def sendable(name: str) -> str:
    """Replace halves of surrogate pairs, which an answer cannot hold."""
    return name.encode("utf-8", "replace").decode()


def read_body(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the checked body of a request, without secrets."""
    if not isinstance(request.data, Mapping):
        raise serializers.ValidationError({api_settings.NON_FIELD_ERRORS_KEY: ["A JSON object is expected."]})
    _refuse_other_types(_one(serializer), request.data)
    return _checked(serializer, request.data, request)


def read_query(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the checked query parameters of a request, without secrets."""
    return _checked(serializer, request.query_params.dict(), request)


def viewer_from(request: Request) -> Viewer:
    """Return the caller as one who looks into their workspace."""
    return viewer_of(key=holder_of(request).key)


def belief_to_change(request: Request, belief_id: str) -> Belief:
    """Return the named belief for the caller to change; one that they may not see does not exist."""
    found = changeable_beliefs(viewer=viewer_from(request), ids=[belief_id])
    if belief_id not in found:
        raise NothingThere(f"There is no belief {belief_id} that this key may see.")
    return found[belief_id]


def project_named(*, viewer: Viewer, slug: str | None) -> Project | None:
    """Return the project of this name, None for no name; raise NoSuchProject for one the viewer may not see."""
    if not slug:
        return None
    project = find_project(viewer=viewer, slug=slug)
    if project is None:
        raise NoSuchProject(describe_unknown_project(slug))
    return project


class ShareField(serializers.FloatField):
    """A number from 0 to 1."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=1, **options)

    def to_internal_value(self, data: Any) -> float:
        value = super().to_internal_value(data)
        if math.isnan(value):  # compares as neither too small nor too great
            self.fail("invalid")
        return value


class MomentField(serializers.DateTimeField):
    """A moment: a time with its offset."""

    default_error_messages = {
        "naive": "The time needs an offset, such as Z or +01:00.",
        "nowhere": "There is no such time.",
    }

    def enforce_timezone(self, value: datetime) -> datetime:
        """Return the moment in UTC: at the ends of the calendar an offset may lead out of it."""
        if value.tzinfo is None:
            self.fail("naive")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            self.fail("nowhere")


def as_of_field() -> MomentField:
    """Declare the time at which memories are to be shown as they stood."""
    return MomentField(required=False, help_text="Show what was believed then, in the time of storing.")


def name_field(**options: Any) -> serializers.CharField:
    """Declare an optional name: of a user, a session, a project."""
    return serializers.CharField(required=False, max_length=MAX_NAME, **options)


def query_field(**options: Any) -> serializers.CharField:
    """Declare a text to search for, as long as the policy allows."""
    return serializers.CharField(max_length=settings.POLICY.recall.query_characters, **options)


def _checked(serializer: type[StrictSerializer], data: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Check what was sent and take secrets out of it: reasons and statements are kept, queries go to models (L2).

    What is one of a closed set holds none.
    """
    values: dict[str, Any] = _one(serializer).run_validation(data)
    said = {name: value for name, value in values.items() if name not in _closed_fields(serializer)}
    return values | redact_values(workspace_id=holder_of(request).workspace.pk, values=said)


def _refuse_other_types(serializer: serializers.Serializer[Any], data: Mapping[str, Any]) -> None:
    """Raise ValidationError where a value is not of its field's type in JSON: a check would make false of 0."""
    wrong = {
        name: [getattr(field, "child", field).error_messages["invalid"]]
        for name, field in serializer.fields.items()
        if name in data and not _has_type(field, data[name])
    }
    if wrong:
        raise serializers.ValidationError(wrong)


def _has_type(field: Any, value: Any) -> bool:
    """Tell whether a value is of a field's type; what is null, or should be a list or an object, is checked later."""
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        return all(_has_type(field.child, one) for one in value)
    types = next((types for kind, types in _JSON_TYPES.items() if isinstance(field, kind)), None)
    return types is None or value is None or type(value) in types  # by `type`, since true is an int, too


_JSON_TYPES: Mapping[type, tuple[type, ...]] = {
    serializers.BooleanField: (bool,),
    serializers.CharField: (str,),
    serializers.IntegerField: (int,),
    serializers.FloatField: (int, float),
}


@cache
def _closed_fields(serializer: type[StrictSerializer]) -> frozenset[str]:
    return frozenset(name for name, field in _one(serializer).fields.items() if _closed_set(field))


@cache
def _one(serializer: type[StrictSerializer]) -> StrictSerializer:
    """Make a serializer once: checking leaves nothing in it, and a new one copies all its fields."""
    return serializer()
