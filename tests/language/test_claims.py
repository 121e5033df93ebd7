"""E1, E2, E5: a message is read into claims, each a sentence that stands alone, with how it is meant."""

from datetime import date

import pytest

from memory.language.claims import ReadClaim, Speech, read_claims, subject_of
from memory.language.clauses import EVIDENCE, Mode
from memory.language.third_person import tell_of
from tests.test_claims_data import read_messages

SAID_ON = date(2026, 3, 10)


def read(text: str, *, user: str = "Nora") -> list[ReadClaim]:
    return read_claims(text=text, speech=Speech(user=user, said_on=SAID_ON))


def told(text: str, *, user: str = "Nora") -> list[str]:
    """Return the sentences that may found a belief."""
    return [claim.sentence for claim in read(text, user=user) if claim.is_told and claim.mode in EVIDENCE]


def modes(text: str) -> set[Mode]:
    return {claim.mode for claim in read(text)}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("I keep goats, and I make cheese.", "Nora makes cheese."),
        ("btw my sister teaches physics in Graz", "Nora's sister teaches physics in Graz."),
        ("we rehearse on Mondays", "Nora rehearses on Mondays."),
        ("Ich arbeite bei der Stadtbibliothek.", "Nora arbeitet bei der Stadtbibliothek."),
        ("Meine Tochter lernt Schreinerin.", "Noras Tochter lernt Schreinerin."),
        ("ok no exclamation marks please", "Nora wants no exclamation marks."),
        ("I can't stand coriander", "Nora can't stand coriander."),
        ("Fridays are my day off", "Fridays are Nora's day off."),
        (
            "please don't use tables in your answers",
            "Nora wants the assistant not to use tables in the assistant's answers.",
        ),
        ("could you please not use headings?", "Nora wants the assistant not to use headings."),
        ("explain it again, and no lists please", "Nora wants no lists."),
        ("it takes me longer because I've got dyslexia", "Nora has got dyslexia."),
        ("there's a flood at ours so from the 9th I'm based in Leith", "From the 9th Nora is based in Leith."),
        ("we rehearse on Mondays and use the hall", "Nora rehearses on Mondays and uses the hall."),
        ("i crochet blankets for the hospice", "Nora crochets blankets for the hospice."),
        ("ich lern Dänisch", "Nora lernt Dänisch."),
        ("I've given up sugar", "Nora has given up sugar."),
        ("i drink 3 decafs a day", "Nora drinks 3 decafs a day."),
        ("our shed floods every spring, told you", "Nora's shed floods every spring."),
        ("renaud's on the ferries, he's a stoker", "Renaud is a stoker."),
    ],
)
def test_what_somebody_says_of_themselves_is_told_by_their_name(said: str, sentence: str) -> None:
    """E5: third person, one claim, no markup, no please."""
    assert sentence in told(said)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("everything that you need is here", "Everything that the assistant needs is here."),
        ("I gave you read access", "Nora gave the assistant read access."),
        ("when you have time I show you", "When the assistant has time Nora shows the assistant."),
    ],
)
def test_who_is_spoken_to_is_told_in_the_third_person(said: str, sentence: str) -> None:
    """E5: with its verb, where it is the one who does something."""
    assert tell_of(clause=said, name="Nora") == sentence


def test_first_and_third_person_words_of_one_person_are_one() -> None:
    """E2: who speaks of themselves by their name says I."""
    assert told("I'm allergic to cashews.") == told("Nora is allergic to cashews.") == ["Nora is allergic to cashews."]


def test_a_pronoun_means_whoever_was_named_last() -> None:
    """E1: yes, that one: a sentence must stand alone."""
    sentences = told("Ask Devika about the lease. She only answers letters, on paper.")
    assert sentences == ["Devika only answers letters, on paper."]


