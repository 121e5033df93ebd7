"""Sentences, first person, and its rewriting to the speaker.

E2, B10: an id serves as a name, in what words a belief is asked for, if it is made of letters alone.
"""

import pytest

from memory.language.first_person import is_first_person, to_third_person
from memory.language.sentences import split_sentences
from memory.language.third_person import name_of_user


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Weber came, e.g. on Monday. He left.", ["Dr. Weber came, e.g. on Monday.", "He left."]),
        ("Version 1.5 is out. C++ too.", ["Version 1.5 is out.", "C++ too."]),
        ("Well... maybe not. But yes…", ["Well... maybe not.", "But yes…"]),
        ("Am 3. März ist Abgabe. Danach frei.", ["Am 3. März ist Abgabe.", "Danach frei."]),
        ("Das gilt z.B. im Büro. Sonst nicht.", ["Das gilt z.B. im Büro.", "Sonst nicht."]),
        ("Shipped! 🎉 Now lunch.", ["Shipped!", "🎉 Now lunch."]),
        ('She said "stop." Then silence.', ['She said "stop."', "Then silence."]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("", []),
    ],
)
def test_text_is_cut_at_sentence_ends_only(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("text", "language", "first"),
    [
        ("I prefer tabs.", "en", True),
        ("The review took me an hour.", "", True),
        ("Our deploys are on Tuesday.", "en", True),
        ("Ich trinke keinen Kaffee.", "de", True),
        ("Unsere Rechnungen gehen am Ersten raus.", "", True),
        ('Mara said "I prefer tabs" and left.', "en", False),
        ("World War I ended in 1918.", "en", False),
        ("The I/O of the disk is slow.", "en", False),
        ("The US office opens at nine.", "en", False),
        ("Mara prefers tabs.", "en", False),
        ("Jonas trinkt Tee.", "de", False),
    ],
)
def test_first_person_is_seen_outside_quotes(text: str, language: str, first: bool) -> None:
    assert is_first_person(text, language) is first


@pytest.mark.parametrize(
    ("sentence", "rewritten"),
    [
        ("I'm allergic to peanuts.", "Caroline is allergic to peanuts."),
        ("I love painting.", "Caroline loves painting."),
        ("I've always wanted a garden.", "Caroline has always wanted a garden."),
        ("I usually study in the mornings.", "Caroline usually studies in the mornings."),
        ("I don't eat meat.", "Caroline doesn't eat meat."),
        ("I can work on Mondays.", "Caroline can work on Mondays."),
        ("I went hiking with my kids.", "Caroline went hiking with their kids."),
        ("My kids love the beach.", "Caroline's kids love the beach."),
        ("I love my job and I want to keep it.", "Caroline loves their job and wants to keep it."),
        ("Painting helps me relax.", "Painting helps Caroline relax."),
        ("When I paint I feel calm.", "When Caroline paints they feel calm."),
        ("I'd love to open a studio.", "Caroline would love to open a studio."),
        (
            "Dance is my passion, and I'm working on a show.",
            "Dance is Caroline's passion, and Caroline is working on a show.",
        ),
        ("Tests run before every commit.", "Tests run before every commit."),
    ],
)
def test_first_person_becomes_the_speaker(sentence: str, rewritten: str) -> None:
    assert to_third_person(sentence, speaker="Caroline") == rewritten


@pytest.mark.parametrize(
    "sentence",
    [
        "We love the beach.",
        "I think you should rest.",
        "Did I tell the customer?",
        "She told me that the server is down.",
        'I always say "my way".',
        "I gronk the frobnicator.",
        "I read it on Monday.",
        "I want to sit and read.",
        "I met her when I moved.",
    ],
)
def test_unsafe_sentence_is_not_rewritten(sentence: str) -> None:
    assert to_third_person(sentence, speaker="Caroline") is None


@pytest.mark.parametrize(
    ("sentence", "rewritten"),
    [
        ("Ich trinke keinen Kaffee.", "Jonas trinkt keinen Kaffee."),
        ("Morgens trinke ich Tee.", "Morgens trinkt Jonas Tee."),
        ("Ich arbeite freitags nicht.", "Jonas arbeitet freitags nicht."),
        ("Ich bin gegen Nüsse allergisch.", "Jonas ist gegen Nüsse allergisch."),
        ("Ich freue mich auf den Sommer.", "Jonas freut sich auf den Sommer."),
        ("Laufen hilft mir beim Denken.", "Laufen hilft Jonas beim Denken."),
        ("Meine Kinder mögen Pizza.", "Jonas’ Kinder mögen Pizza."),
        ("Ich liebe meine Arbeit.", None),
        ("Wir fahren nach Leipzig.", None),
        ("Ich verschlimmbessere alles.", None),
    ],
)
def test_german_first_person_becomes_the_speaker_or_nothing(sentence: str, rewritten: str | None) -> None:
    assert to_third_person(sentence, speaker="Jonas", language="de") == rewritten


@pytest.mark.parametrize(
    ("user", "name"), [("mara", "Mara"), ("Mara", "Mara"), ("jürgen", "Jürgen"), ("McKay", "McKay")]
)
def test_letters_alone_are_a_name(user: str, name: str) -> None:
    assert name_of_user(user=user) == name


@pytest.mark.parametrize(
    "user", ["", "u-17", "mara@mill.test", "mara klein", "9f86d0", "user", "Owner", "admin", "mara_k", "test"]
)
def test_any_other_id_is_none(user: str) -> None:
    assert name_of_user(user=user) == ""
