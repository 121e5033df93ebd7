"""What a request passes on its way to a view: its key, permission and rate, its body and query parameters, its cursor.

`read_body` and `read_query` check what was sent; a field that nobody knows is an error, never ignored. The settings
name classes of this module for every view, so that it imports no views.
"""

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import APIException, AuthenticationFailed, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from memory.access import (
    LIMITED_KEY,
    NO_KEY,
    UNKNOWN_KEY,
    CallKind,
    Viewer,
    actor_of_key,
    call_kind_of,
    changeable_beliefs,
    check_rate,
    find_key,
    grants,
    missing_permission,
    note_key_use,
    viewer_of,
)
from memory.domain.identity import Actor, IdKind
from memory.ingest.json_lines import NotJson, read_json
from memory.ledger.transactions import NotFound
from memory.models import ApiKey, Belief, Permission, Workspace
from memory.redaction.service import redact_values

MAX_NAME = 200


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not declare, and says what a closed set holds."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            _list_choices_in_error(field)
        return fields

    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            raise serializers.ValidationError(
                {replace_surrogates(name): ["There is no such field."] for name in unknown}
            )
        return super().to_internal_value(data)


def _list_choices_in_error(field: Any) -> None:
    if closed := _choice_field_of(field):
        names = ", ".join(map(str, closed.choices))
        closed.error_messages["invalid_choice"] = f"One of these is expected: {names}."


def _choice_field_of(field: Any) -> serializers.ChoiceField | None:
    """Return what holds the choices of a field, or of each in its list; None where anything can be said, as in keys."""
    held = field.child if isinstance(field, serializers.ListField) else field
    return held if isinstance(held, serializers.ChoiceField) else None


def replace_surrogates(name: str) -> str:
    """Replace halves of surrogate pairs, which an answer cannot hold."""
    return name.encode("utf-8", "replace").decode()


class EmptyRequest(StrictSerializer):
    """Nothing can be said beside the address."""


