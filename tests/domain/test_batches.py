"""B8.4: which texts are judged against which statements in one call."""

import pytest

from memory.domain.batches import JudgingBatch, batch_pairs

TEXTS = [f"t{number}" for number in range(30)]


def cut(waiting: dict[str, list[str]], *, statements: int = 5, texts: int = 12) -> list[tuple[str, int]]:
    """Return the statements of each batch, and how many texts it has."""
    found = batch_pairs(waiting=waiting, texts=TEXTS, most_statements=statements, most_texts=texts)
    return [("".join(batch.statements), len(batch.texts)) for batch in found]


def test_statements_that_wait_for_the_same_texts_share_a_call() -> None:
    assert cut({"A": TEXTS[:9], "B": TEXTS[:9], "C": TEXTS[:8]}) == [("ABC", 9)]


def test_statements_that_share_few_texts_have_calls_of_their_own() -> None:
    assert cut({"A": TEXTS[:6], "B": TEXTS[5:12]}) == [("A", 6), ("B", 7)]


def test_a_statement_with_one_text_is_not_shown_eleven_others() -> None:
    assert cut({"A": TEXTS[:12], "B": TEXTS[:1]}) == [("A", 12), ("B", 1)]


def test_what_waits_for_nothing_is_in_no_call() -> None:
    assert cut({"A": [], "B": TEXTS[:2]}) == [("B", 2)]
    assert cut({}) == []


@pytest.mark.parametrize(
    ("waiting", "found"),
    [
        ({"A": TEXTS[:25]}, [("A", 12), ("A", 12), ("A", 1)]),
        ({"A": TEXTS[:13], "B": TEXTS[:12]}, [("AB", 12), ("A", 1)]),
    ],
)
def test_a_call_has_twelve_texts_at_most(waiting: dict[str, list[str]], found: list[tuple[str, int]]) -> None:
    """B8.4: and a statement is asked about only beside a text that it waits for."""
    assert cut(waiting) == found


def test_a_call_has_five_statements_at_most() -> None:
    assert cut(dict.fromkeys("ABCDEFG", TEXTS[:3])) == [("ABCDE", 3), ("FG", 3)]


def test_texts_keep_their_order() -> None:
    [batch] = batch_pairs(waiting={"A": {"t3", "t1"}, "B": {"t1", "t3"}}, texts=TEXTS, most_statements=5, most_texts=12)
    assert batch == JudgingBatch(statements=("A", "B"), texts=("t1", "t3"))
