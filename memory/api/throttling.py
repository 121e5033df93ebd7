"""Rates of calls, by key and by what a call is for."""

from typing import Any

from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from memory.access import CallKind, RateLimited, call_kind_of, check_rate
from memory.api.authentication import holder_of
from memory.models import Permission


class _Refused(Throttled):
    """A 429 that says what every door says."""

    def __init__(self, refused: RateLimited) -> None:
        super().__init__(detail=str(refused))
        self.wait = refused.wait


class RateOfKey(BaseThrottle):
    """Refuse a call with 429 where its key has had its share; what a call is for follows from its permission."""

    def allow_request(self, request: Request, view: Any) -> bool:
        method = "GET" if request.method == "HEAD" else request.method
        permission = getattr(view, "permission_for", {}).get(method)
        if permission is None:
            return True
        try:
            check_rate(key=holder_of(request).key, usage=_usage(permission, method))
        except RateLimited as refused:
            raise _Refused(refused) from None
        return True


def _usage(permission: Permission, method: str | None) -> CallKind:
    """Take what is posted and only reads for a recall."""
    is_recall = permission is Permission.READ and method == "POST"
    return CallKind.RECALL if is_recall else call_kind_of(permission=permission)