def read_body(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the checked body of a request, without secrets."""
    if not isinstance(request.data, Mapping):
        raise serializers.ValidationError({api_settings.NON_FIELD_ERRORS_KEY: ["A JSON object is expected."]})
    _refuse_wrong_json_types(_shared_serializer(serializer), request.data)
    return _validate_and_redact(serializer, request.data, request)


def read_query(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the checked query parameters of a request, without secrets."""
    return _validate_and_redact(serializer, request.query_params.dict(), request)


def viewer_from(request: Request) -> Viewer:
    """Return the caller as one who looks into their workspace."""
    return viewer_of(key=holder_of(request).key)


def belief_to_change(request: Request, belief_id: str) -> Belief:
    """Return the named belief for the caller to change; one that they may not see does not exist."""
    found = changeable_beliefs(viewer=viewer_from(request), ids=[belief_id])
    if belief_id not in found:
        raise NotFound(f"There is no belief {belief_id} that this key may see.")
    return found[belief_id]


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


def _validate_and_redact(
    serializer: type[StrictSerializer], data: Mapping[str, Any], request: Request
) -> dict[str, Any]:
    """Check what was sent and take secrets out of it: reasons and statements are kept, queries go to models (L2).

    What is one of a closed set holds none.
    """
    values: dict[str, Any] = _shared_serializer(serializer).run_validation(data)
    said = {name: value for name, value in values.items() if name not in _choice_field_names(serializer)}
    return values | redact_values(workspace_id=holder_of(request).workspace.pk, values=said)


def _refuse_wrong_json_types(serializer: serializers.Serializer[Any], data: Mapping[str, Any]) -> None:
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
def _choice_field_names(serializer: type[StrictSerializer]) -> frozenset[str]:
    return frozenset(name for name, field in _shared_serializer(serializer).fields.items() if _choice_field_of(field))


@cache
def _shared_serializer(serializer: type[StrictSerializer]) -> StrictSerializer:
    """Make a serializer once: checking leaves nothing in it, and a new one copies all its fields."""
    return serializer()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """Whoever holds a key: stands in for a user wherever the framework asks for one."""

    key: ApiKey
    is_authenticated: bool = True

    @property
    def workspace(self) -> Workspace:
        """Return the only workspace that this caller can see."""
        return self.key.workspace

    @property
    def actor(self) -> Actor:
        """Name the caller as the history does."""
        return actor_of_key(key=self.key)


class ApiKeyAuthentication(BaseAuthentication):
    """Find the caller's key; a missing, unknown or revoked one is a 401."""

    def authenticate(self, request: Request) -> tuple[KeyHolder, ApiKey] | None:
        words = get_authorization_header(request).split()
        if not words:
            return None
        if len(words) != 2 or words[0].lower() != b"bearer":
            raise AuthenticationFailed(NO_KEY)
        key = find_key(text=words[1].decode("latin-1"))
        if key is None:
            raise AuthenticationFailed(UNKNOWN_KEY)
        note_key_use(key=key, now=timezone.now())
        return KeyHolder(key=key), key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def holder_of(request: Any) -> KeyHolder:
    """Return the authenticated caller of a request."""
    holder: KeyHolder = request.user
    return holder


class DenyUnlessDeclared(BasePermission):
    """Allow a request whose view declares its permission for the method and whose key holds it.

    A view says `permission_for = {"GET": Permission.READ, …}`; a method that is not named there is refused, so that a
    forgotten declaration closes a door instead of opening one. A view that shows what belongs to no project says
    `is_for_whole_workspace = True` and refuses keys that are limited to projects.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not getattr(request.user, "is_authenticated", False):
            return False
        if not hasattr(view, (request.method or "").lower()):
            return True  # there is nothing to open: the view answers that it knows no such method
        key = holder_of(request).key
        if key.is_limited and getattr(view, "is_for_whole_workspace", False):
            self.message = LIMITED_KEY
            return False
        return self._is_granted(request, view)

    def _is_granted(self, request: Request, view: Any) -> bool:
        needed: dict[str, Any] = getattr(view, "permission_for", {})
        method = "GET" if request.method == "HEAD" else request.method or ""
        if method not in needed:
            return False
        self.message = missing_permission(needed[method])
        return grants(key=holder_of(request).key, permission=needed[method])


class KeyRateThrottle(BaseThrottle):
    """Raise RateLimited where a key has had its share; what a call is for follows from its permission."""

    def allow_request(self, request: Request, view: Any) -> bool:
        method = "GET" if request.method == "HEAD" else request.method
        permission = getattr(view, "permission_for", {}).get(method)
        if permission is not None:
            check_rate(key=holder_of(request).key, usage=_usage_of_call(permission, method))
        return True


def _usage_of_call(permission: Permission, method: str | None) -> CallKind:
    """Take what is posted and only reads for a recall."""
    is_recall = permission is Permission.READ and method == "POST"
    return CallKind.RECALL if is_recall else call_kind_of(permission=permission)


class BodyTooLarge(APIException):
    """A body that is longer than the policy allows."""

    status_code = 413


class BoundedJSONParser(BaseParser):
    """Read JSON up to the greatest size of a body.

    NaN and infinity get through: whoever checks the fields refuses them by name, in their item of a batch.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        most = settings.POLICY.ingest.body_bytes
        body = stream.read(most + 1)
        if len(body) > most:
            raise BodyTooLarge(f"The body is longer than {most} bytes.")
        try:
            return read_json(body)
        except NotJson as error:
            raise ParseError(f"The body is not JSON; {error}.") from None


INVALID_CURSOR = "This is not a cursor of ours."
DEFAULT_PAGE_SIZE = 50
_ID_KIND_OF_MODEL = {"episode": IdKind.EPISODE, "belief": IdKind.BELIEF, "cycle": IdKind.CYCLE}
MAX_PAGE_SIZE = 200


class PageQuery(StrictSerializer):
    """The query parameters of every list."""

    cursor = serializers.CharField(required=False, help_text="From `next` of the page before.")
    limit = serializers.IntegerField(
        default=DEFAULT_PAGE_SIZE, min_value=1, max_value=MAX_PAGE_SIZE, help_text="Rows of one page."
    )


def page_of(
    *, request: Request, rows: QuerySet[Any], asked: dict[str, Any], shown_as: type[serializers.BaseSerializer[Any]],
    newest_by: str = "created_at", key: str = "pk",
) -> Response:  # fmt: skip
    """Answer with the page that was asked for, and the address of the next one; `key` tells rows of one time apart."""
    ordered = rows.order_by(f"-{newest_by}", f"-{key}")
    if "cursor" in asked:
        time, last = _decode_cursor(asked["cursor"])
        ordered = ordered.filter(
            Q(**{newest_by: time, f"{key}__lt": _read_cursor_key(rows, key, last)}) | Q(**{f"{newest_by}__lt": time})
        )
    found = list(ordered[: asked["limit"] + 1])
    page = found[: asked["limit"]]
    more = len(found) > len(page)
    following = (
        _next_address(request, _encode_cursor(getattr(page[-1], newest_by), getattr(page[-1], key))) if more else None
    )
    return Response({"results": shown_as(page, many=True).data, "next": following})


def _next_address(request: Request, cursor: str) -> str:
    parameters = request.query_params.copy()
    parameters["cursor"] = cursor
    return request.build_absolute_uri(f"{request.path}?{parameters.urlencode()}")


def _read_cursor_key(rows: QuerySet[Any], key: str, text: str) -> Any:
    """Read a key from a cursor, as the rows' own column has it; one of another list would skip rows, and is refused."""
    kind = _ID_KIND_OF_MODEL.get(str(rows.model._meta.model_name))
    if kind and not text.startswith(f"{kind}_"):
        raise serializers.ValidationError({"cursor": [INVALID_CURSOR]})
    field = rows.model._meta.pk if key == "pk" else rows.model._meta.get_field(key)
    try:
        return field.to_python(text)
    except ValidationError as error:
        raise serializers.ValidationError({"cursor": [INVALID_CURSOR]}) from error


def _encode_cursor(time: datetime, key: object) -> str:
    return base64.urlsafe_b64encode(f"{time.isoformat()} {key}".encode()).decode()


def _decode_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        time, key = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii").split(" ")
        parsed = parse_datetime(time)
        if parsed is not None and parsed.tzinfo is not None and "\0" not in key:
            return parsed.astimezone(UTC), key
    except (binascii.Error, ValueError, OverflowError):  # the last: its offset leads out of the years 1 to 9999
        pass
    raise serializers.ValidationError({"cursor": [INVALID_CURSOR]})
