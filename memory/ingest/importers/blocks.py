"""Messages in blocks, as Claude and Claude Code have them: what was said, and what stands beside it."""

from collections.abc import Iterator

from memory.ingest.importers.found import LeftOut, Reason

_TEXT = "text"
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_ATTACHMENTS = frozenset({"image", "document", "file", "audio"})


def text_of_blocks(content: object) -> str:
    """Join the blocks of text."""
    said = [block["text"] for block in _blocks(content) if block.get("type") == _TEXT]
    return "\n\n".join(text for text in said if isinstance(text, str))


def left_out_of_blocks(content: object) -> Iterator[LeftOut]:
    """Count each block that is no text: thoughts, calls of tools and their results, attachments."""
    for block in _blocks(content):
        kind = str(block.get("type"))
        if kind != _TEXT:
            yield LeftOut(reason=_reason_of(kind))


def _blocks(content: object) -> list[dict[str, object]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _reason_of(kind: str) -> Reason:
    if kind in _THOUGHTS:
        return Reason.THOUGHT
    if kind in _ATTACHMENTS:
        return Reason.ATTACHMENT
    return Reason.TOOL if "tool" in kind else Reason.SYSTEM
