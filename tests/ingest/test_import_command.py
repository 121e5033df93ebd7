"""import_episodes."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.ingest import json_lines
from memory.language.sentences import split_text
from memory.models import Cycle, Episode, Workspace
from tests import factories
from tests.consolidation.inline import run_steps, run_to_end
from tests.ingest.history import write_history, write_lines

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace(name="acme")


def run(file: Path, *options: str, workspace: str = "acme") -> tuple[int, str, str]:
    """Run the command; return its exit status and what it printed."""
    out, err = StringIO(), StringIO()
    try:
        call_command("import_episodes", str(file), "--workspace", workspace, *options, stdout=out, stderr=err)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def report(file: Path, *options: str) -> tuple[int, Any]:
    code, out, _ = run(file, "--json", *options)
    return code, json.loads(out)


def test_file_is_imported_once(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L4: importing the same file again adds nothing."""
    monkeypatch.setattr(json_lines, "BATCH", 10)
    file = write_history(tmp_path, count=25)
    common = {"forgotten": 0, "split": 0, "rejected": [], "cycles": []}
    assert report(file) == (0, {"stored": 25, "deduplicated": 0, **common})
    assert report(file) == (0, {"stored": 0, "deduplicated": 25, **common})
    assert Episode.objects.count() == 25


def test_bad_lines_are_named_and_the_good_are_kept(workspace: Workspace, tmp_path: Path) -> None:
    """Bad input: exit 1, with line number and reason; blank lines do not count."""
    file = write_lines(
        tmp_path, b'\xef\xbb\xbf{"text": "One."}', "", "{", '{"text": "", "x": 1}', b"\xff", '{"text": "Two."}'
    )
    code, out, err = run(file)
    assert code == 1
    assert out == "2 episodes stored, 0 known already, 3 refused.\n"
    assert [line.split(":")[0] for line in err.splitlines()] == ["line 3", "line 4", "line 5"]
    assert "text: The text is empty.; x: There is no such field." in err
    assert set(Episode.objects.values_list("text", flat=True)) == {"One.", "Two."}


def test_bad_lines_in_json(workspace: Workspace, tmp_path: Path) -> None:
    code, answer = report(write_lines(tmp_path, '{"text": "One.", "importance": NaN}', "[]"))
    assert code == 1
    assert [(line["line"], line["status"]) for line in answer["rejected"]] == [(1, 422), (2, 422)]
    assert answer["rejected"][0]["errors"] == {"importance": ["A number from 0 to 1 is expected."]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": ["One."]}', "text: A text is expected."),
        ('{"text": "One.", "tags": {"a": 1}}', "tags: A list is expected."),
        ('{"text": "One.", "importance": "high"}', "importance: A number is expected."),
        ('{"text": "One.", "importance": 2}', "importance: A number from 0 to 1 is expected."),
        ('{"text": "One.", "project": "a b"}', "project: One or more letters, digits, - and _ are expected."),
        ('{"text": "One.", "language": "klingon!"}', "language: A language is expected, such as en or de-AT."),
        ('{"text": "One.", "session": "' + 201 * "x" + '"}', "session: At most 200 characters are allowed."),
        ('{"text": "One."} x', "The line is not JSON; column 18: there is more after its end."),
        (b"\xff", "The line is not JSON; byte 1 is no UTF-8."),
        (100_000 * "[", "The line is not JSON; it is nested too deeply."),
        ('{"text": ' + 5000 * "9" + "}", "The line is not JSON; a number in it has too many digits."),
    ],
)
def test_reasons_speak_of_json_and_not_of_python(
    workspace: Workspace, tmp_path: Path, line: str | bytes, reason: str
) -> None:
    _, _, err = run(write_lines(tmp_path, line))
    assert err == f"line 1: {reason}\n"


