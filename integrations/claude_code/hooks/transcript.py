"""What person and agent said to each other, read out of a transcript of Claude Code: a JSON object a line.

The same rules as those of `manage.py import_claude_code`, so that neither adds what the other has brought in: a turn's
id is the uuid of its line.
"""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, Mapping  # noqa: UP035 - for 3.9

LONGEST = 32 * 1024  # bytes of a turn's content; of a longer one each part is a turn

# What the program writes into a person's mouth: commands, their output, and its own remarks.
_OF_THE_PROGRAM = re.compile(
    r"\s*<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|system-reminder|user-prompt-submit-hook)>|\s*(?:Caveat: The messages below|\[Request interrupted by user)"
)
# What this plugin put in: lines of recollections, wherever they turn up.
_OURS = re.compile(r"^[ \t>]*\[(?:Memory flash: |Belief \(\d(?:[.,]\d+)?\): )[^\n]*\n?", re.MULTILINE)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)

_BORDERS = (
    re.compile(r"\n\s*\n"),  # between paragraphs, rather than
    re.compile(r"\n+"),  # between lines, rather than
    re.compile(r"[.!?…][\"'”“’»)\]]*\s+(?=\S)"),  # between sentences, rather than
    re.compile(r"\s+"),  # between words
)


def read_turns(raw_lines: list[bytes], *, session: str) -> Iterator[dict[str, Any]]:
    """Yield the turns of lines, as the API takes them."""
    for raw in raw_lines:
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and _is_said(line):
            yield from _turns_of(line, session)


def _is_said(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is a person's or the agent's own: no helper's, no summary, no remark of the program."""
    left_out = line.get("isSidechain") or line.get("isMeta") or line.get("isCompactSummary")
    return line.get("type") in ("user", "assistant") and not left_out and isinstance(line.get("uuid"), str)


def _turns_of(line: Mapping[str, Any], session: str) -> Iterator[dict[str, Any]]:
    message = line.get("message")
    text = _text_of(message.get("content") if isinstance(message, dict) else None)
    if line["type"] == "user" and _OF_THE_PROGRAM.match(text):
        return
    given = line.get("sessionId")
    parts = split_text(text=_without_ours(text), longest=LONGEST)
    for number, part in enumerate(filter(str.strip, parts), start=1):  # of what is blank nothing was said
        turn = {
            "session": given if isinstance(given, str) and given else session,
            "role": line["type"],
            "content": part,
            "turn_id": line["uuid"] if number == 1 else f"{line['uuid']}:{number}",
        }
        moment = line.get("timestamp")
        yield {**turn, "occurred_at": moment} if isinstance(moment, str) else turn


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "\n\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _without_ours(text: str) -> str:
    if "[Memory flash: " not in text and "[Belief (" not in text:
        return text
    return _OURS.sub("", _REMINDER.sub("", text)).strip()


def split_text(*, text: str, longest: int) -> list[str]:
    """Split a text into parts of at most so many bytes of UTF-8, which joined again are the text.

    A part ends at the last border of the best kind in the second half of what it may hold. The importer splits by the
    same rule: a part that is another there is another turn.
    """
    parts: list[str] = []
    start = 0
    while True:
        window = text[start : start + longest].encode("utf-8", "replace")
        full = start + len(window[:longest].decode("utf-8", "ignore"))
        if full >= len(text):
            return [*parts, text[start:]]
        end = _find_end(text, start, full)
        parts.append(text[start:end])
        start = end


def _find_end(text: str, start: int, full: int) -> int:
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(text, start + (full - start) // 2, full)]
        if ends:
            return ends[-1]
    return full
