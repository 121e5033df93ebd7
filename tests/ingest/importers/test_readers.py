"""What other programs export is read as turns."""

import io
import json
from collections import Counter
from collections.abc import Iterable

import pytest

from memory.ingest.conversation_formats import (
    ImportedTurn,
    ImportItem,
    Skipped,
    SkipReason,
    Unreadable,
    project_of_folder,
    read_chatgpt,
    read_claude,
    read_transcript,
)
from memory.ingest.schemas import is_slug
from tests.ingest.importers.exports import (
    Json,
    chatgpt_conversation,
    chatgpt_message,
    claude_conversation,
    claude_message,
    code_line,
    said,
)


def told(found: Iterable[ImportItem]) -> list[tuple[object, object, object]]:
    return [
        (item.line["role"], item.line["content"], item.line["turn_id"])
        for item in found
        if isinstance(item, ImportedTurn)
    ]


def left_out(found: Iterable[ImportItem]) -> Counter[SkipReason]:
    return Counter(item.reason for item in found if isinstance(item, Skipped))


def from_chatgpt(conversation: Json) -> list[ImportItem]:
    return list(read_chatgpt(conversation=conversation, place="it"))


def from_claude(conversation: Json) -> list[ImportItem]:
    return list(read_claude(conversation=conversation, place="it"))


def from_code(*lines: object) -> list[ImportItem]:
    stream = io.BytesIO("\n".join(json.dumps(line) for line in lines).encode())
    return list(read_transcript(stream=stream, place="it"))


@pytest.mark.parametrize("name", ["author", "content", "metadata"])
@pytest.mark.parametrize("value", [[], ["x"], "x", 7, None])
def test_chatgpt_a_part_of_another_form_breaks_nothing(name: str, value: object) -> None:
    """What is of no use is as good as missing: the rest of the conversation is read."""
    odd = chatgpt_message("b", "a", "user", "It is odd.", **{name: value})
    fine = chatgpt_message("a", "root", "user", "I bake rye bread.")
    found = from_chatgpt(chatgpt_conversation(odd, fine, current="b"))
    assert told(found)[0] == ("user", "I bake rye bread.", "a")


def test_chatgpt_the_branch_last_shown_is_read_in_order() -> None:
    conversation = chatgpt_conversation(
        chatgpt_message("b", "a", "assistant", "Rye needs sourdough."),
        chatgpt_message("a", "root", "user", "I bake rye bread."),
        chatgpt_message("b2", "a", "assistant", "An answer that was thrown away."),
        current="b",
    )
    found = from_chatgpt(conversation)
    assert told(found) == [("user", "I bake rye bread.", "a"), ("assistant", "Rye needs sourdough.", "b")]
    assert left_out(found) == {SkipReason.OTHER_BRANCH: 1}


def test_chatgpt_session_and_time_are_kept() -> None:
    [turn] = from_chatgpt(chatgpt_conversation(chatgpt_message("a", "root", "user", "Hello."), current="a"))
    assert isinstance(turn, ImportedTurn)
    assert (turn.line["session"], turn.line["occurred_at"]) == ("c-1", "2026-01-02T10:00:00.250000+00:00")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"author": {"role": "tool"}}, SkipReason.TOOL),
        ({"author": {"role": "system"}}, SkipReason.SYSTEM),
        ({"recipient": "python"}, SkipReason.TOOL),
        ({"metadata": {"is_visually_hidden_from_conversation": True}}, SkipReason.HIDDEN),
        ({"content": {"content_type": "thoughts", "thoughts": []}}, SkipReason.THOUGHT),
        ({"content": {"content_type": "code", "text": "x = 1"}}, SkipReason.TOOL),
        ({"content": {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}]}}, SkipReason.ATTACHMENT),
        ({"content": {"content_type": "text", "parts": [""]}}, SkipReason.NO_TEXT),
    ],
)
def test_chatgpt_what_nobody_said_is_left_out(change: Json, reason: SkipReason) -> None:
    found = from_chatgpt(chatgpt_conversation(chatgpt_message("a", "root", "user", "x", **change), current="a"))
    assert (told(found), left_out(found)) == ([], {reason: 1})


def test_chatgpt_text_beside_a_picture_is_read() -> None:
    content = {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "My loaf."]}
    node = chatgpt_message("a", "root", "user", "", content=content)
    found = from_chatgpt(chatgpt_conversation(node, current="a"))
    assert (told(found), left_out(found)) == ([("user", "My loaf.", "a")], {SkipReason.ATTACHMENT: 1})


def test_chatgpt_files_beside_a_text_are_counted() -> None:
    node = chatgpt_message("a", "root", "user", "Read these.", metadata={"attachments": [{"id": "x"}, {"id": "y"}]})
    found = from_chatgpt(chatgpt_conversation(node, current="a"))
    assert (told(found), left_out(found)) == ([("user", "Read these.", "a")], {SkipReason.ATTACHMENT: 2})


