"""What no export has is refused before it takes a process its memory."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.ingest import json_lines
from memory.ingest.conversation_files import ConversationFile
from memory.ingest.conversation_formats import ImportedTurn, ImportItem, Unreadable, read_transcript
from memory.ingest.json_lines import BoundedJson, NotJson, in_batches, read_lines
from tests.ingest.importers.exports import claude_conversation, claude_message, code_line


def refusals(found: Iterator[ImportItem]) -> dict[str, str]:
    return {item.place: item.rejected.detail for item in found if isinstance(item, Unreadable)}


def export(path: Path, *pieces: bytes) -> Path:
    path.write_bytes(b"[" + b",".join(pieces) + b"]")
    return path


def said(text: str) -> bytes:
    return json.dumps(claude_conversation(claude_message("1", "human", text=text))).encode()


def test_a_deep_nest_ends_the_reading_of_an_export_at_once(tmp_path: Path) -> None:
    """64 MiB of opening brackets took 19 GB."""
    file, read = export(tmp_path / "conversations.json", said("Rye."), b"[" * 2**26), list[int]()
    found = list(ConversationFile(path=file).read(read.append))
    assert refusals(iter(found)) == {file.name: "From here on it is not read: it is nested too deeply."}
    assert sum(read) <= 2 * 2**16
    file.unlink()


def test_a_conversation_without_an_end_is_read_so_far_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before it is kept."""
    monkeypatch.setattr(json_lines, "LONGEST", 2**18)
    many = [said(f"Loaf {n}.") for n in range(3000)]
    file, read = export(tmp_path / "conversations.json", *many, said("x" * 2**20)), list[int]()
    found = list(ConversationFile(path=file).read(read.append))
    assert sum(isinstance(item, ImportedTurn) for item in found) == 3000
    assert refusals(iter(found)) == {file.name: "From here on it is not read: it is longer than 64 MiB."}
    assert sum(read) < len(b",".join(many)) + 2**19


@pytest.mark.parametrize("text", [b"x" * 2**18, b"\\\\" * 2**17], ids=["letters", "backslashes"])
def test_a_text_without_an_end_is_read_so_far_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    """A text of 2 GB took 100 s, and one of 64 MiB 24 s: the parser reads it anew with every block."""
    monkeypatch.setattr(json_lines, "LONGEST_TEXT", 2**17)
    file = export(tmp_path / "conversations.json", b'{"name": "' + text)
    found = ConversationFile(path=file).read(lambda _: None)
    assert refusals(found) == {file.name: "From here on it is not read: a text in it is longer than 16 MiB."}


def test_many_texts_together_may_be_longer_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "LONGEST_TEXT", 2**16)
    file = export(tmp_path / "conversations.json", *(said("x" * 60_000) for _ in range(5)))
    assert not refusals(ConversationFile(path=file).read(lambda _: None))


def test_a_line_that_is_too_long_is_named_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "LONGEST", 1000)
    turns = [{"session": "s", "role": "user", "content": text} for text in ("Rye.", "x" * 5000, "Oats.")]
    file = tmp_path / "turns.jsonl"
    file.write_text("\n".join(json.dumps(turn) for turn in turns))
    found = list(ConversationFile(path=file).read(lambda _: None))
    assert [item.line["content"] for item in found if isinstance(item, ImportedTurn)] == ["Rye.", "Oats."]
    assert refusals(iter(found)) == {"line 2": "The line is not JSON; it is longer than 64 MiB."}


def test_a_line_of_a_transcript_that_is_too_long_is_not_taken_for_one_still_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_lines, "LONGEST", 1000)
    long = json.dumps(code_line("1", "user", "x" * 5000)).encode()
    for end in (b"\n", b""):
        found = read_transcript(stream=io.BytesIO(long + end), place="t")
        assert refusals(found) == {"t, line 1": "The line is not JSON; it is longer than 64 MiB."}


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("length", [9, 10, 11, 19, 20, 21, 30, 35])
def test_lines_are_cut_and_counted_however_long_they_are(
    monkeypatch: pytest.MonkeyPatch, length: int, end: bytes
) -> None:
    monkeypatch.setattr(json_lines, "LONGEST", 10)
    lines = list(read_lines(io.BytesIO(b"a\n" + b"x" * (length - 1) + b"\nb" + end)))
    assert (len(lines), lines[0], lines[2]) == (3, b"a\n", b"b" + end)
    assert (len(lines[1]) > 10) == (length > 10)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
def test_brackets_within_texts_are_no_depth(block: int) -> None:
    """However the blocks fall that are read."""
    deep, text = b"[" * 99 + b"]" * 99, b'"' + b"[{" * 200 + b'\\"[\\\\\\"[' + b"[" * 200 + b'\\\\"'
    for raw in (deep, b"[" + text + b"," + text + b",{" + text + b":1}]" + deep):
        assert read_all(raw, block) == raw
    with pytest.raises(NotJson, match="it is nested too deeply"):
        read_all(b"[" + text + b"," + b"[" * 100, block)


def read_all(raw: bytes, block: int) -> bytes:
    bounded = BoundedJson(io.BytesIO(raw))
    return b"".join(iter(lambda: bounded.read(block), b""))


def test_a_batch_is_of_few_where_they_are_long() -> None:
    sizes = [1, 2**24, 3, 4, 5, 6]
    assert list(in_batches(sizes, most=3, size_of=lambda size: size)) == [[1, 2**24], [3, 4, 5], [6]]
