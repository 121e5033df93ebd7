"""Probes: is the process alive, and can it do its work."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType

import redis
import structlog
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory.api.problems import plain_problem
from memory.consolidation.sweep import SWEEP
from memory.models import Heartbeat

_BROKER_SECONDS = 2.0
_SWEEP_AGE = timedelta(minutes=3)

Check = Callable[[], None]

log = structlog.get_logger(__name__)


class NothingSeen(Exception):
    """Something that must keep running has not been seen for too long."""


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process lives."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest, also: Mapping[str, Check] = MappingProxyType({})) -> HttpResponse:
    """Answer whether database and broker answer and a sweep was done lately; `also` names what the site adds."""
    checks = CHECKS | dict(also)
    failed = [name for name, check in checks.items() if not _passes(name, check)]
    if failed:
        return plain_problem(status=503, detail=f"Not ready: {', '.join(failed)}.")
    return JsonResponse({"status": "ok"})


def open_broker() -> redis.Redis:
    """Open a client of the broker that does not wait for long, nor try twice."""
    url = settings.BROKER_URL.replace("redis+socket://", "unix://", 1)
    timeouts = {"socket_timeout": _BROKER_SECONDS, "socket_connect_timeout": _BROKER_SECONDS}
    client: redis.Redis = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **timeouts)
    return client


def _passes(name: str, check: Check) -> bool:
    try:
        check()
    except Exception as error:  # noqa: BLE001  (whatever is wrong, the answer is "not ready")
        log.warning("readiness.failed", check=name, error=str(error))
        return False
    return True


def _reach_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _reach_broker() -> None:
    with open_broker() as broker:
        broker.ping()


def _see_sweep() -> None:
    """Look for a recent sweep: beat must have asked for it and a worker must have done it."""
    if not Heartbeat.objects.filter(name=SWEEP, seen_at__gt=Now() - _SWEEP_AGE).exists():
        raise NothingSeen(f"no sweep within {_SWEEP_AGE}")


CHECKS: dict[str, Check] = {
    "database": _reach_database,
    "broker": _reach_broker,
    "sweep": _see_sweep,
}
