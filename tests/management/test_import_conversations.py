"""Conversations come in by commands: once, however often they are imported, and nothing is left out unsaid."""

import json
import re
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.erasure.erase import erase_user
from memory.ingest import conversation_files
from memory.language.sentences import split_text
from memory.models import Conversation, Turn, Workspace
from tests import factories
from tests.forgetting.forgetful import LENA
from tests.ingest.importers.exports import (
    Json,
    chatgpt_conversation,
    chatgpt_message,
    claude_conversation,
    claude_message,
    code_line,
)

pytestmark = pytest.mark.django_db

LINES = (
    {"session": "s", "role": "user", "content": "I moved to Bergen.", "turn_id": "1"},
    {"session": "s", "role": "assistant", "content": "Congratulations!", "turn_id": "2"},
    {"session": "t", "role": "user", "content": "I prefer tea."},
    {"session": "t", "role": "user", "content": "I prefer tea."},
)


@pytest.fixture(autouse=True)
def workspace() -> Workspace:
    return factories.workspace(name="acme")


def run(command: str, path: Path, *options: str) -> tuple[int, str, str]:
    """Run a command; return its exit status and what it printed."""
    out, err = StringIO(), StringIO()
    try:
        call_command(command, str(path), "--workspace", "acme", *options, stdout=out, stderr=err)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def report(command: str, path: Path, *options: str) -> tuple[int, Any]:
    code, out, _ = run(command, path, "--json", *options)
    return code, json.loads(out)


def write_lines(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def told(**columns: Any) -> dict[str, Any]:
    return {
        "dry_run": False,
        "conversations": 0,
        "stored": {},
        "known": 0,
        "split": 0,
        "erased": 0,
        "left_out": {},
        "rejected": [],
    } | columns


def said() -> list[tuple[str, str]]:
    return list(Turn.objects.order_by("pk").values_list("role", "content"))


def test_a_turn_a_line_is_imported_once(tmp_path: Path) -> None:
    """A replay adds nothing, also of turns that have no id; two equal ones are two."""
    file = write_lines(tmp_path / "turns.jsonl", *LINES)
    assert report("import_conversations", file) == (
        0,
        told(conversations=2, stored={"assistant": 1, "user": 3}),
    )
    assert report("import_conversations", file) == (0, told(conversations=2, known=4))
    assert Turn.objects.count() == 4


def test_a_file_that_grew_adds_what_is_new(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "turns.jsonl", *LINES)
    run("import_conversations", file)
    write_lines(file, *LINES, {"session": "t", "role": "user", "content": "And cake."})
    assert report("import_conversations", file) == (0, told(conversations=2, stored={"user": 1}, known=4))


def test_what_was_erased_stays_out_and_is_no_failure(tmp_path: Path) -> None:
    """L4: it is counted, the rest goes in, with the same exit status as ever; so it is in a rehearsal."""
    file = write_lines(tmp_path / "turns.jsonl", *LINES)
    run("import_conversations", file, "--user", "otis")
    erase_user(workspace=Workspace.objects.get(), user="otis", actor=LENA, now=timezone.now())
    write_lines(file, *LINES, {"session": "t", "role": "user", "content": "And cake."})
    options = ["--user", "otis"]
    for more in ([*options, "--dry-run"], options):
        code, out, err = run("import_conversations", file, *more)
        assert (code, err) == (0, "")
        assert re.match(
            r"1 turn of 1 conversation (would be )?stored \(1 user\), 0 known already, 4 refused: erased\.", out
        )
    assert report("import_conversations", file, *options) == (0, told(conversations=1, known=1, erased=4))
    assert said() == [("user", "And cake.")]


def test_bad_lines_are_named_and_the_good_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_text('{"session": "s", "role": "user", "content": "One."}\n\n{"session": "s"\n[]\n{"role": "cat"}\n')
    code, out, err = run("import_conversations", file)
    assert code == 1
    assert out.startswith("1 turn of 1 conversation stored (1 user), 0 known already, 3 refused.\nWorkers read them")
    assert [line.split(":")[0] for line in err.splitlines()] == ["line 3", "line 4", "line 5"]


def test_a_rehearsal_says_what_would_come_in_and_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_files, "BATCH", 2)
    file = write_lines(tmp_path / "turns.jsonl", *LINES, LINES[0], {"session": "s", "role": "cat", "content": "x"})
    code, answer = report("import_conversations", file, "--dry-run", "--project", "new")
    assert (code, answer["stored"], answer["known"]) == (1, {"assistant": 1, "user": 3}, 1)
    assert (answer["dry_run"], len(answer["rejected"])) == (True, 1)
    assert not Turn.objects.exists()
    assert not Conversation.objects.exists()


def test_project_and_user_hold_for_turns_that_name_none(tmp_path: Path) -> None:
    own = {"session": "u", "role": "user", "content": "x", "user": "mia", "project": "bakery"}
    file = write_lines(tmp_path / "turns.jsonl", LINES[0], own)
    run("import_conversations", file, "--project", "move", "--user", "otis")
    whose = Conversation.objects.order_by("session").values_list("session", "project__slug", "user")
    assert list(whose) == [("s", "move", "otis"), ("u", "bakery", "mia")]