@pytest.mark.parametrize(
    ("said", "mode"),
    [
        ("should I learn Portuguese?", Mode.ASKED),
        ("if we moved to Lyon I would need a car", Mode.HYPOTHETICAL),
        ("I'd love a sailing boat one day", Mode.WISHED),
        ("I simply adore filling in tax forms", Mode.IRONIC),
        ("my uncle says the earth is hollow", Mode.QUOTED),
        ("I'll repaint the shed tomorrow", Mode.PLANNED),
        ("we moved the archive to Backblaze", Mode.CHANGE),
        ("Wenn ich in Bern wohnen würde, hätte ich einen Garten.", Mode.HYPOTHETICAL),
        ("Ich hätte so gern ein Pferd.", Mode.WISHED),
    ],
)
def test_how_a_thing_is_meant_is_kept_with_it(said: str, mode: Mode) -> None:
    """E1: the mode of a claim says whether it is evidence of anything."""
    assert modes(said) == {mode}


def test_a_change_names_what_ended_and_what_holds() -> None:
    """E1, C1: an announced change carries the old value's end and the new one's beginning."""
    [change] = read("we dropped Trello on Monday, Linear it is")

    assert change.mode is Mode.CHANGE
    assert change.ended == ("Trello",)
    assert change.slots == {"tickets": frozenset({"linear"})}


def test_what_is_still_so_announces_nothing() -> None:
    """C1: "still" confirms."""
    assert modes("I'm still on Firefox, whatever the others do") <= {Mode.ASSERTED}


@pytest.mark.parametrize(
    "text",
    [
        "thanks, that works",
        "```\nuser = 'nora'\nprint(user)\n```",
        "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nKeyError: 'tea'",
        "> Dear Nora,\n> I have moved to Oslo and my number is new.\n> Yours, Pim",
        "can you shorten this?",
    ],
)
def test_code_output_mail_and_small_talk_assert_nothing(text: str) -> None:
    """E1: as many claims as a text asserts, and no more."""
    assert told(text) == []


def test_a_list_of_rules_gives_one_claim_a_line() -> None:
    text = (
        "How to treat the servers:\n- staging: just deploy, don't ask me\n- production: show me the plan first, always"
    )
    assert [sentence.split(":")[0] for sentence in told(text)] == ["Staging", "Production"]


def test_a_wish_to_be_remembered_is_told() -> None:
    """E4: what is asked to be remembered founds from one episode."""
    [claim] = read("Remember that the spare key hangs behind the clock.")
    assert claim.is_told
    assert claim.sentence == "The spare key hangs behind the clock."


def test_relative_days_are_resolved() -> None:
    """E1: dates are resolved from when it was said."""
    [claim] = read("yesterday we switched to Codeberg")
    assert "2026-03-09" in claim.sentence


def test_no_told_sentence_is_longer_than_thirty_words_or_in_the_first_person() -> None:
    """E5, over all labelled messages."""
    messages = [message for language in ("en", "de") for message in read_messages(language)]
    for message in messages:
        for sentence in told(message["text"], user=message["user"]):
            words = f" {sentence.lower()} "
            assert len(sentence.split()) <= 30
            assert not any(f" {word} " in words for word in ("i", "my", "we", "our", "ich", "wir", "mein", "meine"))


def test_the_rules_find_most_of_what_is_asserted_and_little_else() -> None:
    """E1: held against messages that were labelled by somebody who has not seen the rules."""
    asserted = found = quiet = wrong = 0
    for message in [message for language in ("en", "de") for message in read_messages(language)]:
        sentences = [] if message["role"] == "assistant" else told(message["text"], user=message["user"])
        lasting = [claim for claim in message["claims"] if claim["mode"] in EVIDENCE]
        asserted += len(lasting)
        found += sum(_is_said(claim["contains"], sentences) for claim in lasting)
        quiet += not lasting
        wrong += not lasting and bool(sentences)

    assert found >= 0.65 * asserted
    assert wrong <= 0.05 * quiet


def _is_said(contains: list[str], sentences: list[str]) -> bool:
    return any(all(word.lower() in sentence.lower() for word in contains) for sentence in sentences)


