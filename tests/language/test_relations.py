"""E3: what a claim says about a belief, by slots, values and words."""

import pytest

from memory.domain.evidence import Verdict
from memory.language.claims import Speech, read_claims
from memory.language.readings import read_sentence
from memory.language.relations import ClaimRelation, relate_claim


def said_of(belief: str, text: str, *, person: str = "Nora", language: str = "en") -> ClaimRelation:
    """Return what a message says of a belief about the one who says it."""
    believed = read_sentence(belief, person=person, language=language)
    found = [
        relate_claim(
            claim=read_sentence(claim.sentence, person=person, subject=claim.subject, language=claim.language),
            belief=believed,
            is_explicit=claim.is_told,
        )
        for claim in read_claims(text=text, speech=Speech(user=person, language=language))
    ]
    return next(
        (one for one in found if one.verdict is not Verdict.IRRELEVANT),
        ClaimRelation(verdict=Verdict.IRRELEVANT, reason=""),
    )


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("Nora's manager is Ines Falk.", "I report to Ines"),
        ("Nora's editor is Helix.", "i write everything in helix"),
        ("The shop opens at 9 in the morning.", "we open at nine"),
        ("Nora wants no bullet points.", "please no bullets, ever"),
        ("Nora wants no bullet points.", "please always answer in plain paragraphs"),
        ("Loans run for 28 days and not 21.", "for loans the limit is 28 days"),
        ("Nora is allergic to walnuts.", "I can't eat anything with nuts"),
        ("Nora doesn't ship on Mondays.", "Mondays are frozen for releases"),
        ("Nora's brother won't fly.", "my brother won't set foot on a plane"),
        ("Loans run for 21 days.", "the limit for loans is 21 days"),
        ("Nora's wife is a vegetarian.", "my wife does not eat meat"),
        ("Nora works from home on Tuesdays.", "Tuesday is my day at home"),
        ("Rules: Nora wants no tabs.", "and rules: never leave a warning"),
    ],
)
def test_the_same_value_of_a_slot_supports(belief: str, text: str) -> None:
    assert said_of(belief, text).verdict is Verdict.SUPPORTS


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("Nora's editor is Helix.", "back on Emacs since Friday, helix is uninstalled"),
        ("The app is hosted on Heroku.", "we moved everything from Heroku to Hetzner"),
        ("Releases happen on Wednesdays.", "from now on releases happen on Mondays"),
        ("The tickets are in Jira.", "jira is gone, we use Linear now"),
        ("Nora has sold nothing; her car is a Volvo.", "I sold the Volvo"),
        ("Loans run for 21 days.", "from now on loans run for 28 days"),
        ("Nora works from home on Tuesdays.", "as of May my home office day is Thursday"),
        ("Errors are reported to Bugsnag.", "we're out with Bugsnag"),
        ("The crew has nine divers.", "from now on the crew has eleven divers"),
        ("Nora's manager is mr amadi.", "from May my manager is mrs keller"),
        ("Nora's manager is Mr Amadi.", "as of today my manager is Mr Keller"),
        ("Nora works at Kestrel.", "Thursday was my last day at Kestrel"),
        ("Nora's browser is Vivaldi.", "I went back to Firefox and I've already uninstalled Vivaldi"),
        ("Newsletter drafts are not proofread.", "from now on all newsletter drafts are proofread"),
    ],
)
def test_an_announced_change_ends_the_old(belief: str, text: str) -> None:
    """C1: of what has ended, nothing counts for the old."""
    found = said_of(belief, text)
    assert found.verdict is Verdict.CONTRADICTS
    assert found.ends


def test_what_has_ended_is_found_in_all_forms_of_a_german_word() -> None:
    """C1: "mit dem Rauchen aufgehört" and "raucht"."""
    assert said_of("Nora raucht.", "ich hab im Mai mit dem Rauchen aufgehört", language="de").ends


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("Nora drinks tea.", "I don't drink tea."),
        ("Nora doesn't drink tea.", "I drink tea."),
        ("Nora can dive.", "I can't dive"),
        ("Nora ships on Mondays.", "we never ship on Mondays"),
        ("Nora trinkt Kaffee.", "ich trinke keinen Kaffee"),
    ],
)
def test_the_contrary_counts_against_it_and_ends_nothing(belief: str, text: str) -> None:
    """E3: the same words, with a no in one of the two."""
    found = said_of(belief, text, language="de" if "Kaffee" in belief else "en")
    assert (found.verdict, found.ends) == (Verdict.CONTRADICTS, False)


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("The crew has nine divers.", "with Olu on board there are eleven divers on the crew from now on"),
        ("Choir practice is on Tuesdays.", "we talked about moving choir practice to Sundays, nobody wanted that"),
        ("The user lives in Porto.", "my brother just moved to Faro"),
        ("Unsere Ärztin ist Frau Sahin.", "Frau Sahin hat aufgehört, unsere Ärztin ist jetzt Frau Olsen"),
    ],
)
def test_a_change_supports_nothing_by_its_words_alone(belief: str, text: str) -> None:
    """C1: neither is it a change of what somebody else, or nobody, has changed."""
    language = "de" if belief.startswith("Unsere") else "en"
    found = said_of(belief, text, language=language)
    assert found.verdict is not Verdict.SUPPORTS
    assert not found.ends or language == "de"


