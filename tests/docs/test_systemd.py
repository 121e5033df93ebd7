"""The units of docs/systemd are what systemd takes, and run what the Procfile runs."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from honcho.environ import parse_procfile

from tests.docs.pages import ROOT

UNITS = ROOT / "docs" / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))
_DEFAULT = re.compile(r"\$\{(\w+):-(\w+)\}")


def _read(path: Path) -> configparser.RawConfigParser:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names of systemd have capitals
    unit.read(path)
    return unit


def test_there_is_a_unit_for_each_process() -> None:
    processes = parse_procfile((ROOT / "Procfile").read_text()).processes
    assert {path.stem.removeprefix("engram-") for path in SERVICES} == set(processes)


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_a_unit_runs_what_the_procfile_runs(path: Path) -> None:
    """With the same defaults, which a unit sets where it names the variable."""
    line = parse_procfile((ROOT / "Procfile").read_text()).processes[path.stem.removeprefix("engram-")]
    unit = _read(path)["Service"]
    command = _DEFAULT.sub(r"${\1}", line)
    assert unit["ExecStart"] == f"{unit['WorkingDirectory']}/{command}"
    for name, default in _DEFAULT.findall(line):
        assert f"Environment={name}={default}" in path.read_text()


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_a_unit_is_started_again_whenever_it_dies(path: Path) -> None:
    unit = _read(path)
    assert unit["Service"]["Restart"] == "always"
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"


def test_a_worker_has_longer_to_end_than_its_soft_shutdown_takes() -> None:
    from django.conf import settings

    unit = _read(UNITS / "engram-worker.service")["Service"]
    assert int(unit["TimeoutStopSec"]) > settings.CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT
    assert "REMAP_SIGTERM=SIGQUIT" in (UNITS / "engram-worker.service").read_text()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="this machine has no systemd")
def test_systemd_finds_nothing_wrong_with_them(tmp_path: Path) -> None:
    """Rendered for this checkout, so that the programs are looked for, too."""
    for path in (*SERVICES, UNITS / "engram.target"):
        (tmp_path / path.name).write_text(path.read_text().replace("/srv/engram", str(ROOT)))
    found = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    ours = [line for line in found.stderr.splitlines() if "engram" in line]
    assert (found.returncode, ours) == (0, [])
