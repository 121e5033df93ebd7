"""L3 without a model: what facts a turn tells, read by rules."""

import time

import pytest

from memory.domain.lifecycle import is_summary_due
from memory.domain.policy import Policy
from memory.domain.taxonomy import Category, ExtractedFact, Role, Tier, tier_of
from memory.language.facts import find_facts
from memory.language.subjects import find_entities, normalise_entity
from memory.language.synthesis import summarize_sentences
from memory.llm.offline import static_embedder


def _told(text: str, *, speaker: str = "Mara", role: Role = Role.USER) -> list[ExtractedFact]:
    return find_facts(text=text, role=role, number=7, speaker=speaker, known={"Mara", "Jon"})


def _one(text: str, *, speaker: str = "Mara", role: Role = Role.USER) -> ExtractedFact:
    [fact] = _told(text, speaker=speaker, role=role)
    return fact


@pytest.mark.parametrize(
    "text",
    [
        "Hey Jon! Good to see you!",
        "Thanks a lot, that helps!",
        "What do you think of the plan?",
        "Wow, that's great!",
        "Sounds good to me!",
        "You did a great job on the parser.",
        "It was made for them.",
        "Taking in kids in need.",
        "Makes me feel connected.",
        "Fix the tests in the parser.",
        "I totally agree with that!",
        "Bitte behebe den Fehler im Parser.",
        "Please fix the tests in the parser.",
        "12 passed in 3.4s",
        "Books have such an awesome power.",
        "ok",
        "",
        "```\nAlways use tabs in this file.\n```",
        "Hallo Jon, wie geht es dir?",
        "Vielen Dank für die Hilfe!",
    ],
)
def test_what_says_nothing_that_stands_alone_is_no_fact(text: str) -> None:
    """L3: greetings, thanks, questions, fragments, orders, and what hangs on the sentence before."""
    assert _told(text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I prefer tabs over spaces.", "Mara prefers tabs over spaces."),
        ("Hey Jon! Yesterday I went to the dentist.", "Yesterday Mara went to the dentist."),
        ("Took a short trip to Rome last week.", "Mara took a short trip to Rome last week."),
        ("We deploy on Fridays, when all are rested.", "Mara: We deploy on Fridays, when all are rested."),
        ("Redis is our broker.", "Mara: Redis is our broker."),
        ("Please remember that the staging server is wiped at night.", "The staging server is wiped at night."),
        ("I promise to send you the logs.", "Mara promises to send Jon the logs."),
        ("Call me Mimi.", "Mara wants to be called Mimi."),
        ("# Notes\n- The cache lives in Redis", "The cache lives in Redis."),
        ("Ich trinke morgens Tee.", "Mara trinkt morgens Tee."),
        ("Ich trinke Tee, weil Kaffee mich müde macht.", "Mara: Ich trinke Tee, weil Kaffee mich müde macht."),
    ],
)  # fmt: skip
def test_a_fact_names_who_is_meant(text: str, told: str) -> None:
    """L3: it stands alone, in the third person where that is safe, else as that speaker's words."""
    assert _one(text).text == told


