"""Episodes and notes (L5), tiers of confidence (L3), and notes that put others aside (L18)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memory.domain.policy import Policy
from memory.domain.taxonomy import Category, Kind, Tier, tier_of
from memory.language.traits import Note, confirms, kind_of, supersedes

NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = Policy().extraction


@pytest.mark.parametrize(
    "text",
    [
        "Mara merged the branch yesterday.",
        "Mara prefers tea since last Tuesday.",
        "The rule was agreed on 2026-02-14.",
        "On March 3rd Mara decided to use Go.",
        "Mara always drank tea two weeks ago.",
        "Gestern hat Mara Tee getrunken.",
        "Am Freitag mag Mara keinen Tee.",
    ],
)
def test_a_true_marker_of_time_makes_an_episode(text: str) -> None:
    """L5, step 1: whatever the category and the tags say."""
    assert kind_of(text=text, category="preference", tags=["note"]) is Kind.EPISODE


@pytest.mark.parametrize("text", ["Mara runs on Fridays.", "Every Monday the team meets.", "Mara may run in March."])
def test_a_habit_is_no_marker_of_time(text: str) -> None:
    """L5, step 1: only true markers."""
    assert kind_of(text=text, category="preference") is Kind.NOTE


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        (Category.PREFERENCE, Kind.NOTE),
        (Category.DECISION, Kind.NOTE),
        (Category.COMMITMENT, Kind.NOTE),
        (Category.PRINCIPLE, Kind.NOTE),
        (Category.CORRECTION, Kind.NOTE),
        (Category.RELATIONSHIP, Kind.NOTE),
        (Category.SKILL, Kind.NOTE),
        (Category.MOMENT, Kind.EPISODE),
    ],
)
def test_the_category_comes_before_tags_and_verbs(category: Category, kind: Kind) -> None:
    """L5, step 2."""
    opposite = "episode" if kind is Kind.NOTE else "note"
    text = "Mara deployed the site." if kind is Kind.NOTE else "Mara always prefers tabs."
    assert kind_of(text=text, category=category, tags=[opposite]) is kind


@pytest.mark.parametrize("category", ["", Category.FACT, Category.ENTITY])
def test_tags_speak_where_the_category_does_not(category: str) -> None:
    """L5, step 3: and come before verbs."""
    assert kind_of(text="Mara deployed the site.", category=category, tags=["Rule"]) is Kind.NOTE
    assert kind_of(text="Mara prefers tabs.", category=category, tags=["meeting"]) is Kind.EPISODE


def test_note_tags_beat_episode_tags() -> None:
    """L5, step 3."""
    assert kind_of(text="Mara deployed the site.", tags=["meeting", "decision"]) is Kind.NOTE


def test_verbs_of_action_in_the_past_come_before_note_words() -> None:
    """L5, step 4."""
    assert kind_of(text="Mara always fixed the build herself.") is Kind.EPISODE


@pytest.mark.parametrize(
    "text",
    [
        "Mara prefers tabs.", "Secrets must stay out of logs.", "Mara mag Tee.",
        "We use Go.", "I am allergic to nuts.", "Wir nutzen Go.",
    ],
)  # fmt: skip
def test_note_words_make_a_note(text: str) -> None:
    """L5, step 5: of whoever is told of, or tells."""
    assert kind_of(text=text) is Kind.NOTE


def test_what_says_nothing_of_the_kind_is_an_episode() -> None:
    """L5, step 6."""
    assert kind_of(text="The parser is written in Go.", category="fact", tags=["compiler"]) is Kind.EPISODE


@pytest.mark.parametrize(
    ("confidence", "tier"),
    [
        (1.0, Tier.EXPLICIT), (0.95, Tier.EXPLICIT), (0.949, Tier.IMPLIED), (0.70, Tier.IMPLIED),
        (0.699, Tier.INFERRED), (0.40, Tier.INFERRED), (0.399, Tier.SPECULATIVE), (0.0, Tier.SPECULATIVE),
    ],
)  # fmt: skip
def test_tiers_begin_at_their_bounds(confidence: float, tier: Tier) -> None:
    """L3: explicit from 0.95, implied from 0.70, inferred from 0.40, else speculative."""
    assert tier_of(confidence=confidence) is tier


OLDER = Note(
    text="Mara prefers tabs over spaces.",
    kind=Kind.NOTE,
    speaker="Mara",
    language="en",
    occurred_at=NOW,
    trust=1.0,
    confidence=0.95,
)
NEWER = replace(OLDER, text="Mara prefers spaces over tabs.", occurred_at=NOW + timedelta(days=1))


def _puts_aside(newer: Note, older: Note = OLDER, similarity: float = 0.95) -> bool:
    return supersedes(newer=newer, older=older, similarity=similarity, policy=POLICY)


def test_what_says_several_things_does_not_fall_with_one_of_them() -> None:
    """L18: greetings beside it are none."""
    assert _puts_aside(NEWER, replace(OLDER, text="Hi! Mara prefers tabs over spaces."))
    assert not _puts_aside(NEWER, replace(OLDER, text="Mara prefers tabs over spaces. Mara lives in Graz."))


def test_a_newer_note_puts_an_older_one_aside() -> None:
    """L18: in conflict."""
    assert _puts_aside(NEWER)


@pytest.mark.parametrize(
    "newer",
    [
        replace(NEWER, text=OLDER.text),
        replace(NEWER, text="Mara prefers tea over coffee."),
        replace(NEWER, occurred_at=NOW),
        replace(NEWER, kind=Kind.EPISODE),
        replace(NEWER, speaker="Jon"),
        replace(NEWER, trust=0.7),
        replace(NEWER, confidence=0.3),
    ],
    ids=["the same", "another matter", "no later", "no note", "another speaker", "a model's word", "a guess"],
)
def test_what_is_no_conflict_of_equals_puts_nothing_aside(newer: Note) -> None:
    """L18: and episodes are never rewritten."""
    assert not _puts_aside(newer)


def test_an_episode_is_never_put_aside() -> None:
    """L18."""
    assert not _puts_aside(NEWER, replace(OLDER, kind=Kind.EPISODE))


CORRECTED = replace(OLDER, text="Mara's review is on Friday.", kind=Kind.EPISODE)
CORRECTION = replace(NEWER, text="Mara's review is on Thursday, not Friday.", kind=Kind.EPISODE, is_correction=True)


def test_a_correction_puts_aside_whatever_it_corrects() -> None:
    """L18: a day makes an episode of either, and what was said before is wrong all the same."""
    assert _puts_aside(CORRECTION, CORRECTED)
    assert not _puts_aside(replace(CORRECTION, is_correction=False), CORRECTED)


@pytest.mark.parametrize(
    "correction",
    [
        replace(CORRECTION, text="Mara's review is in the barn, not in the mill."),
        replace(CORRECTION, text=CORRECTED.text),
        replace(CORRECTION, speaker="Jon"),
        replace(CORRECTION, trust=0.7),
        replace(CORRECTION, occurred_at=NOW),
    ],
    ids=["another matter", "the same", "another speaker", "a model's word", "no later"],
)
def test_a_correction_leaves_what_it_does_not_correct(correction: Note) -> None:
    """L18."""
    assert not _puts_aside(correction, CORRECTED)


def test_distant_notes_are_not_compared() -> None:
    """L18: below 0.70 they are about different things."""
    assert not _puts_aside(NEWER, similarity=0.69)


@pytest.mark.parametrize(
    ("said", "is_confirmed"),
    [
        ("Mara likes tabs more than spaces.", True),
        ("Mara prefers tabs over spaces in every file.", True),
        ("Mara prefers spaces over tabs.", False),
        ("Mara is off to go swimming with the kids.", False),
    ],
)
def test_what_says_the_same_later_confirms(said: str, is_confirmed: bool) -> None:
    """L15: cosine alone vouches for nothing, and where the rules are not sure nothing is confirmed."""
    newer = replace(NEWER, text=said)
    assert confirms(newer=newer, older=OLDER, similarity=0.95, policy=POLICY) is is_confirmed


def test_the_speakers_name_brings_no_two_notes_together() -> None:
    """L18: all that one person says has their name in it."""
    dancing = replace(OLDER, text="Dancing is like second nature to Mara.")
    business = replace(NEWER, text="Mara is turning their loves of dance into a business.")
    assert not _puts_aside(business, dancing, similarity=0.75)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Mara prefers tabs over spaces.", "Mara prefers spaces over tabs."),
        ("Mara likes coffee in the morning.", "Mara does not like coffee in the morning."),
        ("The staging server runs on port 8000.", "The staging server runs on port 8080."),
        ("Mara uses Vim for all her notes.", "Mara never uses Vim for all her notes."),
    ],
)
def test_contradictions_of_each_kind_put_the_older_note_aside(older: str, newer: str) -> None:
    """L18."""
    assert _puts_aside(replace(NEWER, text=newer), replace(OLDER, text=older))
