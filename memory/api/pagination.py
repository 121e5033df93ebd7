"""Cursor pages, newest first: a cursor names the last row shown, so that nothing is skipped or shown twice.

The framework's own cursors count rows of equal time with an offset that ends at 1,000; a bulk import gives thousands
of episodes one time.
"""

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.requests import StrictSerializer
from memory.domain.ids import IdKind

NO_CURSOR = "This is not a cursor of ours."
PAGE = 50
_KIND_OF = {"episode": IdKind.EPISODE, "belief": IdKind.BELIEF, "cycle": IdKind.CYCLE}
MAX_PAGE = 200


class PageQuery(StrictSerializer):
    """The query parameters of every list."""

    cursor = serializers.CharField(required=False, help_text="From `next` of the page before.")
    limit = serializers.IntegerField(default=PAGE, min_value=1, max_value=MAX_PAGE, help_text="Rows of one page.")


def page_of(
    *, request: Request, rows: QuerySet[Any], asked: dict[str, Any], shown_as: type[serializers.BaseSerializer[Any]],
    newest_by: str = "created_at", key: str = "pk",
) -> Response:  # fmt: skip
    """Answer with the page that was asked for, and the address of the next one; `key` tells rows of one time apart."""
    ordered = rows.order_by(f"-{newest_by}", f"-{key}")
    if "cursor" in asked:
        time, last = _decode(asked["cursor"])
        ordered = ordered.filter(
            Q(**{newest_by: time, f"{key}__lt": _as_key(rows, key, last)}) | Q(**{f"{newest_by}__lt": time})
        )
    found = list(ordered[: asked["limit"] + 1])
    page = found[: asked["limit"]]
    more = len(found) > len(page)
    following = _address(request, _encode(getattr(page[-1], newest_by), getattr(page[-1], key))) if more else None
    return Response({"results": shown_as(page, many=True).data, "next": following})


def _address(request: Request, cursor: str) -> str:
    parameters = request.query_params.copy()
    parameters["cursor"] = cursor
    return request.build_absolute_uri(f"{request.path}?{parameters.urlencode()}")


def _as_key(rows: QuerySet[Any], key: str, text: str) -> Any:
    """Read a key from a cursor, as the rows' own column has it; one of another list would skip rows, and is refused."""
    kind = _KIND_OF.get(str(rows.model._meta.model_name))
    if kind and not text.startswith(f"{kind}_"):
        raise serializers.ValidationError({"cursor": [NO_CURSOR]})
    field = rows.model._meta.pk if key == "pk" else rows.model._meta.get_field(key)
    try:
        return field.to_python(text)
    except ValidationError as error:
        raise serializers.ValidationError({"cursor": [NO_CURSOR]}) from error


def _encode(time: datetime, key: object) -> str:
    return base64.urlsafe_b64encode(f"{time.isoformat()} {key}".encode()).decode()


def _decode(cursor: str) -> tuple[datetime, str]:
    try:
        time, key = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii").split(" ")
        parsed = parse_datetime(time)
        if parsed is not None and parsed.tzinfo is not None and "\0" not in key:
            return parsed.astimezone(UTC), key
    except (binascii.Error, ValueError, OverflowError):  # the last: its offset leads out of the years 1 to 9999
        pass
    raise serializers.ValidationError({"cursor": [NO_CURSOR]})
