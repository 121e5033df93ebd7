"""The log of requests: when each began and ended, under one id."""

import structlog
from django.conf import settings
from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware


class RequestLog(RequestMiddleware):
    """Names who is logged in, and the caller's address as the connection has it.

    What a header says of the address is believed only behind a proxy, and of several addresses the last: it is the one
    that the proxy added, the others are what the caller said. Agents have no session, so that nobody is looked for in
    one; who logs in has one from then on.
    """

    @classmethod
    def bind_ip(cls, request: HttpRequest) -> None:
        told = request.headers.get("X-Forwarded-For", "") if settings.ENGRAM_BEHIND_PROXY else ""
        structlog.contextvars.bind_contextvars(ip=told.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR"))

    @staticmethod
    def bind_user_id(request: HttpRequest) -> None:
        session = getattr(request, "session", None)
        if settings.SESSION_COOKIE_NAME in request.COOKIES or (session is not None and session.accessed):
            RequestMiddleware.bind_user_id(request)
