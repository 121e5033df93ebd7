"""What a key may do: each view declares the permission that each method needs."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memory.access.keys import grants
from memory.api.authentication import holder_of


class DenyUnlessDeclared(BasePermission):
    """Allow a request whose view declares its permission for the method and whose key holds it.

    A view says `permission_for = {"GET": Permission.READ, …}`; a method that is not named there is refused, so that a
    forgotten declaration closes a door instead of opening one.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not getattr(request.user, "is_authenticated", False):
            return False
        needed: dict[str, Any] = getattr(view, "permission_for", {})
        method = request.method or ""
        return method in needed and grants(key=holder_of(request).key, permission=needed[method])
