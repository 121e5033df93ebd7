"""Does everything that `make up` starts answer?"""

from collections.abc import Mapping
from datetime import datetime

import httpx
from django.db import InterfaceError, OperationalError, connection

from memory.consolidation.sweep import SWEEP
from memory.models import Heartbeat

_ANSWER_SECONDS = 2.0


def last_sweep() -> datetime | None:
    """Return when a worker swept last, by the database's clock."""
    return Heartbeat.objects.filter(name=SWEEP).values_list("seen_at", flat=True).first()


def find_missing(*, environment: Mapping[str, str], swept_before: datetime | None) -> list[str]:
    """Name what does not answer yet; `swept_before` is the last sweep before the processes were started.

    A later one means that beat has asked for it and a worker has done it.
    """
    pages = {
        "web": f"{environment['PORT']}/healthz",
        "Flower": f"{environment['FLOWER_PORT']}/healthcheck",
        "tools for agents": f"{environment['MCP_PORT']}/mcp",
    }
    missing = [name for name, page in pages.items() if not _answers(f"http://127.0.0.1:{page}")]
    missing += _missing_of_rows(swept_before)
    connection.close()
    return missing


def _missing_of_rows(swept_before: datetime | None) -> list[str]:
    try:
        return ["worker and beat"] if last_sweep() == swept_before else []
    except (OperationalError, InterfaceError):  # it may come back; who waits must go on to keep the stack in hand
        return ["database"]


def _answers(address: str) -> bool:
    """Tell whether a server answers; one that knows no `127.0.0.1`, or wants HTTPS, refuses us and is there.

    Asked past any proxy: one would answer in its place.
    """
    try:
        return not httpx.get(address, timeout=_ANSWER_SECONDS, trust_env=False).is_server_error
    except httpx.TransportError:
        return False
