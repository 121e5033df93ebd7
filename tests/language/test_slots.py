"""E3: which slots a question is about, however its words are written."""

import pytest

from memory.language.quantities import find_values
from memory.language.slots import slots_asked


@pytest.mark.parametrize(
    ("question", "slot"),
    [
        ("who is my LINE MANAGER?", "manager"),
        ("Who's my boss, again?", "manager"),
        ("wer ist meine Vorgesetzte?", "manager"),
        ("shall I use --no-ff here?", "merging"),
    ],
)
def test_a_phrase_is_found_by_its_words_and_signs(question: str, slot: str) -> None:
    """E3: one that begins with a sign, too."""
    assert slot in slots_asked(question)


@pytest.mark.parametrize("question", ["what does bossy mean?", "who wrote boss.py?", "is it embossed?"])
def test_part_of_a_word_is_no_phrase(question: str) -> None:
    """E3."""
    assert "manager" not in slots_asked(question)


def test_what_stands_before_a_name_is_none_of_it() -> None:
    """E3: "From April Mara" is nobody."""
    assert find_values("From April Mara's manager is Ravi, no longer Dana.").person == {"mara", "ravi", "dana"}
    assert find_values("In May Joan Baez sang with Frau Quandt.").person == {"joan baez", "frau quandt"}
