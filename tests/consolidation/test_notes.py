"""What one note says of another, by the pair question asked both ways (L15, L18)."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from memory.consolidation.notes import Comparison, Relation, compare_memories, compare_texts
from memory.models import Episode
from tests.consolidation.pair_answers import CONTRADICTS, PARTIAL, SUPPORTS, script_pairs
from tests.factories import NOW

GLUTEN, DAIRY = "I must not eat gluten.", "I must not eat gluten or dairy."


def relation(older: str, newer: str, speaker: str = "") -> Relation:
    return compare_texts(newer=newer, older=older, speaker=speaker).relation


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mara prefers tea.", "Mara prefers tea!"),
        ("Never mail me on Sundays", "never  mail me\non Sundays."),
        ("```make up``` starts it", "```make up``` starts it."),
    ],
)
def test_the_same_words_say_the_same_whatever_the_reader_thinks(
    one: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = script_pairs(monkeypatch, {})
    assert compare_texts(newer=other, older=one, speaker="Mara") == Comparison(
        relation=Relation.SAME, is_borne_out=True
    )
    assert not scripted.asked


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I charge 65 €.", "I charge 65 $."),
        ("I write C.", "I write C++."),
        ("I like tea.", "I like tea?"),
        ("Start it: ```make up```", "Start it: ```make down```"),
        ("> nobody eats here\nThat is the rule.", "> everybody eats here\nThat is the rule."),
    ],
)
def test_signs_code_and_quotations_are_words_too(one: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """L18: what is left out of a comparison would be hidden by it."""
    script_pairs(monkeypatch, {})
    assert relation(one, other) is Relation.NONE


def test_other_words_say_the_same_only_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """L18: the pair question."""
    one, other = "Fridays are for my comic.", "I draw my own comic on Fridays."
    script_pairs(monkeypatch, {(one, other): SUPPORTS, (other, one): SUPPORTS})
    assert relation(one, other) is Relation.SAME
    script_pairs(monkeypatch, {(one, other): SUPPORTS})
    assert compare_texts(newer=other, older=one, speaker="") == Comparison(is_borne_out=True)


@pytest.mark.parametrize("back", [SUPPORTS, PARTIAL], ids=["supports", "partial"])
def test_the_one_that_says_more_stays_whichever_is_older(monkeypatch: pytest.MonkeyPatch, back: Any) -> None:
    """L18: "or dairy" is never lost, though a reader may take what is said in part for support."""
    script_pairs(monkeypatch, {(GLUTEN, DAIRY): SUPPORTS, (DAIRY, GLUTEN): back})
    assert relation(GLUTEN, DAIRY) is Relation.NEWER_SAYS_MORE
    assert relation(DAIRY, GLUTEN) is Relation.OLDER_SAYS_MORE


def test_words_alone_do_not_say_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """L18: "I eat no meat" has all the words of "I eat meat"."""
    script_pairs(monkeypatch, {("I eat meat.", "I eat no meat."): CONTRADICTS})
    assert relation("I eat meat.", "I eat no meat.") is Relation.CONFLICT
    script_pairs(monkeypatch, {})
    assert relation("I eat meat.", "I eat no meat.") is Relation.NONE


def test_each_sentence_is_held_by_some_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """L18."""
    script_pairs(monkeypatch, {})
    both = "I never eat pork. I drink tea."
    assert relation("I drink tea.", both) is Relation.NEWER_SAYS_MORE
    assert relation(both, "I drink tea.") is Relation.OLDER_SAYS_MORE
    assert relation(both, "I drink tea. I never eat pork.") is Relation.SAME
    assert relation(both, "I drink tea. I never eat lamb.") is Relation.NONE


def test_what_says_several_things_does_not_fall_with_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """L18: what else it says would be hidden with it."""
    script_pairs(monkeypatch, {("I drink tea.", "I gave up tea."): CONTRADICTS})
    assert relation("I drink tea.", "I gave up tea.") is Relation.CONFLICT
    assert relation("I drink tea. I never eat pork.", "I gave up tea.") is Relation.NONE


def test_nothing_falls_with_a_part_of_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """L18: what else it says would be hidden with it."""
    long, short = "I joined the choir, but left it in May.", "I joined the choir."
    script_pairs(monkeypatch, {(long, short): CONTRADICTS})
    assert relation(long, short) is Relation.NONE


def test_a_question_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "Did I give up tea?"
    script_pairs(monkeypatch, {("I drink tea.", asked): CONTRADICTS})
    assert compare_texts(newer=asked, older="I drink tea.", speaker="") == Comparison()


def test_what_the_reader_would_see_in_part_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """L18: the end of a long text may say what its beginning does not."""
    scripted = script_pairs(monkeypatch, {})
    long = "I keep the keys of the boat house " + "and of the shed " * 20
    assert relation(f"{long} in Oslo.", f"{long} in Bergen.") is Relation.NONE
    assert relation(" ".join(f"Rule {n}." for n in range(9)), "Rule 3.") is Relation.NONE
    assert not scripted.asked


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I must not eat gluten or dairy.", "I must not eat gluten."),
        ("The dentist is at 3 pm.", "The dentist is at 4 pm, not 3 pm."),
        ("The meeting is at 3 pm.", "No, the meeting is at 4 pm, not at 3 pm."),
        ("I take the bus.", "I take the bus only when it rains."),
        ("I eat meat.", "I eat no meat."),
        ("I work on Fridays.", "I never work on Fridays."),
        ("Ich esse Fleisch.", "Ich esse kein Fleisch mehr."),
        ("My sister is a vegetarian.", "My sister is not a vegetarian."),
        ("I prefer tabs over spaces.", "I prefer spaces over tabs."),
        ("I charge 65 euros an hour.", "I charge 80 euros an hour."),
    ],
)
@pytest.mark.parametrize("is_turned", [False, True], ids=["as said", "turned round"])
def test_our_own_reader_takes_no_other_thing_for_the_same(older: str, newer: str, is_turned: bool) -> None:
    """L18: what hides a text is chosen for precision."""
    said = (newer, older) if is_turned else (older, newer)
    found = compare_texts(newer=said[1], older=said[0], speaker="Mara")
    assert found.relation in {Relation.NONE, Relation.CONFLICT, Relation.OLDER_SAYS_MORE}
    assert not (found.relation is Relation.OLDER_SAYS_MORE and "dairy" not in said[0])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Stand-up is at nine.", "Stand-up is at ten now."),
        ("Never send me mails on Sunday.", "You may send me mails on Sunday now."),
        ("The dentist is at 3 pm.", "The dentist is at 4 pm now."),
    ],
)
def test_our_own_reader_knows_a_plain_change(older: str, newer: str) -> None:
    """L18."""
    assert relation(older, newer, "Mara") is Relation.CONFLICT


def note(text: str, *, minutes: float = 0, **given: Any) -> Episode:
    fields = {"category": "preference", "speaker": "Mara", "source": "human", "confidence": 0.9}
    return Episode(text=text, occurred_at=NOW + timedelta(minutes=minutes), **fields | given)


OLD, NEW = "Stand-up is at nine.", "Stand-up is at ten now."


@pytest.mark.parametrize(
    ("older", "newer", "similarity", "expected"),
    [
        ({}, {}, 0.9, Relation.CONFLICT),
        ({}, {}, 0.69, Relation.NONE),
        ({}, {"speaker": "Jon"}, 0.9, Relation.NONE),
        ({}, {"source": "ai"}, 0.9, Relation.NONE),
        ({"source": "ai"}, {"source": "ai"}, 0.9, Relation.NONE),
        ({}, {"confidence": 0.3}, 0.9, Relation.NONE),
        ({}, {"confidence": None}, 0.9, Relation.CONFLICT),
        ({}, {"minutes": 0}, 0.9, Relation.NONE),
        ({"category": "fact"}, {}, 0.9, Relation.NONE),
        ({"category": "moment"}, {"category": "correction"}, 0.9, Relation.CONFLICT),
        ({}, {"category": "moment"}, 0.9, Relation.NONE),
    ],
    ids=[
        "plain", "far", "another speaker", "a model's word", "of documents", "a guess", "posted", "not later",
        "an event", "an event corrected", "by an event",
    ],
)  # fmt: skip
def test_which_notes_are_superseded(
    older: dict[str, Any], newer: dict[str, Any], similarity: float, expected: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L18, D7."""
    script_pairs(
        monkeypatch, {(f"Mara: {OLD}", f"Mara: {NEW}"): CONTRADICTS, (f"Jon: {OLD}", f"Jon: {NEW}"): CONTRADICTS}
    )
    met = compare_memories(
        newer=note(NEW, **{"minutes": 5} | newer),
        older=note(OLD, **older),
        similarity=similarity,
        policy=settings.POLICY,
    )
    assert met == Comparison(relation=expected)


def test_a_correction_confirms_nothing() -> None:
    """L18: though it has the words of what it corrects."""
    said = "Stand-up is at nine."
    plain = compare_memories(newer=note(said, minutes=5), older=note(said), similarity=1.0, policy=settings.POLICY)
    corrected = compare_memories(
        newer=note(said, minutes=5, category="correction"), older=note(said), similarity=1.0, policy=settings.POLICY
    )
    assert (plain.is_borne_out, corrected.is_borne_out) == (True, False)


def test_what_is_no_note_may_confirm_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """L15, L18: an event is told twice."""
    scripted = script_pairs(monkeypatch, {})
    first, again = note("I saw the Ring.", category="moment"), note("I saw the Ring!", category="moment", minutes=5)
    met = compare_memories(newer=again, older=first, similarity=0.99, policy=settings.POLICY)
    assert met == Comparison(is_borne_out=True)
    assert not scripted.asked