@pytest.mark.parametrize("form", ["file", "folder", "archive"])
def test_an_export_of_chatgpt_comes_in_whichever_way_it_lies(tmp_path: Path, form: str) -> None:
    conversation = chatgpt_conversation(
        chatgpt_message("a", "root", "user", "I bake rye bread."),
        chatgpt_message("b", "a", "assistant", "Rye needs sourdough."),
        chatgpt_message("c", "b", "tool", "Searching."),
        current="c",
    )
    path = lay_down(tmp_path, form, [conversation])
    assert report("import_conversations", path) == (
        0,
        told(conversations=1, stored={"assistant": 1, "user": 1}, left_out={"of tools": 1}),
    )
    assert said() == [("user", "I bake rye bread."), ("assistant", "Rye needs sourdough.")]


def lay_down(folder: Path, form: str, conversations: list[Json]) -> Path:
    file = folder / "conversations.json"
    file.write_text(json.dumps(conversations), encoding="utf-8")
    if form != "archive":
        return file if form == "file" else folder
    with zipfile.ZipFile(folder / "export.zip", "w") as archive:
        archive.write(file, "data/conversations.json")
        archive.writestr("data/users.json", "[{}]")
    return folder / "export.zip"


def test_an_export_of_claude_comes_in(tmp_path: Path) -> None:
    conversation = claude_conversation(
        claude_message("a", "human", text="I bake rye bread."),
        claude_message("b", "assistant", {"type": "text", "text": "Rye needs sourdough."}),
    )
    path = lay_down(tmp_path, "file", [conversation])
    assert report("import_conversations", path)[0] == 0
    assert report("import_conversations", path) == (0, told(conversations=1, known=2))
    assert said() == [("user", "I bake rye bread."), ("assistant", "Rye needs sourdough.")]


def test_an_export_that_is_cut_off_keeps_what_came_before(tmp_path: Path) -> None:
    conversation = claude_conversation(claude_message("a", "human", text="I bake rye bread."))
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([conversation, conversation])[:-40], encoding="utf-8")
    code, answer = report("import_conversations", file)
    assert (code, answer["stored"]) == (1, {"user": 1})
    assert answer["rejected"][0]["detail"].startswith("From here on it is not JSON")


def test_a_dry_run_counts_what_it_leaves_out(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "Hm."}
    message = claude_message("a", "assistant", thought, {"type": "text", "text": "Rye."}) | {"attachments": [{}]}
    code, out, _ = run("import_conversations", lay_down(tmp_path, "file", [claude_conversation(message)]), "--dry-run")
    assert (code, out.splitlines()[-1]) == (0, "Left out: 1 attachments, 1 thoughts.")


def archive_of(folder: Path) -> bytearray:
    conversation = claude_conversation(*(claude_message(f"m{n}", "human", text=f"Loaf {n}.") for n in range(50)))
    with zipfile.ZipFile(folder / "export.zip", "w") as archive:  # stored as it is, so that a byte can be found
        archive.writestr("conversations.json", json.dumps([conversation]))
    return bytearray((folder / "export.zip").read_bytes())


def test_an_archive_that_is_cut_off_is_told_in_a_sentence(tmp_path: Path) -> None:
    whole = archive_of(tmp_path)
    (tmp_path / "export.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CommandError, match=r"export\.zip: It is a broken archive: it is cut off") as refused:
        run("import_conversations", tmp_path / "export.zip")
    assert refused.value.returncode == 2


def test_an_archive_with_a_wrong_byte_keeps_what_came_before(tmp_path: Path) -> None:
    raw = archive_of(tmp_path)
    raw[raw.index(b"Loaf 49")] ^= 1
    (tmp_path / "export.zip").write_bytes(raw)
    code, _, err = run("import_conversations", tmp_path / "export.zip")
    assert code == 1
    assert err == (
        "conversations.json: From here on the archive is broken, or locked: Bad CRC-32 for file 'conversations.json'\n"
    )


def test_what_is_nested_too_deeply_is_not_called_a_broken_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", 1_000_000 * "[")
    code, _, err = run("import_conversations", tmp_path / "export.zip")
    assert (code, err) == (1, "conversations.json: From here on it is not read: it is nested too deeply.\n")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none.json", "No such file"),
        ("empty.json", r"empty\.json: It is empty"),
        ("sub", "holds no conversations.json"),
    ],
    ids=["missing", "nothing in it", "no file in it"],
)
def test_nothing_to_import_is_bad_usage(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "empty.json").touch()
    (tmp_path / "sub").mkdir()
    with pytest.raises(CommandError, match=reason) as refused:
        run("import_conversations", tmp_path / name)
    assert refused.value.returncode == 2


