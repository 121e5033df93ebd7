"""System checks name the setting that is wrong; .env.example shows the settings that people look for."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage
from django.db import connection, connections

from beliefsite import environment
from memory import checks
from memory.domain.policy import iter_settings, parse_setting
from memory.environment import GROUPS, iter_variables, known_variables, render_example

ROOT = Path(__file__).resolve().parent.parent
SECRET = "sKJ1_8dh2-Lw0aPqZx7TnVb3mRc9YfGu4EoHi5tQk6NjUyWrD" * 2


def ids(messages: list[CheckMessage]) -> list[str | None]:
    return [message.id for message in messages]


def test_a_suite_of_sound_settings_is_silent(settings: Any) -> None:
    settings.SECRET_KEY = SECRET
    assert ids([*checks.check_models(), *checks.check_secret_key()]) == []


@pytest.mark.parametrize(("name", "number"), [("ENGRAM_LLM", "engram.E001"), ("ENGRAM_EMBEDDINGS", "engram.E002")])
def test_an_unknown_kind_of_model_is_named(name: str, number: str, settings: Any) -> None:
    setattr(settings, name, "opnai")
    [message] = checks.check_models()
    assert message.id == number
    assert message.msg == f"{name} is 'opnai'."


@pytest.mark.parametrize(("name", "number"), [("ENGRAM_LLM", "engram.E003"), ("ENGRAM_EMBEDDINGS", "engram.E004")])
def test_a_remote_model_needs_a_key_or_a_server(name: str, number: str, settings: Any) -> None:
    setattr(settings, name, "openai")
    assert ids(checks.check_models()) == [number]


@pytest.mark.parametrize(
    "given", [{"OPENAI_API_KEY": "k"}, {"OPENAI_BASE_URL": "http://x", "ENGRAM_EMBEDDING_BASE_URL": "http://x"}]
)
def test_a_key_or_a_server_is_enough(given: dict[str, str], settings: Any) -> None:
    for name, value in {"ENGRAM_LLM": "openai", "ENGRAM_EMBEDDINGS": "openai", **given}.items():
        setattr(settings, name, value)
    assert checks.check_models() == []


@pytest.mark.parametrize("key", ["short", "a" * 80, "django-insecure-" + SECRET])
def test_a_key_that_can_be_guessed_is_warned_of(key: str, settings: Any) -> None:
    settings.SECRET_KEY = key
    assert ids(checks.check_secret_key()) == ["engram.W001"]


def test_while_debugging_any_key_will_do(settings: Any) -> None:
    settings.DEBUG, settings.SECRET_KEY = True, "short"
    assert checks.check_secret_key() == []


def test_a_misspelt_variable_is_answered_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """B24: else a number that somebody set would silently keep its default."""
    monkeypatch.setenv("ENGRAM_CONSOLIDATION_CLUSTER_SIMILARTY", "0.8")
    [message] = checks.check_environment()
    assert "ENGRAM_CONSOLIDATION_CLUSTER_SIMILARTY" in message.msg
    assert message.hint == "Did you mean ENGRAM_CONSOLIDATION_CLUSTER_SIMILARITY?"


def test_a_variable_like_none_is_answered_with_where_all_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """B24: .env.example shows but those that people look for."""
    monkeypatch.setenv("ENGRAM_0123456789_0123456789", "1")
    [message] = checks.check_environment()
    assert message.hint == "docs/settings.md lists every variable."


def test_known_variables_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in known_variables():
        monkeypatch.setenv(name, "1")
    assert checks.check_environment() == []


def test_what_the_client_s_plugin_reads_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell that starts a client may start the server, too."""
    sources = [path for path in (ROOT / "integrations").rglob("*") if path.suffix in {".py", ".json"}]
    read = {name for path in sources for name in re.findall(r"\bENGRAM_[A-Z_]+\b", path.read_text())}
    for name in read:
        monkeypatch.setenv(name, "1")
    assert "ENGRAM_PROJECT_FROM_FOLDER" in read
    assert checks.check_environment() == []


def test_a_former_name_is_warned_of_with_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """B24: it is still read, and somebody may wonder why the documentation does not name it."""
    monkeypatch.setenv("ENGRAM_RIVALS_BATCH", "10")
    [message] = checks.check_environment()
    assert message.id == "engram.W004"
    assert message.msg == "ENGRAM_RIVALS_BATCH is now called ENGRAM_CONTRADICTION_BATCH."


def decree(settings: Any, stage: str, **numbers: float) -> None:
    """Change numbers of one stage of the policy."""
    settings.POLICY = replace(settings.POLICY, **{stage: replace(getattr(settings.POLICY, stage), **numbers)})


def test_the_usual_limits_pass() -> None:
    """E6, B9."""
    assert checks.check_limits() == checks.check_answer() == []


def test_a_call_longer_than_what_it_is_made_for_is_refused(settings: Any) -> None:
    """E6, B9: with both settings and how to mend it; the recipe of docs/operations/models.md does."""
    settings.CELERY_VISIBILITY_TIMEOUT = 350  # what is derived where nobody sets it
    decree(settings, "budget", call_seconds=60.0)
    found = checks.check_limits()
    assert ids(found) == ["engram.E010", "engram.E010"]
    assert found[1].msg == (
        "ENGRAM_EXTRACTION_SECONDS is 45, and ENGRAM_BUDGET_CALL_SECONDS is 60:"
        " the reading of turns would never have the time for one."
    )
    assert found[1].hint == "Set ENGRAM_EXTRACTION_SECONDS to more than 61, or lower ENGRAM_BUDGET_CALL_SECONDS."
    decree(settings, "budget", attempt_seconds=130.0)
    decree(settings, "extraction", seconds=130.0)
    assert checks.check_limits() == []
    assert ids(checks.check_answer()) == ["engram.W003"]


