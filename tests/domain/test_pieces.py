"""A long text in pieces: nothing is lost, and sentences stay whole."""

import pytest

from memory.domain.conversation import Role
from memory.domain.fact_reading import find_facts
from memory.domain.pieces import cut_pieces

SENTENCES = [f"Mara keeps spare part number {number} in the cellar." for number in range(200)]


@pytest.mark.parametrize("between", [" ", "\n", "\n\n"])
def test_a_text_is_cut_between_sentences(between: str) -> None:
    """L3: each piece is as long as it may be, or at least half."""
    pieces = cut_pieces(text=between.join(SENTENCES), longest=500)
    assert between.join(pieces) == between.join(SENTENCES)
    assert all(piece.endswith(".") and len(piece) <= 500 for piece in pieces)
    assert all(len(piece) >= 240 for piece in pieces[:-1])


def test_what_has_no_sentences_is_cut_between_words_or_anywhere() -> None:
    """L3."""
    assert all(piece.split() == ["word"] * len(piece.split()) for piece in cut_pieces(text="word " * 99, longest=100))
    assert "".join(cut_pieces(text="x" * 999, longest=100)) == "x" * 999
    assert cut_pieces(text=" short ", longest=100) == [" short "]


def test_code_that_is_cut_stays_code() -> None:
    """L3: and is read for no facts, while what comes after it is."""
    code = "\n".join(f"Mara keeps = part({number})." for number in range(100))
    text = f"Ana lives in Rome.\n```\n{code}\n```\nMara lives in Oslo."
    pieces = cut_pieces(text=text, longest=400)
    told = [fact.text for piece in pieces for fact in find_facts(text=piece, role=Role.USER, number=1)]
    assert all(len(piece) <= 400 for piece in pieces)
    assert told == ["Ana lives in Rome.", "Mara lives in Oslo."]