def test_transcripts_in_a_folder_and_below_come_in_once(tmp_path: Path) -> None:
    below = tmp_path / "-home-mia-oven"
    below.mkdir()
    write_lines(
        below / "s-1.jsonl", code_line("a", "user", "Build the oven page."), code_line("b", "assistant", "Done.")
    )
    write_lines(below / "s-2.jsonl", code_line("c", "user", "We use port 9000.", sessionId="s-2"))
    assert report("import_claude_code", tmp_path) == (0, told(conversations=2, stored={"assistant": 1, "user": 2}))
    assert report("import_claude_code", tmp_path) == (0, told(conversations=2, known=3))


def test_sessions_are_of_the_folders_that_they_began_in_if_asked_for(tmp_path: Path) -> None:
    write_lines(tmp_path / "s-1.jsonl", code_line("a", "user", "Hi.", cwd="/home/mia/oven"))
    write_lines(tmp_path / "s-2.jsonl", code_line("b", "user", "Ho.", sessionId="s-2"))
    run("import_claude_code", tmp_path, "--project-from-folder", "--project", "rest")
    assert set(Conversation.objects.values_list("session", "project__slug")) == {("s-1", "oven"), ("s-2", "rest")}


def test_a_transcript_that_is_still_being_written_is_no_error(tmp_path: Path) -> None:
    """Its last line is left for the next time, and counted."""
    line = json.dumps(code_line("a", "user", "Build the oven page."))
    (tmp_path / "s.jsonl").write_text(f'{line}\n{{"type": "us', encoding="utf-8")
    assert report("import_claude_code", tmp_path) == (
        0, told(conversations=1, stored={"user": 1}, left_out={"still being written": 1}),
    )  # fmt: skip


def test_a_transcript_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"type": "us\n', encoding="utf-8")
    code, _, err = run("import_claude_code", tmp_path)
    assert (code, err) == (
        1,
        "s.jsonl, line 1: The line is not JSON; column 13: a control character stands in a text.\n",
    )


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_a_folder_without_transcripts_is_bad_usage(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError) as refused:
        run("import_claude_code", tmp_path / name)
    assert refused.value.returncode == 2


# --- Messages that are longer than a turn may be

PAGES = "\n\n".join(f"Übung {number}: " + "Das Brot ruht über Nacht 🍞. " * 40 for number in range(60))
PARTS = split_text(text=PAGES, longest=32 * 1024)


def long_export(folder: Path, form: str) -> tuple[str, Path]:
    """Return the command and the path of a conversation with one long message and a short one."""
    if form == "lines":
        lines = [{"session": "s", "role": "user", "content": text, "speaker": "Mia"} for text in (PAGES, "Short.")]
        return "import_conversations", write_lines(folder / "turns.jsonl", *lines)
    if form == "claude code":
        write_lines(folder / "s.jsonl", code_line("a", "user", PAGES), code_line("b", "user", "Short."))
        return "import_claude_code", folder
    claude = claude_conversation(claude_message("a", "human", text=PAGES), claude_message("b", "human", text="Short."))
    nodes = chatgpt_message("a", "root", "user", PAGES), chatgpt_message("b", "a", "user", "Short.")
    exported = claude if form == "claude" else chatgpt_conversation(*nodes, current="b")
    return "import_conversations", lay_down(folder, "file", [exported])


@pytest.mark.parametrize("form", ["lines", "chatgpt", "claude", "claude code"])
def test_a_long_message_comes_in_as_turns_of_its_session(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input, B1: in order, with nothing lost, counted as one, and once however often it is imported."""
    monkeypatch.setattr(conversation_files, "BATCH", 1)
    command, path = long_export(tmp_path, form)
    assert report(command, path, "--dry-run")[1]["stored"] == {"user": 2}
    assert report(command, path) == (0, told(conversations=1, stored={"user": 2}, split=1))
    assert report(command, path) == (0, told(conversations=1, known=2, split=1))
    turns = list(Turn.objects.order_by("number"))
    assert [turn.content == part for turn, part in zip(turns, [*PARTS, "Short."], strict=True)].count(False) == 0
    first, *others = [str(turn.turn_id) for turn in turns[:-1]]
    assert others == [f"{first}:{number}" for number in range(2, len(PARTS) + 1)]
    assert len({(turn.role, turn.speaker, turn.conversation_id) for turn in turns}) == 1


def test_a_report_says_how_many_came_in_parts(tmp_path: Path) -> None:
    _, out, _ = run(*long_export(tmp_path, "lines"))
    assert out.startswith("2 turns of 1 conversation stored (2 user), 0 known already, 1 of these in parts.\n")


def test_a_message_of_which_a_part_is_refused_is_named_once(tmp_path: Path) -> None:
    """Bad input: its other parts are kept."""
    line = {"session": "s", "role": "user", "content": PAGES + "\0", "turn_id": "1"}
    code, answer = report("import_conversations", write_lines(tmp_path / "turns.jsonl", line))
    assert (code, answer["stored"], answer["split"], len(answer["rejected"])) == (1, {"user": 1}, 1, 1)
    assert Turn.objects.count() == len(PARTS) - 1
