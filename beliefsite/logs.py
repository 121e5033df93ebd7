"""How processes log: servers as JSON for machines, commands in words for the person who ran them, and less of it."""

import logging
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import structlog

from beliefsite.typed_environment import read_choice
from memory.redaction.redact import redact_event

_SERVERS = {"mcp", "runserver", "up"}  # commands that serve until they are ended
_FORMATS = ("json", "console")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def logging_of(*, argv: Sequence[str], is_terminal: bool) -> dict[str, Any]:
    """Return the configuration of logging for a process of this command line; raise ImproperlyConfigured."""
    has_person = is_command(argv)
    plain = "console" if is_terminal or has_person else "json"
    level = logging.getLevelName(logging.WARNING if has_person else logging.INFO)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": _formatter(structlog.processors.JSONRenderer()),
            "console": _formatter(structlog.dev.ConsoleRenderer(colors=is_terminal)),
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": read_choice("ENGRAM_LOG_FORMAT", default=plain, choices=_FORMATS),
            }
        },
        "root": {
            "handlers": ["stderr"],
            "level": read_choice("ENGRAM_LOG_LEVEL", default=level, choices=_LEVELS),
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
    return PurePath(argv[0]).name == "manage.py" and not _SERVERS.intersection(argv[1:2])


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


def _formatter(renderer: Any) -> dict[str, Any]:
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
