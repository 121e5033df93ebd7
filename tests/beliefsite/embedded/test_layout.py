import re
import subprocess
import sys
from pathlib import Path

import pytest

from beliefsite.embedded import EmbeddedBroker, EmbeddedPostgres, broker_url, database_settings
from tests.beliefsite.embedded.users import ROOT


def test_computing_where_the_servers_are_makes_nothing(tmp_path: Path) -> None:
    settings, url = database_settings(tmp_path / ".data"), broker_url(tmp_path / ".data")

    assert list(tmp_path.iterdir()) == []
    assert settings == {
        "HOST": str(EmbeddedPostgres(tmp_path / ".data").layout.sockets),
        "PORT": "5432",
        "USER": "engram",
        "NAME": "engram",
    }
    assert url == f"redis+socket://{EmbeddedBroker(tmp_path / '.data').layout.socket}"


def test_another_temporary_folder_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 120)
    before = database_settings(long), broker_url(long)

    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert (database_settings(long), broker_url(long)) == before


@pytest.mark.parametrize("name", ["x" * 120, "a space", "quote's", "100%", "a,b", "a#b", "a?b", "Überraschung", "~me"])
def test_sockets_are_elsewhere_where_a_path_is_long_or_would_need_quoting(tmp_path: Path, name: str) -> None:
    sockets = [server(tmp_path / name).layout.socket for server in (EmbeddedPostgres, EmbeddedBroker)]

    assert all(re.fullmatch(r"/tmp/engram-[0-9a-f]{20}/[.A-Za-z0-9]+", str(socket)) for socket in sockets)


def test_a_link_to_a_checkout_names_the_same_servers(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "checkout")

    assert database_settings(tmp_path / "link") == database_settings(tmp_path / "checkout")


def test_long_folders_do_not_share_sockets(tmp_path: Path) -> None:
    first, second = (database_settings(tmp_path / (letter * 120)) for letter in "xy")

    assert first["HOST"] != second["HOST"]


def test_importing_loads_no_driver() -> None:
    script = "import sys, beliefsite.embedded; print(*{'psycopg', 'redis', 'psutil'} & set(sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert loaded.stdout == "\n"
