"""What makes two texts one, where they come from, and what counts of them.

An id tells what kind of thing it names.
"""

import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.identity import IdKind, content_hash, holds_words, id_pattern, is_episode_id, origin_of
from memory.language.sentences import opening_name, strip_echo
from memory.models.fields import new_belief_id, new_cycle_id, new_episode_id

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
words = st.lists(st.text(alphabet="abcdefäöü", min_size=1), min_size=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tabs.", "i LIKE tabs"),
        ("I like tabs!", "I like tabs?!"),
        ("I like\n\ttabs ", " I like tabs"),
        ("Tabs. Always.", "tabs always"),
        ("Straße", "STRASSE"),
        ("ﬁne…", "fine"),
        ("Ｔａｂｓ！", "tabs"),
        ("über", "u\u0308ber"),
        ("So:", "so"),
    ],
)
def test_same_words(one: str, other: str) -> None:
    """L4: NFKC, casefold, white space, sentence-final marks."""
    assert content_hash(one) == content_hash(other)


@pytest.mark.parametrize(
    ("text", "is_held"),
    [
        ("As I said: never moor  at the East pier! It is closed.", True),
        ("Never moor at the east pier", True),
        ("Never moor at the east piers.", False),
        ("Never ever moor at the east pier.", False),
    ],
)
def test_words_are_held_in_one_piece_or_not_at_all(text: str, is_held: bool) -> None:
    """L4, B19: by the same rule as that by which words are the same."""
    assert holds_words(text=text, said="Never moor at the east pier.") is is_held


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C++", "C"),
        ("C++.", "C."),
        ("1.5", "15"),
        ("1.", "1"),
        ("C#", "C"),
        ("a.b", "ab"),
        ("Let us eat, Ben", "Let us eat Ben"),
        ("tabs over spaces", "spaces over tabs"),
        ("?", "!"),
        (".", ""),
        ("isn't", "isnt"),
    ],
)
def test_other_words(one: str, other: str) -> None:
    """L4: a mark beside a digit or symbol, or within a sentence, means something."""
    assert content_hash(one) != content_hash(other)


def test_hash_is_of_the_plain_words() -> None:
    """L4: SHA-256, in hexadecimal; of the raw text where nothing is left."""
    assert content_hash(" Tabs, ALWAYS! ") == sha256(b"tabs, always").hexdigest()
    assert content_hash("  ") == sha256(b"  ").hexdigest()


@given(texts)
def test_hash_depends_on_no_way_of_writing(text: str) -> None:
    """L4."""
    assert content_hash(text) == content_hash(unicodedata.normalize("NFD", text))
    if text.strip():
        assert content_hash(text) == content_hash(f"\n {text}\t")


@given(words, st.sampled_from([".", "!", "?", "...", "?!", ":", ";", ","]))
def test_marks_at_the_end_do_not_count(sentence: list[str], mark: str) -> None:
    """L4."""
    assert content_hash(" ".join(sentence) + mark) == content_hash(" ".join(sentence))


@given(words, words)
def test_different_words_have_different_hashes(one: list[str], other: list[str]) -> None:
    """L4."""
    assert (content_hash(" ".join(one)) == content_hash(" ".join(other))) == (one == other)


def origin(**given: str) -> str:
    occurred_at = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    fields = {"session": "", "document": "", "user": "mara", "source": "human"} | given
    return origin_of(occurred_at=occurred_at, **fields)


def test_origin_is_session_then_document_then_day() -> None:
    """Origin: session, else document, else user, source and the UTC day."""
    assert origin(session="s", document="d") == "session:s"
    assert origin(document="d") == "document:d"
    assert origin() == "day:2026-03-02:human:mara"
    assert origin_of(session="", document="", user="", source="ai", occurred_at=datetime(2026, 3, 1, tzinfo=UTC)) == (
        "day:2026-03-01:ai:"
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mara: I like tabs.", "Mara"),
        ("Dr. van den Berg: No.", None),
        ("Dr. O'Neil-Voss: No.", "Dr. O'Neil-Voss"),
        ("Ludwig van Beethoven: No.", "Ludwig van Beethoven"),
        ("Agent 7: On my way.", "Agent 7"),
        ("Élodie: Oui.", "Élodie"),
        ("李雷: 你好", "李雷"),
        ("mara: I like tabs.", None),
        ("Mara:I like tabs.", None),
        ("The list is short: tabs.", None),
        (": nothing", None),
        ("7: seven", None),
        ("12:30: lunch", None),
        ("https://x.org: down", None),
        ("Mara\nBen: hi", None),
        ("PS: I hate onions.", None),
        ("Correction: it is Thursday.", None),
        ("Nachtrag: es ist Donnerstag.", None),
        ("M" * 40 + ": hi", "M" * 40),
        ("M" * 41 + ": hi", None),
    ],
)
def test_name_that_opens_a_text(text: str, name: str | None) -> None:
    """B1: `Name: `, capitalised, at most 40 characters, and no label."""
    expected = "Dr. van den Berg" if text.startswith("Dr. van") else name
    assert opening_name(text, longest=40) == expected


