"""The parts of a MEMORY.md that are ours, as text, and how they go into a file and out of it (P3, P7).

Ours is what stands between our markers, each a line of its own; every other byte is the person's and stays as it is.
The beliefs stand at the top of the file, where nothing cuts them off, the graduated memories at its end.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile

BELIEFS_BEGIN, BELIEFS_END = "<!-- ENGRAM:BELIEFS:BEGIN -->", "<!-- ENGRAM:BELIEFS:END -->"
MEMORIES_BEGIN, MEMORIES_END = "<!-- ENGRAM:MEMORIES:BEGIN -->", "<!-- ENGRAM:MEMORIES:END -->"
LONGEST_TEXT = 300  # characters of a statement or a memory that stand in its line


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedBelief:
    """A belief under the heading Beliefs."""

    statement: str
    confidence: float
    evidence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerBelief:
    """A belief under the heading Former Beliefs: the confidence that was published, and today's.

    What ended on a day keeps the confidence of its time; the day is told instead of it.
    """

    statement: str
    was: float
    now: float
    demoted_on: date
    ended_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraduatedMemory:
    """An episode that is kept in the file, and the day on which it went in."""

    text: str
    occurred_on: date
    graduated_on: date


def render_beliefs(*, trusted: Sequence[TrustedBelief], former: Sequence[FormerBelief]) -> str:
    """Return the section of beliefs, in the order given, with its markers; nothing where there are none."""
    blocks = [
        _block(
            "## Beliefs",
            (f"{one_line(one.statement)} (confidence: {one.confidence:.2f}, evidence: {one.evidence})"
             for one in trusted),
        ),
        _block(
            "## Former Beliefs",
            (
                _former_line(one) for one in former
            ),
        ),
    ]  # fmt: skip
    return _between(BELIEFS_BEGIN, blocks, BELIEFS_END)


def _former_line(one: FormerBelief) -> str:
    today = f"ended: {one.ended_on:%Y-%m-%d}" if one.ended_on else f"now: {one.now:.2f}"
    return (
        f"[NO LONGER TRUE] {one_line(one.statement)} (was: {one.was:.2f}, {today}, demoted: {one.demoted_on:%Y-%m-%d})"
    )


def render_memories(*, memories: Sequence[GraduatedMemory]) -> str:
    """Return the graduated memories under a heading for each day, with their markers; nothing where there are none."""
    days = sorted({one.graduated_on for one in memories})
    blocks = [
        _block(f"## {day:%Y-%m-%d}", (memory_line(one) for one in memories if one.graduated_on == day))
        for day in days
    ]  # fmt: skip
    return _between(MEMORIES_BEGIN, blocks, MEMORIES_END)


def memory_line(memory: GraduatedMemory) -> str:
    """Return the line of a graduated memory, without its bullet.

    It is known by the no-break space, which no text on one line has: a person's own lists may end in dates, too.
    """
    return f"{one_line(memory.text)}\N{NO-BREAK SPACE}({memory.occurred_on:%Y-%m-%d})"


def _block(heading: str, lines: Iterable[str]) -> list[str]:
    bullets = [f"- {line}" for line in lines]
    return [heading, "", *bullets, ""] if bullets else []


def _between(begin: str, blocks: Iterable[list[str]], end: str) -> str:
    lines = [line for block in blocks for line in block]
    return "".join(f"{line}\n" for line in (begin, *lines, end)) if lines else ""


_MARKUP = re.compile(r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w))")
_OPENING = re.compile(r"^([-+#=]|\d+(?=[.)]))")


def one_line(text: str) -> str:
    """Return a text as one line of Markdown that shows its words and opens nothing: no marker, list, link or code."""
    words = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(words.split())
    if len(line) > LONGEST_TEXT:
        line = f"{line[: LONGEST_TEXT - 1].rstrip()}…"
    escaped = _MARKUP.sub(r"\\\1", line.replace("&", "&amp;"))
    return _OPENING.sub(lambda found: _open_nothing(found[0]), escaped)


def _open_nothing(opening: str) -> str:
    return f"{opening}\\" if opening.isdecimal() else f"\\{opening}"


def put_sections(*, content: bytes, beliefs: str, memories: str) -> bytes:
    """Return a file's bytes with our sections in their places instead of any that were in it."""
    bom, body = _split_mark(take_sections(content=content))
    ending = b"\r\n" if body.partition(b"\n")[0].endswith(b"\r") else b"\n"
    above, below = (text.encode().replace(b"\n", ending) for text in (beliefs, memories))
    return bom + above + body + below


