"""The log of requests: when each began and ended, under one id."""

import structlog
from django.conf import settings
from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware


class RequestLog(RequestMiddleware):
    """Names the caller's address as the connection has it: what a header says of it is believed only behind a proxy."""

    @classmethod
    def bind_ip(cls, request: HttpRequest) -> None:
        if settings.ENGRAM_BEHIND_PROXY:
            super().bind_ip(request)
        else:
            structlog.contextvars.bind_contextvars(ip=request.META.get("REMOTE_ADDR"))