def test_a_message_that_comes_again_too_early_is_refused(settings: Any) -> None:
    """E6, B9: its task would run twice at once."""
    settings.CELERY_VISIBILITY_TIMEOUT = 130
    [message] = checks.check_limits()
    assert message.id == "engram.E011"
    assert "ENGRAM_VISIBILITY_TIMEOUT is 130, and a task may take 130 s" in message.msg
    assert "ENGRAM_EXTRACTION_SECONDS" in message.msg
    assert message.hint is not None
    assert "set it to 180" in message.hint
    settings.CELERY_VISIBILITY_TIMEOUT = 131
    assert checks.check_limits() == []


def test_an_answer_that_no_call_fits_into_is_told(settings: Any) -> None:
    """E6, R1: as a slow model is meant to be used; a warning before a deployment, no error."""
    decree(settings, "remember", answer_seconds=11.0)
    assert checks.check_limits() == []
    [message] = checks.check_answer()
    assert message.id == "engram.W003"
    assert "ENGRAM_REMEMBER_ANSWER_SECONDS is 11, and ENGRAM_BUDGET_CALL_SECONDS is 10" in message.msg


@pytest.mark.django_db
def test_a_sound_database_passes() -> None:
    assert checks.check_database(databases=["default"]) == []


@pytest.mark.django_db
def test_a_column_of_another_size_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memory_beliefembedding ALTER COLUMN vector TYPE halfvec(512)")
    [message] = checks.check_database(databases=["default"])
    assert message.id == "engram.E007"
    assert message.msg == "memory_beliefembedding.vector has 512 dimensions instead of 768."


@pytest.mark.django_db
def test_a_server_without_pgvector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every server of the suite has it, so the question is put to a catalogue without."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY VIEW pg_available_extensions AS SELECT 'hstore' AS name")
        cursor.execute("SET LOCAL search_path = pg_temp, pg_catalog, public")
    assert ids(checks.check_database(databases=["default"])) == ["engram.E006"]


@pytest.fixture
def nowhere() -> Iterator[str]:
    """Return the alias of a database that does not exist."""
    away = connections["default"].settings_dict | {"HOST": "127.0.0.1", "PORT": "1", "OPTIONS": {"connect_timeout": 1}}
    connections.databases["nowhere"] = away
    yield "nowhere"
    connections["nowhere"].close()
    del connections["nowhere"]
    del connections.databases["nowhere"]


@pytest.mark.django_db(databases=["default"])
def test_a_database_that_does_not_answer_is_named(nowhere: str, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        [message] = checks.check_database(databases=[nowhere])
    assert message.id == "engram.E005"
    assert "DATABASE_URL" in (message.hint or "")


def test_a_deployment_is_clean() -> None:
    """`manage.py check --deploy` with DEBUG off, HTTPS on and a good key has nothing to say."""
    environment = os.environ | {"DEBUG": "0", "ENGRAM_HTTPS": "1", "SECRET_KEY": SECRET}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_the_example_is_what_the_project_would_write() -> None:
    """B24: none of it stale; tests/docs/test_settings.py holds the page of all settings."""
    assert (ROOT / ".env.example").read_text() == render_example()


def test_every_variable_has_one_line_that_describes_it() -> None:
    lines = render_example().splitlines()
    described = {
        line[1:].partition("=")[0]: before
        for before, line in pairwise(lines)
        if "=" in line and not line.startswith("# ")
    }
    assert set(described) == {variable.name for _, shown in GROUPS for variable in shown}
    assert set(described) < known_variables()
    assert all(re.match(r"# \S", line) for line in described.values())


def test_every_number_of_the_example_parses() -> None:
    """B24: uncommenting a line changes nothing."""
    shown = dict(re.findall(r"^#(ENGRAM_\w+)=(.*)$", render_example(), re.MULTILINE))
    for setting in [setting for setting in iter_settings() if setting.name in shown]:
        assert parse_setting(setting=setting, text=shown[setting.name]) == setting.default


def test_every_variable_that_is_read_is_listed_and_none_besides() -> None:
    read = set(_names_read_by_settings()) | set(_names_read_by_commands())
    assert read == {variable.name for variable in iter_variables()}


def _names_read_by_settings() -> Iterator[str]:
    """Find each read_text("NAME", …) and read_flag("NAME", …) of the settings, and of what they ask about logs."""
    sources = [ast.parse((ROOT / "beliefsite" / name).read_text()) for name in ("settings.py", "observability.py")]
    for node in (node for source in sources for node in ast.walk(source)):
        match node:
            case ast.Call(func=ast.Name(id=reader), args=[ast.Constant(value=str(name)), *_]):
                if reader.startswith("read_") and hasattr(environment, reader):
                    yield name


def _names_read_by_commands() -> Iterator[str]:
    """Find each ${NAME:-default} of the Procfile and each variable that decides how the fault suite runs."""
    yield from re.findall(r"\$\{([A-Z_]+)", (ROOT / "Procfile").read_text())
    yield from re.findall(
        r'os\.environ\.get\("(ENGRAM_[A-Z_]+)"', (ROOT / "tests" / "faults" / "conftest.py").read_text()
    )
