import importlib.util
import time
from pathlib import Path

import pytest
from kombu import Connection

from beliefsite import embedded
from beliefsite.embedded import EmbeddedBroker, broker_url
from beliefsite.embedded_server import BinariesMissingError
from tests.beliefsite.embedded.conftest import broker_client, is_running, kill_server
from tests.beliefsite.embedded.users import UserProcess


def test_celery_s_transport_reaches_the_broker_by_its_url(data_dir: Path) -> None:
    server = EmbeddedBroker(data_dir)
    server.start()

    with Connection(broker_url(data_dir)) as connection, connection.SimpleQueue("letters") as queue:
        queue.put({"id": 7})
        message = queue.get(timeout=5)
        message.ack()

    assert message.payload == {"id": 7}
    server.stop()


def test_a_path_that_no_url_can_carry_is_no_hindrance(tmp_path: Path) -> None:
    folder = tmp_path / ("100% of, 'x' " + "y" * 110)
    server = EmbeddedBroker(folder)
    server.start()
    try:
        with Connection(broker_url(folder)) as connection:
            connection.ensure_connection(max_retries=1, timeout=5)
            assert connection.connected
    finally:
        server.stop()


def test_a_stopped_broker_keeps_its_data_and_leaves_no_process(data_dir: Path) -> None:
    server = EmbeddedBroker(data_dir)
    server.start()
    pid = server.facts().pid
    with broker_client(data_dir) as client:
        client.rpush("queue", "a", "b")

    assert server.stop()

    assert not is_running(pid)
    server.start()
    with broker_client(data_dir) as client:
        assert client.lrange("queue", 0, -1) == ["a", "b"]
    server.stop()


def test_a_killed_broker_comes_back_with_its_data(data_dir: Path) -> None:
    server = EmbeddedBroker(data_dir)
    server.start()
    with broker_client(data_dir) as client:
        client.rpush("queue", "a", "b")
    time.sleep(1.2)  # it writes its file through once a second
    killed = kill_server(server)

    server.start()

    assert server.facts().pid != killed
    with broker_client(data_dir) as client:
        assert client.lrange("queue", 0, -1) == ["a", "b"]
    server.stop()


def test_a_second_start_does_not_steal_the_socket(data_dir: Path) -> None:
    server = EmbeddedBroker(data_dir)
    server.start()
    pid, socket = server.facts().pid, server.layout.socket.stat().st_ino

    with UserProcess(data_dir, broker=True) as other:
        assert other.pids() == {"Valkey": pid}
        assert other.end() == 0

    assert server.layout.socket.stat().st_ino == socket
    assert server.facts().pid == pid
    server.stop()


def test_a_full_broker_refuses_instead_of_forgetting(data_dir: Path) -> None:
    server = EmbeddedBroker(data_dir)
    server.start()

    with broker_client(data_dir) as client:
        settings = client.config_get("maxmemory-policy", "appendonly", "appendfsync", "port", "unixsocketperm")

    assert settings == {
        "maxmemory-policy": "noeviction",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "port": "0",
        "unixsocketperm": "700",
    }
    server.stop()


def test_a_server_on_the_path_stands_in_where_no_wheel_fits(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "redis-server").symlink_to(embedded._broker_program())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    server = EmbeddedBroker(data_dir)

    server.start()

    assert server.answers()
    server.stop()


def test_where_there_is_no_server_the_error_says_what_to_install(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(BinariesMissingError, match="install one, or set REDIS_URL"):
        EmbeddedBroker(data_dir).start()
