"""The process that looks after the embedded servers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from beliefsite.embedded import EmbeddedBroker
from tests.faults.waiting import wait_until


def test_a_killed_broker_is_started_again_and_the_last_user_stops_it(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    command = [sys.executable, "-m", "beliefsite.embedded", "--broker"]
    environment = os.environ | {"ENGRAM_DATA_DIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stderr=subprocess.PIPE) as keeper:
        wait_until(broker.answers, what="a broker")
        first = broker.facts().pid

        os.kill(first, signal.SIGKILL)
        wait_until(lambda: broker.answers() and broker.facts().pid != first, what="another broker")

        keeper.terminate()
        _, said = keeper.communicate(timeout=30)

    assert keeper.returncode == 0
    # It answers before its keeper, which looks every now and then, has seen that it does.
    told = json.loads(said.splitlines()[0])
    assert told["event"].startswith(("The broker does not answer.", "The broker ended while it was starting."))
    assert told["level"] == "error"
    assert not broker.answers()