@pytest.mark.parametrize(
    ("text", "role", "told"),
    [
        ("I prefer tabs over spaces.", Role.USER, "The user prefers tabs over spaces."),
        ("My editor is Vim.", Role.USER, "The user's editor is Vim."),
        ("I fixed the build of the parser.", Role.ASSISTANT, "The assistant fixed the build of the parser."),
        ("Ich mag starken Kaffee.", Role.USER, "Nutzer mag starken Kaffee."),
    ],
)  # fmt: skip
def test_without_a_name_the_role_is_named(text: str, role: Role, told: str) -> None:
    """L3: what the assistant did is not what the user did."""
    assert _one(text, speaker="", role=role).text == told


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("No, I meant the staging server.", Category.CORRECTION),
        ("Nein, der Server steht in Berlin.", Category.CORRECTION),
        ("We decided to use Postgres for the queue.", Category.DECISION),
        ("Ich habe mich für Postgres entschieden.", Category.DECISION),
        ("I'll send the report on Monday.", Category.COMMITMENT),
        ("Ich werde den Bericht schicken.", Category.COMMITMENT),
        ("Always run the linter before a commit.", Category.PRINCIPLE),
        ("Secrets must never be logged.", Category.PRINCIPLE),
        ("And never commit to the main branch.", Category.PRINCIPLE),
        ("From now on, write all pages in British English.", Category.PRINCIPLE),
        ("Commits sollen immer auf Deutsch sein.", Category.PRINCIPLE),
        ("I prefer short meetings.", Category.PREFERENCE),
        ("Ich mag kurze Treffen.", Category.PREFERENCE),
        ("My sister Ana is a doctor in Graz.", Category.RELATIONSHIP),
        ("To reset the cache, run the purge script.", Category.SKILL),
        ("Redis is the broker of the project.", Category.ENTITY),
        ("I visited Graz in the summer.", Category.MOMENT),
        ("The parser reads a file in two passes.", Category.FACT),
    ],
)
def test_each_category_has_its_words(text: str, category: Category) -> None:
    """L3: ten categories."""
    assert _one(text).category is category


@pytest.mark.parametrize(
    ("text", "role", "tier"),
    [
        ("I live in Graz.", Role.USER, Tier.EXPLICIT),
        ("I hope to move to Graz.", Role.USER, Tier.IMPLIED),
        ("Maybe I should move to Graz.", Role.USER, Tier.INFERRED),
        ("I wonder if Graz has a good library, no idea.", Role.USER, Tier.SPECULATIVE),
        ("The build fails on Windows.", Role.ASSISTANT, Tier.IMPLIED),
    ],
)
def test_hedges_lower_the_confidence(text: str, role: Role, tier: Tier) -> None:
    """L3: explicit, implied, inferred, speculative."""
    assert tier_of(confidence=_one(text, role=role).confidence) is tier


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Jon quit his job because the pay was too low.", "The pay was too low"),
        ("The tests were slow, so Mara split them.", "The tests were slow"),
        ("Jon nimmt den Zug, weil das Auto kaputt ist.", "Das Auto kaputt ist"),
    ],
)
def test_a_cause_is_read_off_because_and_so(text: str, cause: str) -> None:
    """L3: causes."""
    assert _one(text).causes == (cause,)


def test_a_fact_quotes_its_turn_and_feels_like_something() -> None:
    """L3: the turn's number; valence from -1 to 1."""
    good, bad = _one("I love the new library in Graz."), _one("The release was a terrible failure for Jon.")
    assert good.turns == bad.turns == (7,)
    assert good.valence > 0 > bad.valence


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I am vegan.", "Mara is vegan."),
        ("I'm not religious.", "Mara is not religious."),
        ("I'm 34.", "Mara is 34."),
        ("Ida is 7.", "Ida is 7."),
        ("Jon is vegetarian.", "Jon is vegetarian."),
        ("We use Postgres.", "Mara: We use Postgres."),
        ("We don't use Docker.", "Mara: We don't use Docker."),
        ("Ich bin Vegetarierin.", "Mara ist Vegetarierin."),
        ("Wir deployen dienstags.", "Mara: Wir deployen dienstags."),
    ],
)
def test_a_short_clause_that_says_what_lasts_is_a_fact(text: str, told: str) -> None:
    """L3: it has fewer words than other sentences need, and often matters more."""
    assert _one(text).text == told


@pytest.mark.parametrize(
    "text",
    [
        "I'm tired.", "I am back!", "I'm sure.", "I'm working.", "I'm done.", "We won!", "We had fun.", "We can talk.",
        "We love it!", "We know.", "We agreed.", "Life is good.", "Dinner is ready.", "It is red.", "He is 7.",
        "That's 7.", "Ich bin müde.", "Wir haben gewonnen.", "I'm in.", "We are here.",
    ],
)  # fmt: skip
def test_a_short_clause_that_says_how_things_are_just_now_is_none(text: str) -> None:
    """L3."""
    assert _told(text) == []


