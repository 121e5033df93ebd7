"""B8.4: which texts are judged against which statements in one call."""

import pytest

from memory.domain.clustering import JudgingBatch, PackedText, batch_pairs, gather_pairs, pack_texts

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


# --- Questions that texts are packed into (B8.3)


def packed(said: list[tuple[str, str]], *, statements: int = 4, texts: int = 3) -> list[str]:
    """Pack texts, given as a voice and their statements; return of each question its texts and statements."""
    given = [
        PackedText(key=f"{voice} {number}", voice=voice, statements=tuple(about))
        for number, (voice, about) in enumerate(said)
    ]
    packs = pack_texts(texts=given, most_statements=statements, most_texts=texts)
    return [
        " ".join([*(f"{text.key[0]}:{''.join(text.statements)}" for text in pack.texts), f"/{len(pack.statements)}"])
        for pack in packs
    ]


def test_texts_about_different_statements_share_a_question() -> None:
    assert packed([("a", "AB"), ("b", "C"), ("c", "BD")]) == ["a:AB b:C c:BD /4"]


def test_a_text_goes_where_it_adds_fewest_statements() -> None:
    assert packed([("a", "ABC"), ("b", "DEF"), ("c", "DG")]) == ["a:ABC /3", "b:DEF c:DG /4"]


def test_a_question_has_so_many_texts_and_one_of_each_voice() -> None:
    assert packed([("a", "A"), ("a", "A"), ("b", "A"), ("c", "A"), ("d", "A")]) == ["a:A b:A c:A /1", "a:A d:A /1"]


def test_a_text_about_more_than_a_question_takes_is_in_two() -> None:
    assert packed([("a", "ABCDEF"), ("b", "EF")]) == ["a:ABCD /4", "a:EF b:EF /2"]
    assert packed([]) == []


def test_every_pair_is_asked_about_once() -> None:
    said = [(f"v{n % 7}", "".join(sorted({chr(65 + (n * k) % 11) for k in range(1, 6)}))) for n in range(60)]
    given = [
        PackedText(key=f"{voice} {n}", voice=voice, statements=tuple(about)) for n, (voice, about) in enumerate(said)
    ]
    packs = pack_texts(texts=given, most_statements=8, most_texts=12)
    found = [(text.key, one) for pack in packs for text in pack.texts for one in text.statements]
    assert sorted(found) == sorted((text.key, one) for text in given for one in text.statements)
    assert all(len(pack.statements) <= 8 and len(pack.texts) == len(pack.voices) <= 12 for pack in packs)


def test_what_was_packed_is_one_question() -> None:
    """B8.3: though its statements wait for different texts; what has its verdict is left out."""
    assert gather_pairs(waiting={"A": ["t1"], "B": ["t0", "t2"], "C": []}, texts=TEXTS, most_texts=12) == [
        JudgingBatch(statements=("A", "B"), texts=("t0", "t1", "t2"))
    ]
