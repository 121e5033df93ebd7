"""Keep the embedded servers alive: `python -m beliefsite.embedded [--database] [--broker]`, in ENGRAM_DATA_DIR.

A server belongs to nobody while many use it, so no supervisor can be its parent. This process is supervised in its
place: it looks after the servers, and starts again what died.
"""

import argparse
import atexit
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from beliefsite.embedded.broker import EmbeddedBroker
from beliefsite.embedded.errors import EmbeddedServiceError
from beliefsite.embedded.postgres import EmbeddedPostgres
from beliefsite.embedded.server import EmbeddedServer

_LOOK_SECONDS = 0.5


def main() -> None:
    """Use the servers that the command line names until SIGTERM or SIGINT, and look after them meanwhile."""
    parser = argparse.ArgumentParser(prog="python -m beliefsite.embedded", description=__doc__)
    parser.add_argument("--database", action="append_const", dest="kinds", const=EmbeddedPostgres)
    parser.add_argument("--broker", action="append_const", dest="kinds", const=EmbeddedBroker)
    kinds: list[type[EmbeddedPostgres | EmbeddedBroker]] = parser.parse_args().kinds or []
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: sys.exit(0))
    servers = [kind(Path(os.environ["ENGRAM_DATA_DIR"])) for kind in kinds]
    for server in servers:
        atexit.register(server.stop)
        _start(server)  # may die as early as that, too: then it is looked after like one that died later
    while True:
        look_after(servers=servers)
        time.sleep(_LOOK_SECONDS)


def look_after(*, servers: Sequence[EmbeddedServer]) -> None:
    """Start again each server that does not answer; one that cannot be started is tried again next time."""
    for server in servers:
        if server.answers():
            continue
        _say(f"{server.title} does not answer.")
        if _start(server):
            _say(f"{server.title} answers again.")


def _start(server: EmbeddedServer) -> bool:
    try:
        server.start()
    except (EmbeddedServiceError, OSError) as error:
        _say(str(error))
        return False
    return True


def _say(event: str) -> None:
    """Write a line as the other processes do, though without their settings: this one must need little to live."""
    sys.stderr.write(json.dumps({"event": event, "level": "error"}) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
