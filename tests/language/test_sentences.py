"""A long text in pieces: nothing is lost, and sentences stay whole."""

from collections.abc import Callable

import pytest
from engram_client.request import split_text as split_for_client
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.language.sentences import chunk_text, split_text
from memory.text.sentences import split_sentences as split_into_sentences
from tests.integrations.client import plugin_module

SENTENCES = [f"Mara keeps spare part number {number} in the cellar." for number in range(200)]


@pytest.mark.parametrize("between", [" ", "\n", "\n\n"])
def test_a_text_is_cut_between_sentences(between: str) -> None:
    """L3: each piece is as long as it may be, or at least half."""
    pieces = chunk_text(text=between.join(SENTENCES), longest=500)
    assert between.join(pieces) == between.join(SENTENCES)
    assert all(piece.endswith(".") and len(piece) <= 500 for piece in pieces)
    assert all(len(piece) >= 240 for piece in pieces[:-1])


def test_what_has_no_sentences_is_cut_between_words_or_anywhere() -> None:
    """L3."""
    assert all(piece.split() == ["word"] * len(piece.split()) for piece in chunk_text(text="word " * 99, longest=100))
    assert "".join(chunk_text(text="x" * 999, longest=100)) == "x" * 999
    assert chunk_text(text=" short ", longest=100) == [" short "]


def test_code_that_is_cut_stays_code() -> None:
    """L3: each piece of it is fenced, and what comes after it is not."""
    code = "\n".join(f"Mara keeps = part({number})." for number in range(100))
    pieces = chunk_text(text=f"Ana lives in Rome.\n```\n{code}\n```\nMara lives in Oslo.", longest=400)
    told = [sentence for piece in pieces for sentence in split_into_sentences(piece)]
    assert all(len(piece) <= 400 for piece in pieces)
    assert told == ["Ana lives in Rome.", "Mara lives in Oslo."]


# --- Parts that are kept: the same rule three times, for the plugin and the client stand alone

SPLITTERS = [split_text, plugin_module("keep_turns").split_text, split_for_client]
LONGEST = 32 * 1024
PIECES = st.sampled_from(
    ["a", "ü", "👩‍🌾", "e\u0301", " ", "\n", "\n\n", "\r\n", ". ", "!) ", "word ", "x" * 20, "\ud800"]
)


@pytest.fixture(params=SPLITTERS, ids=["server", "plugin", "client"])
def split(request: pytest.FixtureRequest) -> Callable[..., list[str]]:
    splitter: Callable[..., list[str]] = request.param
    return splitter


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=80).map("".join), st.integers(min_value=4, max_value=60))
def test_parts_join_to_the_text_and_are_short_enough(text: str, longest: int) -> None:
    """Bad input, B1: whoever splits it, into the same parts."""
    parts = split_text(text=text, longest=longest)
    assert "".join(parts) == text
    assert all(len(part.encode("utf-8", "replace")) <= longest for part in parts)
    assert all(parts) or parts == [""]
    assert all(splitter(text=text, longest=longest) == parts for splitter in SPLITTERS)


@pytest.mark.parametrize(
    ("between", "others"),
    [("\n\n", "Rye. Bread\nand more "), ("\n", "Rye. Bread and "), (". ", "Rye bread and "), (" ", "Brotkrümel🍞")],
    ids=["paragraphs", "lines", "sentences", "words"],
)
def test_a_text_is_split_at_its_best_border(split: Callable[..., list[str]], between: str, others: str) -> None:
    """Bad input, B1: paragraphs first, then lines, then sentences, then words."""
    text = between.join([others * 40] * 300)
    parts = split(text=text, longest=LONGEST)
    assert "".join(parts) == text
    assert all(LONGEST / 2 - 4 <= len(part.encode()) <= LONGEST for part in parts[:-1])
    assert all(part.endswith(between) for part in parts[:-1])


@pytest.mark.parametrize("character", ["x", "ü", "€", "🍞"])
@pytest.mark.parametrize("before", range(4))
def test_a_single_word_is_split_between_characters(
    split: Callable[..., list[str]], character: str, before: int
) -> None:
    """Bad input, B1: 200 KiB of it; no character that straddles the border is broken."""
    text = "x" * before + character * (200 * 1024 // len(character.encode()))
    parts = split(text=text, longest=LONGEST)
    assert "".join(parts) == text
    assert all(LONGEST - 4 < len(part.encode()) <= LONGEST for part in parts[:-1])


def test_what_just_fits_stays_whole(split: Callable[..., list[str]]) -> None:
    text = "ä" * (LONGEST // 2)
    assert split(text=text, longest=LONGEST) == [text]
    assert [len(part) for part in split(text=f"{text}a", longest=LONGEST)] == [LONGEST // 2, 1]