def test_a_wish_is_denied_by_the_clause_that_names_it() -> None:
    """E3: what follows in another clause is wanted."""
    found = said_of("Nora wants answers in bullets.", "please stop with the bullets, paragraphs are what I want")
    assert found.verdict is Verdict.CONTRADICTS


def test_another_value_that_is_not_announced_contradicts_and_ends_nothing() -> None:
    """E4: a told claim counts against, and waits."""
    found = said_of("Nora's editor is Helix.", "my editor is Emacs")
    assert found.verdict is Verdict.CONTRADICTS
    assert not found.ends


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("At work Nora uses a MacBook.", "at home I use a ThinkPad"),
        ("On weekdays Nora has porridge.", "at weekends I have eggs"),
        ("Nora's editor is Helix.", "my neighbour keeps bees"),
        ("Nora's sister is vegetarian.", "I am vegetarian myself"),
        ("Nora wants the port noted in the runbook of the Jenkins box.", "CI is Jenkins"),
        ("Releases happen on Wednesdays.", "should we release on Mondays instead?"),
        ("Nora drinks coffee.", "I don't drink coffee after 4pm"),
        ("Nora takes sugar in her tea.", "my flatmate quit sugar in January"),
        ("Nora works in the kitchen.", "I don't work in the kitchen on Mondays"),
    ],
)
def test_another_context_or_matter_says_nothing(belief: str, text: str) -> None:
    found = said_of(belief, text)
    assert found.verdict is Verdict.IRRELEVANT or not found.ends


def test_what_a_sentence_ends_is_no_value_that_it_shares() -> None:
    """E3: "3 pm, not 2 pm" and "after years in Leipzig" share nothing with the old."""
    assert read_sentence("Nora moved from Heroku to Hetzner.", person="Nora").slots["hosting"] == {"hetzner"}


def test_a_day_that_ended_ends_nothing_that_is_of_another_matter() -> None:
    """E3: what moved from a Friday says nothing of what else is on Fridays; of the same matter it does."""
    moved = "Releases are no longer shipped on Friday."
    assert not said_of("Otis is bathed on Friday.", moved).ends
    assert said_of("Releases are shipped on Tuesday instead of Friday.", moved).verdict is Verdict.SUPPORTS


def test_a_sentence_is_compared_by_the_clauses_that_share_its_words() -> None:
    """E3: what it denies in another clause is of another matter."""
    belief = "Tarek never reads chats, he wants letters for all complaints."
    assert said_of(belief, "Tarek wants a letter for complaints").verdict is Verdict.SUPPORTS


def test_a_german_verb_is_one_word_in_all_its_forms() -> None:
    """E3: "misst" and "messen"."""
    belief = "Nora misst die Becken wöchentlich."
    assert said_of(belief, "wir messen die Becken jede Woche", language="de").verdict is Verdict.SUPPORTS


@pytest.mark.parametrize("said", ["I need a table by the window", "the windows need cleaning", "I run the shop"])
def test_a_common_word_fills_no_slot_of_another_matter(said: str) -> None:
    """E3: a member that is a common word, too, counts beside a word of its slot, or as a name."""
    assert not read_sentence(said, person="Nora").slots


@pytest.mark.parametrize(
    ("belief", "claim", "subject"),
    [
        ("A cone at Nora's kiosk costs 2.40 euros.", "A waffle at Nora's kiosk costs 3 euros from now on.", "kiosk"),
        ("Nora's crew does not dive on Sundays.", "The roll call of Nora's crew is on Tuesdays from now on.", "crew"),
    ],
)
def test_what_is_the_persons_is_not_all_one_matter(belief: str, claim: str, subject: str) -> None:
    """E3: of a kiosk or a crew many things are said; only of the same of them another value is a change."""
    owned = f"Nora's {subject}"
    found = relate_claim(
        claim=read_sentence(claim, person="Nora", subject=owned),
        belief=read_sentence(belief, person="Nora", subject=owned),
        is_explicit=True,
    )
    assert found.verdict is Verdict.IRRELEVANT


