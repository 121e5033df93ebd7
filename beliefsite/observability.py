"""How processes report what they do: logs, the log of requests, and OpenTelemetry traces.

Servers log as JSON for machines, commands in words for the person who runs them. Traces are sent where
OTEL_EXPORTER_OTLP_ENDPOINT is set; their packages are an extra (requirements-otel.txt) and not imported otherwise.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings
from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware

from beliefsite.environment import read_choice
from memory.redaction.redact import redact_event

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


log = structlog.get_logger(__name__)
_SERVER_COMMANDS = {"mcp", "runserver", "up"}  # commands that serve until they are ended
_LOG_FORMATS = ("json", "console")
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def logging_config(*, argv: Sequence[str], is_terminal: bool) -> dict[str, Any]:
    """Return the configuration of logging for a process of this command line; raise ImproperlyConfigured."""
    has_person = is_command(argv)
    plain = "console" if is_terminal or has_person else "json"
    level = logging.getLevelName(logging.WARNING if has_person else logging.INFO)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": _log_formatter(structlog.processors.JSONRenderer()),
            "console": _log_formatter(structlog.dev.ConsoleRenderer(colors=is_terminal)),
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": read_choice("ENGRAM_LOG_FORMAT", default=plain, choices=_LOG_FORMATS),
            }
        },
        "root": {
            "handlers": ["stderr"],
            "level": read_choice("ENGRAM_LOG_LEVEL", default=level, choices=_LOG_LEVELS),
        },
        "loggers": {
            "httpx": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
            "openai": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},  # else a line for every sweep
        },
    }


def is_command(argv: Sequence[str]) -> bool:
    """Tell whether this is a command that somebody ran and waits for."""
    return PurePath(argv[0]).name == "manage.py" and not _SERVER_COMMANDS.intersection(argv[1:2])


def configure_structlog() -> None:
    """Have events go through the standard library's handlers."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED_PROCESSORS,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _log_formatter(renderer: Any) -> dict[str, Any]:
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact_event,
            renderer,
        ],
        "foreign_pre_chain": _SHARED_PROCESSORS,
    }


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


_is_tracing = False


def start_tracing(*, process: str) -> None:
    """Export spans of this process; do nothing where OTEL_EXPORTER_OTLP_ENDPOINT is not set.

    The other variables of OpenTelemetry count as they do elsewhere (OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, …).
    """
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.error("tracing_unavailable", missing=error.name, install="requirements-otel.txt")
        return
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": f"engram-{process}"}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    instrument(provider)


def instrument(provider: "TracerProvider") -> None:
    """Let the libraries that do the work make spans. Statements are recorded without their values."""
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.instrumentation.django import DjangoInstrumentor
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
    from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor

    global _is_tracing
    for instrumentor in (DjangoInstrumentor, CeleryInstrumentor, PsycopgInstrumentor, HTTPXClientInstrumentor):
        instrumentor().instrument(tracer_provider=provider)
    _is_tracing = True


def describe_span(fields: Mapping[str, str | int]) -> None:
    """Note on the span that is under way what it is about: cycle, workspace, job."""
    if _is_tracing:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes({f"engram.{name}": value for name, value in fields.items()})
