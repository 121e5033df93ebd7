import os
import signal
import threading
import time
from pathlib import Path

import psycopg
import pytest

from beliefsite import embedded
from beliefsite.embedded import DataVersionError, EmbeddedPostgres, database_settings
from beliefsite.embedded_server import EmbeddedServiceError, FolderError, ServerStartError
from tests.beliefsite.embedded.conftest import connect, is_running, kill_server
from tests.beliefsite.embedded.users import UserProcess


def remember(folder: Path, word: str) -> None:
    with connect(folder) as connection:
        connection.execute("CREATE TABLE words (word text)")
        connection.execute("INSERT INTO words VALUES (%s)", [word])


def remembered(folder: Path) -> str:
    with connect(folder) as connection:
        row = connection.execute("SELECT word FROM words").fetchone()
    assert row is not None
    return str(row[0])


def test_the_first_start_makes_the_application_s_database_able_to_hold_vectors(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)

    server.start()

    with connect(data_dir) as connection:
        connection.execute("CREATE EXTENSION vector")
        row = connection.execute("SELECT '[3,4]'::vector <-> '[0,0]'::vector").fetchone()
    assert row == (5.0,)
    assert server.stop()


def test_what_was_committed_is_there_after_a_restart(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()
    remember(filled_dir, "lighthouse")
    server.stop()

    server.start()

    assert remembered(filled_dir) == "lighthouse"
    server.stop()


def test_a_stopped_server_leaves_no_process(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()
    pid = server.facts().pid

    assert server.stop()

    assert not is_running(pid)
    assert not server.answers()


def test_a_killed_server_comes_back_with_its_data(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()
    remember(filled_dir, "harbour")
    killed = kill_server(server)

    server.start()

    assert server.facts().pid != killed
    assert remembered(filled_dir) == "harbour"
    server.stop()


def test_a_pid_file_whose_number_now_belongs_to_a_stranger_is_no_server(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()
    killed = kill_server(server)
    for left in (server.layout.data / "postmaster.pid", Path(f"{server.layout.socket}.lock")):
        left.write_text(left.read_text().replace(str(killed), str(os.getpid()), 1))

    server.start()

    assert server.facts().pid not in (killed, os.getpid())
    assert server.stop()


def test_no_server_starts_while_a_session_of_the_killed_one_lives(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()
    with connect(filled_dir) as connection:
        session = connection.info.backend_pid
        os.kill(session, signal.SIGSTOP)
        kill_server(server)
        starting = threading.Thread(target=server.start)
        starting.start()
        time.sleep(0.4)
        assert starting.is_alive()
        assert not server.answers()

        os.kill(session, signal.SIGCONT)
        starting.join(timeout=30)

    assert server.answers()
    assert not is_running(session)
    server.stop()


def test_an_initdb_cut_short_is_done_again(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    unfinished = server.layout.folder / "data.unfinished"
    with UserProcess(data_dir, database=True) as starter:
        while not (unfinished / "PG_VERSION").exists():
            time.sleep(0.005)
        starter.kill()
    assert not server.layout.data.exists()

    server.start()

    assert server.answers()
    assert not unfinished.exists()
    server.stop()


def test_data_of_another_major_version_are_refused_and_left_alone(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    server.layout.data.mkdir(parents=True)
    (server.layout.data / "PG_VERSION").write_text("17\n")

    with pytest.raises(DataVersionError, match=r"made by PostgreSQL 17, but this is 18\. To move over: run"):
        server.start()

    assert [path.name for path in server.layout.data.iterdir()] == ["PG_VERSION"]


def test_a_data_folder_that_holds_something_else_is_refused_and_left_alone(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    server.layout.data.mkdir(parents=True)
    (server.layout.data / "letters.txt").write_text("Dear Ada")

    with pytest.raises(FolderError, match="holds no database"):
        server.start()

    assert (server.layout.data / "letters.txt").read_text() == "Dear Ada"


def test_a_server_that_cannot_start_is_reported_with_the_end_of_its_log(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()
    server.stop()
    (server.layout.data / "postgresql.auto.conf").write_text("no_such_setting = 7\n")

    with pytest.raises(ServerStartError, match=r"(?s)ended while it was starting.*no_such_setting"):
        server.start()


def test_an_initdb_that_fails_is_reported_with_its_words(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "POSTGRES_USER", "pg_reserved")

    with pytest.raises(ServerStartError, match=r"(?s)initdb failed.*superuser name \"pg_reserved\" is disallowed"):
        EmbeddedPostgres(data_dir).start()

    assert not EmbeddedPostgres(data_dir).layout.data.exists()


def test_a_path_that_no_socket_can_have_is_no_hindrance(tmp_path: Path) -> None:
    folder = tmp_path / ('it\'s "a" $HOME, 100% #x? Überraschung ' + "x" * 120)
    server = EmbeddedPostgres(folder)
    try:
        server.start()
        remember(folder, "attic")
        assert remembered(folder) == "attic"
        sockets = Path(database_settings(folder)["HOST"])
        assert (server.layout.folder / "sockets-are-in").read_text() == f"{sockets}\n"
    finally:
        server.stop()
    assert not sockets.exists()


def test_a_socket_folder_that_somebody_else_prepared_is_refused(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / ("x" * 120))
    server.layout.sockets.mkdir(mode=0o755)
    try:
        with pytest.raises(FolderError, match="not a private folder of ours"):
            server.start()
    finally:
        server.layout.sockets.rmdir()
    assert not server.answers()


def test_a_server_whose_connections_are_all_taken_still_answers(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()
    server.stop()
    (server.layout.data / "postgresql.auto.conf").write_text(
        "max_connections = 4\nsuperuser_reserved_connections = 0\nreserved_connections = 0\nmax_wal_senders = 0\n"
    )
    server.start()
    taken = [connect(filled_dir) for _ in range(4)]
    try:
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            connect(filled_dir)
        assert server.answers()
        with pytest.raises(EmbeddedServiceError, match="refuses a connection"):
            server.facts()
    finally:
        for connection in taken:
            connection.close()
        server.stop()


def test_nothing_listens_on_tcp(filled_dir: Path) -> None:
    server = EmbeddedPostgres(filled_dir)
    server.start()

    with connect(filled_dir) as connection:
        row = connection.execute("SHOW listen_addresses").fetchone()

    assert row == ("",)
    assert server.layout.sockets.stat().st_mode & 0o077 == 0
    server.stop()
