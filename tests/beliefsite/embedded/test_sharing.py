"""What several processes may rely on when they use the same servers, and what one may when it uses others."""

import signal
from contextlib import ExitStack
from pathlib import Path

from beliefsite import embedded_server
from beliefsite.embedded import EmbeddedBroker, EmbeddedPostgres
from tests.beliefsite.embedded.conftest import is_running, kill_server, wait_until
from tests.beliefsite.embedded.users import UserProcess


def test_the_servers_of_a_killed_starter_live_on_and_are_adopted(filled_dir: Path) -> None:
    with UserProcess(filled_dir, database=True, broker=True) as starter:
        started = starter.pids()
        starter.kill()

    with UserProcess(filled_dir, database=True, broker=True) as adopter:
        assert adopter.pids() == started
        assert adopter.end() == 0
    assert not any(map(is_running, started.values()))


def test_the_last_process_out_stops_the_servers(filled_dir: Path) -> None:
    with (
        UserProcess(filled_dir, database=True, broker=True) as first,
        UserProcess(filled_dir, database=True, broker=True) as second,
    ):
        pids = first.pids()
        assert second.pids() == pids
        first.end()
        assert all(map(is_running, pids.values()))

        second.end()

    assert not any(map(is_running, pids.values()))


def test_a_killed_user_does_not_keep_the_servers_running(data_dir: Path) -> None:
    with UserProcess(data_dir, broker=True) as first, UserProcess(data_dir, broker=True) as second:
        pids = first.pids()
        second.pids()
        second.kill()

        first.end()

    assert not is_running(pids["Valkey"])


def test_six_racing_starters_get_one_server(data_dir: Path) -> None:
    with ExitStack() as stack:
        racers = [stack.enter_context(UserProcess(data_dir, database=True, broker=True)) for _ in range(6)]
        pids = [racer.pids() for racer in racers]
        for racer in racers:
            assert racer.end() == 0

    assert all(one == pids[0] for one in pids)
    assert not any(map(is_running, pids[0].values()))


# A process of a test stays until it is told to leave, however slow the machine is, but not for more than a minute.
STAY = "for _ in range(1200): Path(sys.argv[1], 'leave').exists() or time.sleep(0.05)"


def leave(data_dir: Path) -> None:
    """Let a process that stays go on."""
    (data_dir / "leave").touch()


def test_two_checkouts_leave_each_other_alone(data_dir: Path, tmp_path: Path) -> None:
    mine, other = EmbeddedBroker(data_dir), EmbeddedBroker(tmp_path / "other" / ".data")
    mine.start()
    other.start()
    pid = other.facts().pid

    kill_server(mine)
    mine.start()
    mine.stop()

    assert other.facts().pid == pid
    other.stop()


def test_a_fork_s_end_stops_nothing(data_dir: Path) -> None:
    fork = "import os\nif not (child := os.fork()): sys.exit()\nassert os.waitpid(child, 0)[1] == 0"
    with UserProcess(data_dir, broker=True, after=fork) as user:
        pids = user.pids()

        assert is_running(pids["Valkey"])

        assert user.end() == 0
    assert not is_running(pids["Valkey"])


def test_a_server_lives_as_long_as_a_fork_that_outlives_its_parent(data_dir: Path) -> None:
    fork = f"""
import os, time
if not os.fork():
    os.close(0), os.close(1), os.close(2)
    {STAY}
    os._exit(0)
"""
    with UserProcess(data_dir, broker=True, after=fork) as user:
        pids = user.pids()
        assert user.end() == 0
    server = EmbeddedBroker(data_dir)
    server.start()
    assert not server.stop()

    leave(data_dir)
    wait_until(lambda: stopped(server))

    assert not is_running(pids["Valkey"])


def stopped(server: EmbeddedBroker) -> bool:
    """Use the server for a moment; return whether nobody else did."""
    server.start()
    return server.stop()


def test_a_fork_that_ensures_its_servers_stops_them_when_it_is_the_last(data_dir: Path) -> None:
    fork = f"""
import os, time
if not os.fork():
    ensure(data_dir=Path(sys.argv[1]), database=False, broker=True)
    os.close(0), os.close(1), os.close(2)
    {STAY}
    sys.exit()
"""
    with UserProcess(data_dir, broker=True, after=fork) as user:
        pids = user.pids()
        assert user.end() == 0
    assert is_running(pids["Valkey"])

    leave(data_dir)
    wait_until(lambda: not is_running(pids["Valkey"]))


def test_a_program_that_ends_on_sigterm_releases_its_servers(filled_dir: Path) -> None:
    before = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(3))"
    with UserProcess(filled_dir, database=True, broker=True, before=before) as user:
        pids = user.pids()

        user.process.send_signal(signal.SIGTERM)

        assert user.end() == 3
    assert not any(map(is_running, pids.values()))


def test_an_interrupt_while_the_servers_start_leaves_none_behind(filled_dir: Path) -> None:
    before = """
import beliefsite.embedded_server as server
server.EmbeddedServer._await_start = lambda self: signal.raise_signal(signal.SIGINT)
"""
    with UserProcess(filled_dir, database=True, before=f"import signal{before}") as user:
        assert user.end() != 0

    lock = embedded_server.try_lock(EmbeddedPostgres(filled_dir).layout.server_lock)
    assert lock is not None
    lock.close()


def test_ensuring_again_restarts_what_died_and_only_that(filled_dir: Path) -> None:
    again = """
import os, signal
before = {facts.name: facts.pid for facts in describe()}
os.kill(before["Valkey"], signal.SIGKILL)
ensure(data_dir=Path(sys.argv[1]), database=True, broker=True)
after = {facts.name: facts.pid for facts in describe()}
assert after["PostgreSQL"] == before["PostgreSQL"]
assert after["Valkey"] != before["Valkey"]
"""
    with UserProcess(filled_dir, database=True, broker=True, after=again) as user:
        pids = user.pids()
        assert user.end() == 0
    assert not any(map(is_running, pids.values()))


def test_only_what_is_wanted_is_started(data_dir: Path) -> None:
    with UserProcess(data_dir, broker=True) as user:
        assert list(user.pids()) == ["Valkey"]
        assert not EmbeddedPostgres(data_dir).layout.folder.exists()
        user.end()