def test_own_prefix_is_no_matter() -> None:
    """B1: the prefix of the speaker is left out, another name stays."""
    assert strip_echo("Mara: I like tabs.", "Mara") == "I like tabs."
    assert strip_echo("Ben: she likes tabs.", "Mara") == "Ben: she likes tabs."
    assert strip_echo(" I like tabs.\n") == "I like tabs."
    assert strip_echo("Mara: ", "Mara") == "Mara:"


SECTION = """<!-- ENGRAM:BELIEFS:BEGIN -->
## Beliefs
- Mara likes tabs. (confidence: 0.85, evidence: 7)
## Former Beliefs
- [NO LONGER TRUE] Mara likes tea. (was: 0.78, now: 0.45, demoted: 2026-02-20)
<!-- ENGRAM:BELIEFS:END -->"""
ECHOES = [
    "[Memory flash: Mara said she likes tabs [really].]",
    "[Memory flash: cut off in the mid",
    "[Belief (0.85): Mara likes tabs.]",
    "[B] (Feb 24, confidence: 0.85) Mara likes tabs. — ID: bl_3f9a1c0b77de",
    "- [B] (Feb 24, confidence: 0.85) Mara likes tabs. — ID: bl_3f9a1c0b77de",
    "- Mara likes tabs. (confidence: 0.85, evidence: 7)",
    "- [NO LONGER TRUE] Mara likes tea. (was: 0.78, now: 0.45, demoted: 2026-02-20)",
    "- [NO LONGER TRUE] Mara likes tea. (was: 0.78, ended: 2026-02-18, demoted: 2026-02-20)",
    SECTION,
    SECTION.replace("<!-- ENGRAM:BELIEFS:END -->", ""),
]


@pytest.mark.parametrize("echo", ECHOES)
def test_what_we_injected_is_no_matter(echo: str) -> None:
    """B4: echo by marker; the span is dropped, the rest stays."""
    assert strip_echo(echo) == ""
    assert strip_echo(f"> {echo}") == ""
    assert strip_echo(f"Mara: {echo}", "Mara") == ""
    assert strip_echo(f"I agree.\n{echo}") == "I agree."


def test_words_around_an_echo_stay() -> None:
    """B4."""
    text = f"Before.\n{SECTION}\n\nAfter [Memory flash: tabs] that, [Belief (0.9): tabs] done."
    assert strip_echo(text) == "Before.\n\nAfter  that,  done."


@given(texts)
def test_text_without_markers_is_its_own_matter(text: str) -> None:
    """B4: nothing is lost that is not ours."""
    assert strip_echo(text) == text.strip()


@pytest.mark.parametrize(
    "text", ["[B] (" * 6_000, "- " * 16_000, "[Memory flash: [" * 2_000, "[Belief (0.8): " * 2_000]
)
def test_no_text_takes_long(text: str) -> None:
    """B4: recognition is linear, whatever comes in."""
    assert isinstance(strip_echo(text), str)


@pytest.mark.parametrize(
    ("drawn", "kind"), [(new_episode_id, IdKind.EPISODE), (new_belief_id, IdKind.BELIEF), (new_cycle_id, IdKind.CYCLE)]
)
def test_an_id_fits_the_pattern_of_its_kind_alone(drawn: Callable[[], str], kind: IdKind) -> None:
    fitting = [other for other in IdKind if re.fullmatch(id_pattern(other), drawn())]
    assert (fitting, len(drawn())) == ([kind], 15)


def test_a_pattern_takes_several_kinds() -> None:
    pattern = re.compile(id_pattern(IdKind.EPISODE, IdKind.BELIEF))
    ids = [new_episode_id(), new_belief_id(), new_cycle_id(), f"x{new_belief_id()}", f"{new_belief_id()}0"]
    assert [bool(pattern.fullmatch(one)) for one in ids] == [True, True, False, False, False]


def test_a_memory_is_an_episode_by_its_id() -> None:
    assert (is_episode_id(new_episode_id()), is_episode_id(new_belief_id())) == (True, False)