def test_what_is_the_persons_and_no_group_is_one_matter() -> None:
    """E3: a seminar has one day, and a new one is a change of it."""
    belief = read_sentence("Nora's seminar is on Tuesdays.", person="Nora", subject="Nora's seminar")
    claim = read_sentence("From now on Nora's seminar is on Thursdays.", person="Nora", subject="Nora's seminar")
    assert relate_claim(claim=claim, belief=belief, is_explicit=True).ends


def test_beside_a_model_another_value_is_judged_by_the_model() -> None:
    """E3: rules are sure of an end that names what ended, and of nearly the same words."""
    belief = read_sentence("Nora's ferry leaves at 7.15.", person="Nora")
    later = read_sentence("Nora's ferry now leaves from the new pier at 8.", person="Nora")
    ended = read_sentence("Nora's ferry leaves at 8 instead of 7.15.", person="Nora")
    assert relate_claim(claim=later, belief=belief, is_explicit=True).verdict is Verdict.CONTRADICTS
    assert relate_claim(claim=later, belief=belief, is_explicit=True, is_sure=True).verdict is Verdict.IRRELEVANT
    assert relate_claim(claim=ended, belief=belief, is_explicit=True, is_sure=True).ends


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("Vera lives in Trieste.", "Bruno lives in Basel now."),
        ("Vera lives in Trieste.", "Bruno lives in Trieste."),
        ("Nora lives in Trieste.", "Bruno lives in Basel."),
        ("Hugo plays chess on Fridays.", "Greta no longer plays chess on Fridays."),
        ("Ines drinks green tea in the breaks.", "Marta drinks green tea in the mornings."),
        ("From June on Ines works at Hill Clinic.", "From 1 January 2027 Karl works at the town hall."),
        ("Nora's manager is Dana.", "Bruno's manager is Ravi."),
        ("Nora's bank is Revolut.", "Eva's bank is ING."),
        ("Nora's database is Postgres.", "Bruno stopped using Postgres."),
        ("Nora's database is Postgres.", "Bruno has dropped Postgres for good."),
        ("Nora's office is in Leipzig.", "Anna left Leipzig."),
        ("Nora's doctor is Polish.", "My doctor is Weber now."),
        ("Nora lives in Berlin.", "I used to get lost in Berlin, now I do not."),
        ("Nora lives in Leipzig.", "I don't miss Leipzig anymore."),
        ("Nora lives in Berlin.", "I don't get lost in Berlin any more."),
    ],
)
def test_what_is_said_of_somebody_or_something_else_says_nothing(belief: str, text: str) -> None:
    assert said_of(belief, text).verdict is Verdict.IRRELEVANT


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("Nora's manager is Dana.", "Ravi is my manager."),
        ("Nora's manager is Dana.", "From 1 April my manager is Ravi."),
        ("Nora's phone plan is with Telmo.", "My phone plan is with Vonda."),
        ("Nora's doctor is Dr. Weiss.", "I've changed doctors, my doctor is Dr. Kern now."),
    ],
)
def test_another_name_for_what_is_somebodys_contradicts(belief: str, text: str) -> None:
    assert said_of(belief, text).verdict is Verdict.CONTRADICTS


def test_of_what_somebody_may_have_several_another_name_says_nothing() -> None:
    assert said_of("Nora's cousin is Anna.", "My cousin is Tom.").verdict is Verdict.IRRELEVANT


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ("Nora works at the library.", "I quit my job at the library, I work at the museum now."),
        ("Nora runs every morning.", "I don't run any more because of my knee."),
        ("Ines drinks coffee in the breaks.", "Ines stopped drinking coffee."),
        ("Ines drinks coffee in the breaks.", "Ines doesn't drink coffee any more."),
        ("Eva lives in Zurich.", "Eva used to live in Zurich."),
        ("Nora lives in Lyon.", "I live in Nantes now."),
        ("Eva works at Bosch.", "Eva works at Siemens now."),
    ],
)
def test_what_is_over_ends_it(belief: str, text: str) -> None:
    relation = said_of(belief, text)
    assert (relation.verdict, relation.ends) == (Verdict.CONTRADICTS, True)


def test_what_a_team_or_product_has_is_the_same_by_another_name() -> None:
    """Whose a database is may be put in several ways, and so may who somebody is that nobody knows by name."""
    assert said_of("Engram's database is MySQL.", "Our database is Postgres now.").ends
    assert said_of("The user's manager is Dana.", "My manager is Ravi now.", person="The user").ends
    believed = read_sentence("Mara prefers tabs over spaces.", person="The user")
    claim = read_sentence("Mara prefers tabs over spaces.", person="Mara")
    assert relate_claim(claim=claim, belief=believed, is_explicit=True).verdict is Verdict.SUPPORTS