def test_line_without_session_and_time_has_the_file_as_document(workspace: Workspace, tmp_path: Path) -> None:
    """Origin: a line of a file with neither session nor occurred_at has the file's name as document."""
    lines = [
        {"text": "One."},
        {"text": "Two.", "session": "s"},
        {"text": "Three.", "occurred_at": "2026-01-01T00:00:00Z"},
        {"text": "Four.", "document": "d"},
    ]
    run(write_lines(tmp_path, *map(json.dumps, lines)))
    assert dict(Episode.objects.values_list("text", "origin")) == {
        "One.": "document:history.jsonl",
        "Two.": "session:s",
        "Three.": "day:2026-01-01:interaction:",
        "Four.": "document:d",
    }


def test_project_is_of_lines_that_name_none(workspace: Workspace, tmp_path: Path) -> None:
    run(write_lines(tmp_path, '{"text": "One."}', '{"text": "Two.", "project": "own"}'), "--project", "given")
    assert dict(Episode.objects.values_list("text", "project__slug")) == {"One.": "given", "Two.": "own"}


def test_replay_runs_cycles(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clock: --replay lives through the file and names its cycles."""
    monkeypatch.setattr(json_lines, "wait_for_cycle", run_to_end)
    code, answer = report(write_history(tmp_path, count=5), "--replay")
    assert (code, answer["stored"]) == (0, 5)
    assert answer["cycles"] == [Cycle.objects.get().pk]


def test_replay_that_no_worker_serves_says_what_it_waits_for(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said once, after a while; a second look at the same cycle adds nothing."""

    def look_twice(cycle_id: str, *, on_look: Callable[[Cycle], None]) -> None:
        cycle = Cycle.objects.get(pk=cycle_id)
        for _ in range(3):
            on_look(cycle)
        run_steps(cycle=cycle)

    monkeypatch.setattr("memory.management.command_line._HINT_SECONDS", -1.0)
    monkeypatch.setattr(json_lines, "wait_for_cycle", look_twice)
    _, _, err = run(write_history(tmp_path, count=5), "--replay")
    assert err.count("No worker has taken cycle") == 1
    assert "`make up` in another terminal starts the workers." in err


def test_an_interrupted_import_keeps_what_it_has_and_says_so(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: str, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(json_lines, "wait_for_cycle", interrupt)
    code, _, err = run(write_history(tmp_path, count=5), "--replay")
    assert code == 130
    assert err == "Stopped. What was imported stays, and the same command goes on where this one stopped.\n"
    assert Episode.objects.count() == 5


@pytest.mark.parametrize("options", [("--project", "no spaces"), ("--colour", "blue")])
def test_bad_options_are_bad_usage(workspace: Workspace, tmp_path: Path, options: tuple[str, str]) -> None:
    with pytest.raises(CommandError) as error:
        run(write_history(tmp_path, count=1), *options)
    assert error.value.returncode == 2 or "unrecognized" in str(error.value)
    assert not Episode.objects.exists()


def test_missing_file_and_workspace_are_bad_usage(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file") as no_file:
        run(tmp_path / "none.jsonl")
    with pytest.raises(CommandError, match="There is no workspace 'other'") as no_workspace:
        run(write_history(tmp_path, count=1), workspace="other")
    assert (no_file.value.returncode, no_workspace.value.returncode) == (2, 2)


# --- Texts that are longer than an episode may be

LONGEST = 32 * 1024
PAGES = "\n\n".join(f"Übung {number}: " + "Das Brot ruht über Nacht 🍞. " * 40 for number in range(60))
WORD = "".join("ü" * number + "🍞" for number in range(1, 450))  # of 200 KiB


@pytest.mark.parametrize("text", [PAGES, WORD], ids=["paragraphs", "a single word"])
def test_a_long_text_becomes_episodes_of_one_document(workspace: Workspace, tmp_path: Path, text: str) -> None:
    """Bad input, B1: split, with nothing lost, and once however often it is imported."""
    line = {"text": text, "document": "notes", "speaker": "Mia", "user": "mia", "occurred_at": "2026-01-02T10:00:00Z"}
    file = write_lines(tmp_path, json.dumps(line | {"idempotency_key": "k"}), '{"text": "Short."}')
    code, answer = report(file)
    assert (code, answer["stored"], answer["split"], answer["rejected"]) == (0, 2, 1, [])
    parts = {str(row.idempotency_key): row for row in Episode.objects.filter(document="notes")}
    names = ["k", *(f"k:{number}" for number in range(2, len(parts) + 1))]
    assert len(parts) == len(split_text(text=text, longest=LONGEST)) > 1
    is_whole = "".join(parts[name].text for name in names) == text  # told apart, pytest would compare for minutes
    assert is_whole
    assert all(len(part.text.encode()) <= LONGEST for part in parts.values())
    shared = {(part.origin, part.speaker, part.user, part.occurred_at.isoformat()) for part in parts.values()}
    assert shared == {("document:notes", "Mia", "mia", "2026-01-02T10:00:00+00:00")}
    code, again = report(file)
    assert (code, again["stored"], again["deduplicated"], again["split"]) == (0, 0, 2, 1)
    assert Episode.objects.count() == len(parts) + 1


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ({}, "document:history.jsonl"),
        ({"session": "s", "occurred_at": "2026-01-02T10:00:00Z"}, "session:s"),
        ({"occurred_at": "2026-01-02T10:00:00Z"}, "document:text:"),
    ],
    ids=["the file", "a session", "a time alone"],
)
def test_parts_are_of_one_origin_and_known_by_their_words(
    workspace: Workspace, tmp_path: Path, given: dict[str, str], origin: str
) -> None:
    """Origin, L4: also of a line that names no document and has no key."""
    file = write_lines(tmp_path, json.dumps({"text": PAGES, **given}))
    for stored in (1, 0):
        assert report(file)[1]["stored"] == stored
    [one] = set(Episode.objects.values_list("origin", flat=True))
    assert one.startswith(origin)
    assert sorted(Episode.objects.values_list("text", flat=True)) == sorted(split_text(text=PAGES, longest=LONGEST))


def test_a_line_that_grew_after_it_was_imported_keeps_its_key_for_what_it_had(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Bad input: a key with other content is a conflict, told once for the line."""
    run(write_lines(tmp_path, json.dumps({"text": "Short.", "idempotency_key": "k"})))
    code, answer = report(write_lines(tmp_path, json.dumps({"text": PAGES, "idempotency_key": "k"})))
    assert code == 1
    assert [(line["line"], line["status"]) for line in answer["rejected"]] == [(1, 409)]


def test_a_bad_line_with_a_long_text_is_named_once(workspace: Workspace, tmp_path: Path) -> None:
    code, out, err = run(
        write_lines(tmp_path, json.dumps({"text": PAGES, "colour": "blue"}), json.dumps({"text": PAGES + "\ud800"}))
    )
    assert (code, out) == (1, "0 episodes stored, 0 known already, 2 refused.\n")
    assert [line.split(":")[0] for line in err.splitlines()] == ["line 1", "line 2"]
    assert not Episode.objects.exists()


def test_names_at_their_limit_still_name_each_part(workspace: Workspace, tmp_path: Path) -> None:
    line = json.dumps({"text": PAGES, "idempotency_key": "k" * 200})
    for stored in (1, 0):
        assert report(write_lines(tmp_path, line))[1]["stored"] == stored
    keys = set(Episode.objects.values_list("idempotency_key", flat=True))
    assert len(keys) == len(split_text(text=PAGES, longest=LONGEST))


def test_a_secret_at_the_border_is_no_secret_s_half(workspace: Workspace, tmp_path: Path) -> None:
    """Redaction: it is taken out before the text is split."""
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF\n" * 40 + "-----END PRIVATE KEY-----"
    file = write_lines(tmp_path, json.dumps({"text": "x " * (LONGEST // 2 - 200) + key + " y" * 99}))
    assert report(file)[1]["stored"] == 1
    assert not Episode.objects.filter(text__contains="MIIEv").exists()


def test_replay_lives_through_all_parts(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "wait_for_cycle", run_to_end)
    line = {"text": PAGES, "occurred_at": "2026-01-02T10:00:00Z"}
    code, out, _ = run(write_lines(tmp_path, json.dumps(line)), "--replay")
    assert (code, out) == (0, "1 episode stored, 0 known already, 1 split into parts, 1 cycle run.\n")
    assert {row.created_at.date().isoformat() for row in Episode.objects.all()} == {"2026-01-02"}
