"""Settings: a value that does not parse is named, and never taken for another."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from beliefsite.environment import read_choice, read_count, read_flag, read_list, read_prices, read_text
from workers.management.commands import up


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


@pytest.mark.parametrize(("value", "text"), [("$HOME", "$HOME"), (" a ", "a"), ("", "usual"), (" ", "usual")])
def test_a_text_is_taken_as_it_stands(monkeypatch: pytest.MonkeyPatch, value: str, text: str) -> None:
    """A secret may begin with any character; only an empty one counts as unset."""
    monkeypatch.setenv("TEXT", value)
    assert read_text("TEXT", default="usual") == text


@pytest.mark.parametrize(("value", "names"), [("a, b,", ["a", "b"]), ("$a", ["$a"]), ("", ["usual"]), (",", ["usual"])])
def test_a_list_is_read(monkeypatch: pytest.MonkeyPatch, value: str, names: list[str]) -> None:
    monkeypatch.setenv("LIST", value)
    assert read_list("LIST", default=["usual"]) == names


@pytest.mark.parametrize(
    ("value", "prices"), [('{"m": [0, 1.6]}', {"m": [0, 1.6]}), ("{}", {}), ("", {"usual": [1.0, 2.0]})]
)
def test_prices_are_read(monkeypatch: pytest.MonkeyPatch, value: str, prices: dict[str, list[float]]) -> None:
    monkeypatch.setenv("PRICES", value)
    assert read_prices("PRICES", default={"usual": [1.0, 2.0]}) == prices


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{", "PRICES must be JSON: "),
        ("[1, 2]", "PRICES must be an object of models, such as "),
        ('{"m": 1}', "PRICES: 'm' needs two prices of at least 0, in and out, such as .*, not 1$"),
        ('{"m": [1]}', "PRICES: 'm' needs two prices"),
        ('{"m": [1, -0.1]}', "PRICES: 'm' needs two prices"),
        ('{"m": [1, "2"]}', "PRICES: 'm' needs two prices"),
        ('{"m": [1, true]}', "PRICES: 'm' needs two prices"),
        ('{"m": [1, NaN]}', "PRICES: 'm' needs two prices"),
        ('{"m": [1, 1e999]}', "PRICES: 'm' needs two prices"),
    ],
)
def test_what_is_no_price_is_named(monkeypatch: pytest.MonkeyPatch, value: str, told: str) -> None:
    monkeypatch.setenv("PRICES", value)
    with pytest.raises(ImproperlyConfigured, match=f"^{told}"):
        read_prices("PRICES", default={})


def test_an_empty_port_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "_check_free", lambda name, port: None)
    monkeypatch.setenv("PORT", "")
    monkeypatch.setenv("MCP_PORT", "9001")
    assert up._read_ports() == {"PORT": "8000", "FLOWER_PORT": "5555", "MCP_PORT": "9001"}


def test_settings_take_secrets_as_they_stand_and_empty_ones_as_unset(tmp_path: Path) -> None:
    """A name after a dollar sign is no other variable; `NAME=` in .env changes nothing."""
    given = {"SECRET_KEY": "$HOME-and-more", "OPENAI_API_KEY": "$PATH", "ENGRAM_API_KEY": "$SECRET_KEY"}
    names = ("ENGRAM_LLM", "ENGRAM_VERDICTS", "ENGRAM_SYNTHESIS_MODEL", "ENGRAM_PRICES", "ENGRAM_RECALL_LIMIT", "DEBUG")
    own = {"ENGRAM_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "beliefsite.settings"}
    shown = "import json; from django.conf import settings as s; print(json.dumps([s.SECRET_KEY, s.OPENAI_API_KEY,"
    shown += " s.ENGRAM_API_KEY, s.ENGRAM_LLM, s.ENGRAM_VERDICTS, s.ENGRAM_SYNTHESIS_MODEL, s.POLICY.recall.limit]))"
    environment = os.environ | own | given | dict.fromkeys(names, "")
    command = [sys.executable, "-c", shown]
    said = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(said) == [*given.values(), "openai", "llm", "gpt-4.1-mini", 10]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "perhaps"),
        ("ENGRAM_LOG_LEVEL", "LOUD"),
        ("ENGRAM_RECALL_LIMIT", "abc"),
        ("ENGRAM_PRICES", "{"),
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
