"""B8: a candidate that cannot stand alone is refused with its reason, whatever model wrote it."""

import pytest

from memory.language.refusals import Refusal, refuse_statement

GOOD = [
    "Mara thinks that tests should run before every commit.",
    "It is Mara's habit to write the changelog first.",
    "It takes two people to approve a release.",
    "Mara finds it hard to concentrate after lunch.",
    "Mara bought a cargo bike and rides it to the studio every day.",
    "Mara likes the rule that nobody deploys on Fridays.",
    "The linter that Jonas wrote runs in every project.",
    "Mara prefers tabs over spaces in Go code.",
    "Those who break the build bring cake.",
    "This project uses pnpm instead of npm.",
    "Never deploy to production on a Friday.",
    "The team reviews its backlog every Monday.",
    "Jonas is sure that the invoices go out on the first of each month.",
    "Caroline paints because painting helps them relax.",
    "The customers want their reports as PDF.",
    "The WLAN in Leipzig is too slow for video calls.",
    "Backups run every night at 2:30 and are kept for 14 days.",
    "Thankfully the archive server survived the power cut.",
]
GOOD_GERMAN = [
    "Jonas trinkt nach 15 Uhr keinen Kaffee mehr.",
    "Rechnungen gehen immer am Monatsersten raus.",
    "Es ist Maras Gewohnheit, das Änderungsprotokoll zuerst zu schreiben.",
    "Es gibt freitags keine Auslieferung in die Produktion.",
    "Das Büro bleibt im August geschlossen.",
    "Mara findet, dass das Handbuch auf Deutsch bleiben soll.",
]
BAD = [
    ("", Refusal.EMPTY),
    ("   ", Refusal.EMPTY),
    ("What does Mara drink in the morning?", Refusal.QUESTION),
    ("Where did you put the invoices, Mara", Refusal.QUESTION),
    ("Hey Caroline, good to see you again after all those weeks.", Refusal.GREETING),
    ("Long time no talk between the two of them.", Refusal.GREETING),
    ("Good morning from the train to Leipzig.", Refusal.GREETING),
    ("Thanks for the quick review of the importer.", Refusal.THANKS),
    ("Really appreciate your help with the importer.", Refusal.THANKS),
    ("Your support means a lot to the whole team.", Refusal.THANKS),
    ("Wow!", Refusal.SMALL_TALK),
    ("🎉🎉", Refusal.SMALL_TALK),
    ("Sounds like a great plan for the summer.", Refusal.SMALL_TALK),
    ("Good luck with the release tomorrow.", Refusal.SMALL_TALK),
    ("Believe in yourself and keep going.", Refusal.SMALL_TALK),
    ("Mara painted a lake. [shares a photo: a painting of a lake]", Refusal.SHARES_SPAN),
    ("Mara keeps notes " + "on every customer call and every tiny wish " * 4, Refusal.TOO_LONG),
    ("It was a great idea from the start.", Refusal.UNRESOLVED_REFERENCE),
    ("Caroline loves it and does it every week.", Refusal.UNRESOLVED_REFERENCE),
    ("That made Caroline very happy last summer.", Refusal.UNRESOLVED_REFERENCE),
    ("Caroline would never have thought of that.", Refusal.UNRESOLVED_REFERENCE),
    ("Mara really loves that place by the river.", Refusal.UNRESOLVED_REFERENCE),
    ("This helps Mara to plan the whole week.", Refusal.UNRESOLVED_REFERENCE),
    ("Mara uses this approach in every release.", Refusal.UNRESOLVED_REFERENCE),
    ("They prefer short meetings in the morning.", Refusal.UNRESOLVED_REFERENCE),
    ("The importer has run without errors since then.", Refusal.UNRESOLVED_REFERENCE),
    ("Mara thinks it is better than the old one.", Refusal.UNRESOLVED_REFERENCE),
    ("Caroline is happy that it worked out in the end.", Refusal.UNRESOLVED_REFERENCE),
    ("Lovely weather over Leipzig.", Refusal.FRAGMENT),
    ("Mara sleeps.", Refusal.FRAGMENT),
    ("People of all kinds celebrating love and acceptance.", Refusal.FRAGMENT),
]
BAD_GERMAN = [
    ("Was trinkt Jonas am Morgen?", Refusal.QUESTION),
    ("Guten Morgen aus dem Zug nach Leipzig.", Refusal.GREETING),
    ("Vielen Dank für die schnelle Rückmeldung.", Refusal.THANKS),
    ("Viel Erfolg bei der Auslieferung morgen.", Refusal.SMALL_TALK),
    ("Das ist für Jonas sehr wichtig geworden.", Refusal.UNRESOLVED_REFERENCE),
    ("Jonas mag das nicht.", Refusal.UNRESOLVED_REFERENCE),
    ("Es hat Jonas gestern sehr geholfen.", Refusal.UNRESOLVED_REFERENCE),
    ("Dies gilt auch für die Rechnungen.", Refusal.UNRESOLVED_REFERENCE),
    ("Schönes Wetter über Leipzig heute Mittag", Refusal.FRAGMENT),
]


@pytest.mark.parametrize("statement", GOOD)
def test_good_english_belief_is_kept(statement: str) -> None:
    """B8: what can stand alone passes."""
    assert refuse_statement(statement) is None


@pytest.mark.parametrize("statement", GOOD_GERMAN)
def test_good_german_belief_is_kept(statement: str) -> None:
    """B8: what can stand alone passes, in German too."""
    assert refuse_statement(statement, language="de") is None


@pytest.mark.parametrize(("statement", "reason"), BAD)
def test_bad_english_candidate_is_refused_with_its_reason(statement: str, reason: Refusal) -> None:
    """B8: questions, greetings, thanks, over-long and hanging sentences are refused by name."""
    assert refuse_statement(statement) is reason


@pytest.mark.parametrize(("statement", "reason"), BAD_GERMAN)
def test_bad_german_candidate_is_refused_with_its_reason(statement: str, reason: Refusal) -> None:
    """B8: the same in German."""
    assert refuse_statement(statement, language="de") is reason


def test_thirty_words_pass_and_thirty_one_do_not() -> None:
    """B10: a statement has at most 30 words."""
    thirty = "Mara wants " + " ".join(["invoices"] * 28)

    assert refuse_statement(thirty) is None
    assert refuse_statement(f"{thirty} today") is Refusal.TOO_LONG
