"""P3, P7: our parts of a MEMORY.md as text, and every byte that is not ours."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory.language.sentences import strip_echo
from memory.publishing.section import (
    BELIEFS_BEGIN,
    BELIEFS_END,
    MEMORIES_BEGIN,
    MEMORIES_END,
    FormerBelief,
    GraduatedMemory,
    TrustedBelief,
    one_line,
    put_sections,
    render_beliefs,
    render_memories,
    take_sections,
)

TRUSTED = TrustedBelief(statement="Mia prefers the train over the car.", confidence=0.851, evidence=7)
FORMER = FormerBelief(statement="Mia drinks coffee.", was=0.78, now=0.45, demoted_on=date(2026, 2, 20))
MEMORY = GraduatedMemory(text="The bakery closes at six.", occurred_on=date(2026, 2, 1), graduated_on=date(2026, 3, 1))
SECTION = render_beliefs(trusted=[TRUSTED], former=[FORMER])
MEMORIES = render_memories(memories=[MEMORY])

# What a person may have in the file: any bytes, and our markers, whole, alone and in the wrong order.
MARKERS = (BELIEFS_BEGIN, BELIEFS_END, MEMORIES_BEGIN, MEMORIES_END)
LINES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([marker.encode() for marker in MARKERS]),
    st.sampled_from([b"## Beliefs", b"- My own list", "Ünïcödé".encode(), b"\xff\xfe", b"<!--", b"-->"]),
)
CONTENTS = st.builds(
    lambda lines, ending, mark: mark + ending.join(lines),
    st.lists(LINES, max_size=12),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)


def test_beliefs_stand_between_markers_under_two_headings() -> None:
    assert SECTION.splitlines() == [
        "<!-- ENGRAM:BELIEFS:BEGIN -->",
        "## Beliefs",
        "",
        "- Mia prefers the train over the car. (confidence: 0.85, evidence: 7)",
        "",
        "## Former Beliefs",
        "",
        "- [NO LONGER TRUE] Mia drinks coffee. (was: 0.78, now: 0.45, demoted: 2026-02-20)",
        "",
        "<!-- ENGRAM:BELIEFS:END -->",
    ]


def test_memories_stand_under_the_day_on_which_they_came() -> None:
    later = GraduatedMemory(text="Ina moved.", occurred_on=date(2026, 2, 3), graduated_on=date(2026, 4, 1))
    assert render_memories(memories=[later, MEMORY]).splitlines() == [
        "<!-- ENGRAM:MEMORIES:BEGIN -->",
        "## 2026-03-01",
        "",
        "- The bakery closes at six.\N{NO-BREAK SPACE}(2026-02-01)",
        "",
        "## 2026-04-01",
        "",
        "- Ina moved.\N{NO-BREAK SPACE}(2026-02-03)",
        "",
        "<!-- ENGRAM:MEMORIES:END -->",
    ]


def test_nothing_to_tell_is_no_section() -> None:
    assert render_beliefs(trusted=[], former=[]) == render_memories(memories=[]) == ""
    assert put_sections(content=b"mine", beliefs="", memories="") == b"mine"


def test_beliefs_go_to_the_top_and_memories_to_the_end() -> None:
    content = put_sections(content=b"# My notes\n\nmilk", beliefs=SECTION, memories=MEMORIES)
    assert content == SECTION.encode() + b"# My notes\n\nmilk" + MEMORIES.encode()


def test_a_second_pass_writes_the_same_bytes() -> None:
    once = put_sections(content=b"# My notes\n", beliefs=SECTION, memories=MEMORIES)
    assert put_sections(content=once, beliefs=SECTION, memories=MEMORIES) == once


def test_line_ends_are_those_of_the_file() -> None:
    content = put_sections(content=b"one\r\ntwo\r\n", beliefs=SECTION, memories="")
    assert content.count(b"\n") == content.count(b"\r\n")


@given(content=CONTENTS, wishes=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_what_is_not_ours_survives_any_sequence_byte_for_byte(content: bytes, wishes: list[tuple[bool, bool]]) -> None:
    """P7: broken markers among it; what stands between whole ones was ours before."""
    own = _take_all(content)
    for has_beliefs, has_memories in wishes:
        content = put_sections(
            content=content, beliefs=SECTION if has_beliefs else "", memories=MEMORIES if has_memories else ""
        )
        assert content.count(SECTION.split("\n")[3].encode()) == has_beliefs
    assert take_sections(content=content) == own


def _take_all(content: bytes) -> bytes:
    taken = take_sections(content=content)
    assert take_sections(content=taken) == taken
    return taken


def test_a_marker_that_lost_its_other_half_stays_and_a_new_section_comes_above() -> None:
    broken = f"{BELIEFS_BEGIN}\n- mine now\n".encode()
    content = put_sections(content=broken, beliefs=SECTION, memories="")
    assert content == SECTION.encode() + broken


def test_half_a_section_goes_with_the_lines_that_are_ours_by_their_form() -> None:
    """Whoever loses a marker would keep beliefs of that day in the file for ever."""
    for lost in (BELIEFS_BEGIN, BELIEFS_END, MEMORIES_BEGIN, MEMORIES_END):
        whole = put_sections(content=b"# Mine\n\n- milk (2 l)\n", beliefs=SECTION, memories=MEMORIES)
        broken = whole.replace(f"{lost}\n".encode(), b"")
        assert take_sections(content=broken) == b"# Mine\n\n- milk (2 l)\n"


def test_half_a_section_takes_no_line_of_a_person_with_it() -> None:
    """Ours end at the last belief; a heading, a list and a blank line after them are theirs."""
    mine = "\n## 2026-03-01\n\n- milk (2 l)\n"
    broken = SECTION.replace(f"{BELIEFS_END}\n", mine)
    assert take_sections(content=broken.encode()) == mine.encode()
    behind = f"- milk{MEMORIES}".replace(MEMORIES_END, "and bread")
    assert take_sections(content=behind.encode()) == b"- milk\nand bread\n"


def test_a_pair_that_is_left_around_a_section_goes_and_the_text_in_it_stays() -> None:
    """Else the next pass would take them for a section, and what a person wrote between them."""
    begin, end = f"{BELIEFS_BEGIN}\n".encode(), f"{BELIEFS_END}\n".encode()
    nested = begin + b"mine 1\n" + begin + b"ours\n" + end + b"mine 2\n" + end + b"mine 3\n"
    assert take_sections(content=nested) == b"mine 1\nmine 2\nmine 3\n"
    content = put_sections(content=nested, beliefs=SECTION, memories=MEMORIES)
    assert content == SECTION.encode() + b"mine 1\nmine 2\nmine 3\n" + MEMORIES.encode()


def test_what_is_appended_behind_the_memories_begins_a_line_of_its_own() -> None:
    """They stand behind a last line without an end, which is no reason to join what comes after them to it."""
    content = put_sections(content=b"- one", beliefs="", memories=MEMORIES) + b"- two\n"
    assert take_sections(content=content) == b"- one\n- two\n"


def test_a_marker_at_the_end_of_a_sentence_begins_no_section() -> None:
    text = f"Beliefs stand below {BELIEFS_BEGIN}\nmy own words\n{BELIEFS_END}\n".encode()
    assert take_sections(content=text) == text


def test_a_text_that_tells_of_the_markers_is_no_section() -> None:
    text = f"Beliefs stand between `{BELIEFS_BEGIN}` and `{BELIEFS_END}` in the file.\n".encode()
    assert take_sections(content=text) == text


def test_sections_that_somebody_doubled_become_one() -> None:
    doubled = SECTION.encode() + b"mine\n" + SECTION.encode()
    assert put_sections(content=doubled, beliefs=SECTION, memories="") == SECTION.encode() + b"mine\n"


ODD = (
    "a\nb\r\nc\u2028d", "# not a heading", "- no list", "1. no list", "> no quote", "[link](http://x)", "![i](x)",
    "`code`", "**bold** and _it_", "snake_case_name", "<script>alert(1)</script>", BELIEFS_END, "&lt;b&gt; & co",
    "a | b", "```\nfence", "\\[escaped\\]", "~~gone~~", "<http://auto.link>", "=== \n---", "\u202eevil\u202c",
    "x" * 900,
)  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_whatever_a_statement_holds_stays_within_its_bullet(text: str) -> None:
    """One list with one item with plain text in it, which reads as the statement does."""
    belief = TrustedBelief(statement=text, confidence=0.9, evidence=3)
    section = render_beliefs(trusted=[belief], former=[])
    tokens = MarkdownIt("commonmark").parse(section)
    kinds = [token.type for token in tokens if token.type != "html_block"]
    assert kinds == [
        "heading_open", "inline", "heading_close", "bullet_list_open", "list_item_open", "paragraph_open", "inline",
        "paragraph_close", "list_item_close", "bullet_list_close",
    ]  # fmt: skip
    [_, bullet] = [token for token in tokens if token.type == "inline"]
    assert {child.type for child in bullet.children or []} <= {"text", "text_special"}
    told = "".join(child.content for child in bullet.children or [])
    words = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    assert told.removesuffix(" (confidence: 0.90, evidence: 3)") == (words if len(words) < 300 else f"{words[:299]}…")


@given(statements=st.lists(st.text(max_size=400), max_size=15))
def test_ten_and_five_beliefs_are_at_most_thirty_lines(statements: list[str]) -> None:
    """P3: whatever they say."""
    trusted = [TrustedBelief(statement=one, confidence=0.9, evidence=3) for one in statements[:10]]
    former = [FormerBelief(statement=one, was=0.9, now=0.1, demoted_on=date(2026, 1, 1)) for one in statements[10:]]
    section = render_beliefs(trusted=trusted, former=former)
    assert len(section.splitlines()) <= 30
    assert section.count("\n") == len(section.splitlines())


def test_what_was_published_and_comes_back_is_an_echo() -> None:
    lines = [line for line in (SECTION + MEMORIES).splitlines() if line.startswith("- ")]
    assert len(lines) == 3
    for part in (SECTION, MEMORIES, *lines):
        assert strip_echo(part) == ""
    assert strip_echo(f"Look:\n{SECTION}\nIs that right?") == "Look:\n\nIs that right?"


def test_a_persons_own_dated_list_is_no_echo() -> None:
    assert strip_echo("- The bakery closes at six. (2026-02-01)") == "- The bakery closes at six. (2026-02-01)"


@pytest.mark.parametrize("text", ["a\N{NO-BREAK SPACE}b", "a  b", "a\tb", "a\nb", " a b "])
def test_white_space_is_one_blank(text: str) -> None:
    assert one_line(text) == "a b"