def take_sections(*, content: bytes) -> bytes:
    """Return a file's bytes without our sections.

    A marker that lost its other half goes with the lines of ours beside it; where none are, it is a person's, and
    stays. Two that would become a pair by what is taken from between them go, and the text between them stays: it was
    outside before.
    """
    bom, body = _split_mark(content)
    for pattern in _SECTIONS:
        body = pattern.sub(_between_lines, body)
    body = _take_halves(body)
    while (freed := _unwrap(body)) != body:
        body = freed
    return bom + body


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _split_mark(content: bytes) -> tuple[bytes, bytes]:
    body = content.removeprefix(_BYTE_ORDER_MARK)
    return content[: len(content) - len(body)], body


def _between_lines(section: re.Match[bytes]) -> bytes:
    """Return what stays in a section's place: the end of the line before, if it had none and another line follows."""
    body, begin = section.string, section.start()
    is_joined = begin > 0 and body[begin - 1 : begin] not in (b"\n", b"\r") and section.end() < len(body)
    return section["ending"] if is_joined else b""


def _take_halves(body: bytes) -> bytes:
    """Return a text without the halves of our sections whose other marker somebody took away."""
    lines = body.splitlines(keepends=True)
    taken: set[int] = set()
    for number, line in enumerate(lines):
        if any(line.rstrip().endswith(marker) for marker in _BEGINNINGS):
            beside = range(number + 1, len(lines))
        elif line.strip() in _ENDINGS:
            beside = range(number - 1, -1, -1)
        else:
            continue
        if ours := _our_lines(lines, beside):
            taken.update((number, *ours))
    return b"".join(_before_marker(line) if number in taken else line for number, line in enumerate(lines))


def _our_lines(lines: Sequence[bytes], beside: range) -> list[int]:
    """Return which of the lines beside a marker are ours: up to the last belief or memory, and the blank one after."""
    ours = list(takewhile(lambda place: _IS_OURS.fullmatch(lines[place].rstrip()), beside))
    if not any(lines[place].startswith(b"-") for place in ours):
        return []
    begins = b"-" if beside.step > 0 else (b"-", b"#")
    end = 1 + max(n for n, place in enumerate(ours) if lines[place].startswith(begins))
    if beside.step > 0 and end < len(ours) and not lines[ours[end]].strip():
        end += 1
    return ours[:end]


_BEGINNINGS = BELIEFS_BEGIN.encode(), MEMORIES_BEGIN.encode()
_ENDINGS = BELIEFS_END.encode(), MEMORIES_END.encode()
_IS_OURS = re.compile(
    rb"|## (?:Former )?Beliefs|## \d{4}-\d\d-\d\d"
    rb"|- .+ \(confidence: \d\.\d\d, evidence: \d+\)"
    rb"|- \[NO LONGER TRUE\] .+ \(was: \d\.\d\d, (?:now|ended): [\d.-]+, demoted: \d{4}-\d\d-\d\d\)"
    rb"|- .+\xc2\xa0\(\d{4}-\d\d-\d\d\)"
)


def _before_marker(line: bytes) -> bytes:
    """Return what stays of a line of ours: a person's words, where the memories' first marker was put behind them."""
    own, marker, ending = line.partition(MEMORIES_BEGIN.encode())
    return own + ending if marker and own else b""


def _unwrap(body: bytes) -> bytes:
    for pattern in _SECTIONS:
        body = pattern.sub(rb"\g<between>", body)
    return body


def _section_pattern(begin: str, end: str) -> re.Pattern[bytes]:
    """Match from the line of one marker to that of the other, with no third in between.

    The memories' first marker ends a line, but need not begin it: what is put behind a person's last line, which has
    no end, must not give it one.
    """
    starts = b"" if begin == MEMORIES_BEGIN else b"^"
    opens, closes = re.escape(begin.encode()), re.escape(end.encode())
    between = rb"(?P<between>(?:(?!%b[ \t]*\r?$).)*?)" % opens
    whole = rb"%b%b[ \t]*(?P<ending>\r?\n)%b^%b[ \t]*\r?(?:\n|\Z)" % (starts, opens, between, closes)
    return re.compile(whole, re.MULTILINE | re.DOTALL)


_SECTIONS = (_section_pattern(BELIEFS_BEGIN, BELIEFS_END), _section_pattern(MEMORIES_BEGIN, MEMORIES_END))