def test_an_assistant_says_nothing_of_itself_in_a_short_clause() -> None:
    """L3."""
    assert _told("I am ready.", speaker="", role=Role.ASSISTANT) == []
    assert _told("I am multilingual.", speaker="", role=Role.ASSISTANT) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Correction: the review is on Thursday, not Friday.", "The review is on Thursday, not Friday."),
        ("Sorry, I meant my sister is called Ada, not Ida.", "Mara's sister is called Ada, not Ida."),
        ("Actually I prefer spaces over tabs.", "Mara prefers spaces over tabs."),
        ("Korrektur: Die Probe beginnt am Donnerstag.", "Die Probe beginnt am Donnerstag."),
    ],
)
def test_what_announces_a_correction_is_left_out(text: str, told: str) -> None:
    """L3: the category keeps it, and the exact words (L6)."""
    fact = _one(text)
    assert (fact.text, fact.category) == (told, Category.CORRECTION)


def test_an_assistant_that_announces_its_steps_promises_nothing() -> None:
    """L3: "I'll look at the parser first" is no memory."""
    assert _told("I'll look at the parser first.", speaker="", role=Role.ASSISTANT) == []


def test_a_sentence_that_is_said_twice_is_one_fact() -> None:
    assert len(_told("I live in Graz. I live in Graz!")) == 1


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("Jon moved to New York with Ana.", ("jon", "new york", "ana")),
        ("The queue runs on PostgreSQL and C++.", ("postgresql", "c++")),
        ("Painting helps people on Mondays in March.", ()),
        ("Yesterday Jon slept.", ("jon",)),
    ],
)
def test_entities_are_names_in_one_form(text: str, entities: tuple[str, ...]) -> None:
    """L3: small, without a possessive; no weekday, no first word of a sentence."""
    assert find_entities(text=text, known={"Jon"}) == entities


def test_an_entity_has_one_form() -> None:
    assert normalise_entity("  New   York's ") == "new york"


@pytest.mark.parametrize(("turns", "due"), [(3, False), (4, False), (5, True), (6, False), (10, True), (0, False)])
def test_a_conversation_is_summed_up_at_every_fifth_turn(turns: int, due: bool) -> None:
    """R8: from 4 turns on."""
    assert is_summary_due(turns=turns, policy=Policy().extraction) is due


def test_a_summary_is_made_of_what_was_said() -> None:
    """R8: at most three sentences, in their order."""
    said = [f"Mara prefers short meetings in room {n}." for n in range(5)]
    summary = summarize_sentences(sayings=said, embed=static_embedder().embed)
    assert 1 <= summary.count(".") <= 3
    assert all(sentence in " ".join(said) for sentence in summary.split(". "))


def test_small_talk_has_no_summary() -> None:
    """R8: nothing."""
    assert summarize_sentences(sayings=["Mara is well."], embed=static_embedder().embed) == ""


@pytest.mark.parametrize("word", ["x" * 32_768, "X" * 32_768, "aB" * 16_384, "1" * 32_768, "ab_" * 10_922])
def test_names_are_found_in_one_long_word_in_no_time(word: str) -> None:
    """E6 (14): twice as long takes twice as long."""
    began = time.thread_time()
    find_entities(text=f"Anna wrote {word} today.")
    assert time.thread_time() - began < 0.5


def test_what_looks_technical_is_a_name() -> None:
    """E6 (14): as before: a capital or a digit inside, a point, a plus, a number sign."""
    assert find_entities(text="Mit pgVector, C++, node.js, F#, v2, snake_case und SQL8 geht es.", german=True) == (
        "pgvector", "c++", "node.js", "f#", "v2", "snake_case", "sql8",
    )  # fmt: skip