def test_one_day_that_is_free_lasts_no_longer_than_that() -> None:
    """E4: a day of this week is no habit."""
    assert told("Thursday is a holiday, so there is no standup.") == []


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ("Our son no longer eats meat.", ("meat",)),
        ("The app is no longer deployed on Fridays.", ("friday",)),
        ("On Friday the app is not deployed any more.", ("friday",)),
        ("The app is deployed on Tuesday now, never on Friday.", ("friday",)),
    ],
)
def test_what_has_ended_is_the_thing_and_not_the_verb(said: str, ended: tuple[str, ...]) -> None:
    """E3: else all that is deployed at all would have ended."""
    assert [claim.ended for claim in read(said)] == [ended]


@pytest.mark.parametrize("said", ["I'm good.", "we have replied to the council", "I've been asked twice", "he is here"])
def test_what_says_nothing_or_happened_once_founds_nothing(said: str) -> None:
    """E4: a belief is of what lasts."""
    assert told(said) == []


def test_a_price_in_words_is_a_price() -> None:
    """E3: two spellings of one value."""
    spelt, written = (read_claims(text=text, speech=Speech(user="Nora"))[0] for text in PRICES)
    assert spelt.slots["price"] == written.slots["price"] == {"12.5"}


PRICES = ("I charge twelve and a half pence a line", "my price is 12.5p a line")


@pytest.mark.parametrize(
    "said",
    [
        "I need a commit message for this",
        "Ich brauche einen Text für die Startseite.",
        "Danach gehe ich hinaus.",
        "Wie ändere ich den Titel so, dass er passt?",
        "Meine Mutter hat angerufen.",
        "I have not changed the config",
        "trying to get the kiln to hold 900 degrees",
        "how many chairs should I order for my hall",
        "need a notice for my door",
        "I get the results on 9 October",
        "Mrs Abel is called Mrs Abel.",
        "I've stopped the clock in the hall",
        "I simply adore parking tickets",
    ],
)
def test_an_errand_or_a_story_founds_nothing(said: str) -> None:
    """E4: nor does a question in German whose clauses are told apart."""
    assert told(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "If Rolf ever moved to Vienna he would miss the river.",
        "If Vera gets the job, she moves to Milan in July.",
        "If Nora gets the job she will work at the insurance from July on.",
        "Vera almost moved to Milan.",
        "It is not true that Eva no longer eats meat.",
        "Eva hasn't moved to Zurich yet.",
    ],
)
def test_what_is_only_imagined_or_denied_is_no_evidence(said: str) -> None:
    assert modes(said).isdisjoint(EVIDENCE)


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        ("From June on Bruno works at the mill.", "bruno"),
        ("From 1 January 2027 Karl works at the town hall.", "karl"),
        ("Since last week I get up at six.", "The user"),
        ("From April my manager is Ravi.", "The user's manager is"),
    ],
)
def test_a_time_that_comes_first_is_no_subject(said: str, subject: str) -> None:
    assert read(said, user="The user")[0].subject == subject
    assert subject_of("On Nora's working days Nora needs freezer meals.", "Nora") == "Nora"


def test_a_person_without_a_name_is_written_small_within_a_sentence() -> None:
    assert told("Since last week I get up at six.", user="The user") == ["Since last week the user gets up at six."]
    assert tell_of(clause="I no longer cycle to work", name="The user") == "The user no longer cycles to work."


@pytest.mark.parametrize(
    "said",
    [
        "If I'm not mistaken, Tom will be my manager from July.",
        "I haven't told my boss yet that I've moved to Leipzig.",
    ],
)
def test_a_change_is_one_though_something_else_is_open(said: str) -> None:
    assert Mode.CHANGE in modes(said)


def test_what_somebody_does_no_more_is_told() -> None:
    assert told("I don't eat meat anymore.") == ["Nora doesn't eat meat anymore."]