def test_chatgpt_a_tree_that_leads_in_a_circle_cannot_be_read() -> None:
    nodes = (chatgpt_message("a", "b", "user", "x"), chatgpt_message("b", "a", "user", "y"))
    [found] = from_chatgpt(chatgpt_conversation(*nodes, current="a"))
    assert isinstance(found, Unreadable)


def test_claude_text_is_read_and_thoughts_and_tools_are_not() -> None:
    conversation = claude_conversation(
        claude_message("a", "human", text="I bake rye bread."),
        claude_message(
            "b", "assistant", {"type": "thinking", "thinking": "Hm."}, said("Rye needs"), said("sourdough.")
        ),
        claude_message("c", "assistant", {"type": "tool_use", "name": "search"}),
        claude_message("d", "human", text="Read this.") | {"attachments": [{"file_name": "x"}], "files": [{}]},
        claude_message("e", "human"),
    )
    found = from_claude(conversation)
    assert told(found) == [
        ("user", "I bake rye bread.", "a"),
        ("assistant", "Rye needs\n\nsourdough.", "b"),
        ("user", "Read this.", "d"),
    ]
    assert left_out(found) == {
        SkipReason.THOUGHT: 1,
        SkipReason.TOOL: 1,
        SkipReason.ATTACHMENT: 2,
        SkipReason.NO_TEXT: 1,
    }


def test_claude_a_message_of_nobody_is_named() -> None:
    [found] = from_claude(claude_conversation(claude_message("a", "stranger", said("x"))))
    assert isinstance(found, Unreadable)
    assert found.place == "it, message 1"


def test_claude_code_person_and_agent_are_read() -> None:
    found = from_code(
        {"type": "summary", "summary": "Bread", "leafUuid": "a"},
        code_line("a", "user", "Build the oven page."),
        code_line("b", "assistant", [{"type": "thinking", "thinking": "Hm."}, said("Done.")]),
        code_line("c", "assistant", [{"type": "tool_use", "name": "Bash", "input": {}}]),
        code_line("d", "user", [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]),
        code_line("e", "user", "Look at this.", isSidechain=True),
        code_line("f", "user", "<command-name>/clear</command-name>"),
        code_line("g", "user", "Caveat: The messages below were generated by the user.", isMeta=True),
    )
    assert told(found) == [("user", "Build the oven page.", "a"), ("assistant", "Done.", "b")]
    assert left_out(found) == {SkipReason.TOOL: 2, SkipReason.THOUGHT: 1, SkipReason.SYSTEM: 3, SkipReason.SUBAGENT: 1}


def test_claude_code_a_picture_beside_a_text_is_counted() -> None:
    found = from_code(code_line("a", "user", [{"type": "image", "source": {}}, said("Like this.")]))
    assert (told(found), left_out(found)) == ([("user", "Like this.", "a")], {SkipReason.ATTACHMENT: 1})


def from_raw(raw: bytes, *, by_folder: bool = False) -> list[ImportItem]:
    return list(read_transcript(stream=io.BytesIO(raw), place="it", by_folder=by_folder))


def test_claude_code_a_last_line_that_is_being_written_is_no_error() -> None:
    """A session may go on while its folder is imported."""
    found = from_raw(json.dumps(code_line("a", "user", "Hello.")).encode() + b'\n{"type": "us\xc3')
    assert (told(found), left_out(found)) == ([("user", "Hello.", "a")], {SkipReason.BROKEN_OFF: 1})


def test_claude_code_any_other_line_that_cannot_be_read_is_named() -> None:
    [broken, _] = from_raw(b'{"type": "us\n' + json.dumps(code_line("a", "user", "Hello.")).encode())
    assert isinstance(broken, Unreadable)
    assert broken.place == "it, line 1"


def test_claude_code_a_session_is_of_the_folder_that_it_began_in() -> None:
    """Wherever it went from there; without being asked for, of none."""
    lines = [code_line("a", "user", "Hi.", cwd="/home/mia/My Oven.js"), code_line("b", "user", "Ho.", cwd="/tmp")]
    raw = "\n".join(json.dumps(line) for line in lines).encode()
    projects = [item.line.get("project") for item in from_raw(raw, by_folder=True) if isinstance(item, ImportedTurn)]
    assert projects == ["my-oven-js", "my-oven-js"]
    assert all("project" not in item.line for item in from_raw(raw) if isinstance(item, ImportedTurn))


@pytest.mark.parametrize(
    ("folder", "project"),
    [
        ("/home/mia/oven", "oven"), ("/home/mia/oven/", "oven"), (r"C:\Users\Mia\Oven Page", "oven-page"),
        ("/srv/Bäckerei_2", "bäckerei_2"), ("/", ""), ("/srv/...", ""), ("", ""), (None, ""),
        ("/x/" + "a" * 150, "a" * 100),
    ],
)  # fmt: skip
def test_a_folder_names_a_project(folder: object, project: str) -> None:
    assert project_of_folder(folder) == project
    assert not project or is_slug(project)
