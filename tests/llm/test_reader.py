"""The reader that ships with the project: what it makes of plain sentences, alone and in company."""

from pathlib import Path

import numpy as np
import pytest

from memory.domain.taxonomy import Category
from memory.llm.onnx_models import ModelUnavailable
from memory.llm.reader import (
    CENTRES,
    CHANGE,
    CONTRADICTS,
    FOLDER,
    IRRELEVANT,
    LASTING,
    NONE,
    SUPPORTS,
    TOKENIZER,
    WEIGHTS,
    Reader,
    reader,
    spoken,
)

READER = reader()
BELIEF = "Jonna: my piano lesson is on Wednesdays"


@pytest.mark.parametrize("changed", [WEIGHTS, TOKENIZER, CENTRES])
def test_the_name_changes_with_each_file(changed: str, tmp_path: Path) -> None:
    """What one training answered never passes for what another would."""
    for name in (WEIGHTS, TOKENIZER, CENTRES):
        (tmp_path / name).symlink_to(FOLDER / name)
    assert Reader(folder=tmp_path).version == READER.version
    (tmp_path / changed).unlink()
    (tmp_path / changed).write_bytes(b"another training")
    assert READER.name.startswith("engram-reader-1@")
    assert len(READER.version) == 12
    assert Reader(folder=tmp_path).name != READER.name


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=WEIGHTS):
        Reader(folder=tmp_path).load()


def test_a_lasting_thing_is_told_from_a_question() -> None:
    message = "user: I work as a nurse at the children's ward. What time is it in Lisbon?"
    lasting, question = READER.worth(
        [("I work as a nurse at the children's ward.", message), ("What time is it in Lisbon?", message)]
    )
    assert lasting[LASTING] + lasting[CHANGE] > 0.8
    assert question[NONE] > 0.8


def test_a_later_sentence_bears_out_denies_or_leaves_alone() -> None:
    later = (
        "Jonna: can't do wednesday, that's my piano lesson as always",
        "Jonna: piano has moved to Mondays for good",
        "Jonna: the cat has learnt to open the fridge",
    )
    found = READER.relation([(BELIEF, sentence) for sentence in later]).argmax(axis=1)
    assert found.tolist() == [SUPPORTS, CONTRADICTS, IRRELEVANT]


def test_probabilities_do_not_depend_on_the_company() -> None:
    """The same message has the same answer on every road."""
    pair = (BELIEF, "Jonna: piano has moved to Mondays for good")
    company = [(BELIEF, f"Jonna: {'we ate soup and ' * n} slept") for n in range(1, 12)]
    alone = Reader().relation([pair])[0]
    assert np.array_equal(Reader().relation([*company, pair])[-1], alone)


def test_probabilities_sum_to_one_and_no_pairs_give_no_rows() -> None:
    assert READER.worth([("I row on Sundays.", "user: I row on Sundays.")]).sum() == pytest.approx(1, abs=1e-4)
    assert READER.relation([]).shape == (0, 4)
    assert READER.vectors([]).shape == (0, 384)


def test_a_pair_is_cut_at_the_longer_side() -> None:
    """A long message takes nothing from the sentence that is asked about."""
    sentence = "I never eat fish."
    tail = "and then we walked on along the river for a while " * 40
    first, second = (f"user: {sentence} {tail} {end}" for end in ("one", "two"))
    assert np.array_equal(READER.worth([(sentence, first)]), READER.worth([(sentence, second)]))
    assert not np.array_equal(READER.worth([(sentence, first)]), READER.worth([("What about fish?", first)]))


@pytest.mark.parametrize("text", ["the " * 8_000, "x" * 32_000, "1 " * 16_000, "。" * 32_000])
def test_a_text_of_any_length_is_read(text: str) -> None:
    assert np.isfinite(READER.relation([(text, text)])).all()
    assert np.linalg.norm(READER.vectors([text])[0]) == pytest.approx(1, abs=1e-3)


def test_vectors_know_meaning_across_languages() -> None:
    english, german, other = READER.vectors(
        ["I go swimming every morning.", "Ich gehe jeden Morgen schwimmen.", "The invoice is due in May."]
    )
    assert english @ german > english @ other


def test_vectors_of_one_text_are_computed_once() -> None:
    fresh = Reader()
    fresh.vectors(["We keep bees.", "We keep bees."])
    assert fresh._vector.cache_info().misses == 1


def test_the_same_words_say_the_same_and_other_things_do_not() -> None:
    assert READER.says_the_same("Ole: I'm allergic to peanuts.", "Ole: i’m allergic to PEANUTS")
    assert not READER.says_the_same("Ole: I'm allergic to peanuts.", "Ole: I charge 70 an hour.")
    assert not READER.says_the_same("Ole: I charge 65 an hour.", "Ole: I charge 70 an hour.")


@pytest.mark.parametrize(("back", "same"), [(0.9, True), (0.5, False)])
def test_two_statements_must_bear_each_other_out(monkeypatch: pytest.MonkeyPatch, back: float, same: bool) -> None:
    rows = np.array([[0.05, 0.9, 0.05, 0], [1 - back, back, 0, 0]], dtype=np.float32)
    monkeypatch.setattr(Reader, "relation", lambda model, pairs: rows)
    assert Reader().says_the_same("Ole: I work nights", "Ole: my shifts are at night") is same


def test_a_category_is_one_of_ours_or_none() -> None:
    """The head may be missing from a file."""
    found = READER.categories(["I prefer tea.", "We decided on Postgres."])
    assert len(found) == 2
    assert set(found) <= {*map(str, Category), ""}


def test_a_name_that_is_in_the_text_is_not_put_before_it() -> None:
    assert spoken("Ole", "Ole keeps bees.") == "Ole keeps bees."
    assert spoken("Ole", "I keep bees.") == "Ole: I keep bees."
    assert spoken("", "Bees are kept here.") == "Bees are kept here."
