"""Settings: a value that does not parse is named, and never taken for another."""

import subprocess
import sys

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from beliefsite.environment import read_choice, read_count, read_flag


@pytest.mark.parametrize(("value", "flag"), [("1", True), ("Yes", True), ("off", False), ("", True), (" ", True)])
def test_a_flag_is_read(monkeypatch: pytest.MonkeyPatch, value: str, flag: bool) -> None:
    monkeypatch.setenv("FLAG", value)
    assert read_flag("FLAG", default=True) is flag


@pytest.mark.parametrize("value", ["perhaps", "2", "-1"])
def test_what_is_no_flag_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FLAG", value)
    with pytest.raises(ImproperlyConfigured, match=f"FLAG must be 1 or 0, not '{value}'"):
        read_flag("FLAG", default=True)


@pytest.mark.parametrize("value", ["abc", "-1", "1.5", "٣", "0", "9"])
def test_what_is_no_count_within_bounds_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("COUNT", value)
    with pytest.raises(ImproperlyConfigured, match="COUNT must be a whole number from 1 to 8"):
        read_count("COUNT", default=4, least=1, most=8)


def test_a_count_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_count("COUNT", default=4) == 4
    monkeypatch.setenv("COUNT", "7")
    assert read_count("COUNT", default=4) == 7


def test_what_is_no_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHOICE", "pink")
    with pytest.raises(ImproperlyConfigured, match="CHOICE must be one of red, blue, not 'pink'"):
        read_choice("CHOICE", default="red", choices=("red", "blue"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "perhaps"),
        ("ENGRAM_LOG_LEVEL", "LOUD"),
        ("ENGRAM_RECALL_LIMIT", "abc"),
        ("ENGRAM_REDACTION_PATTERNS", "{"),
        ("ENGRAM_REDACTION_PATTERNS", '{"badge": "("}'),
    ],
)
def test_a_command_ends_with_the_name_of_the_wrong_one(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Engram: {name}")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"PORT": "abc"}, "PORT must be a whole number from 1 to 65535, not 'abc'"),
        ({"PORT": "5999", "FLOWER_PORT": "5999"}, "PORT and FLOWER_PORT are both 5999"),
        ({"ENGRAM_WORKERS": "abc"}, "ENGRAM_WORKERS must be a whole number"),
    ],
)
def test_the_stack_is_not_started_with_what_its_processes_would_refuse(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], told: str
) -> None:
    from django.core.management import CommandError, call_command

    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("workers.management.commands.up.running_stack", lambda **_: None)
    with pytest.raises((CommandError, ImproperlyConfigured), match=told):
        call_command("up")
