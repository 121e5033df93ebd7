"""What a key may do: each view declares the permission that each method needs."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memory.access import LIMITED_KEY, grants, missing_permission
from memory.api.authentication import holder_of


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
