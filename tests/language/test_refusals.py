"""B8: a candidate that cannot stand alone is refused with its reason, whatever model wrote it.

L3, B8: what programs print, and what nothing is left of but markers, is neither fact nor belief.
"""

import pytest

from memory.domain.policy_memories import RememberPolicy
from memory.domain.taxonomy import Role
from memory.language.facts import find_facts, read_facts, says_something
from memory.language.refusals import Refusal, refuse_statement, says_nothing

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


_REDACTED = [
    "My password is [redacted: password].",
    "The user's API key is [redacted: key].",
    "The password of the mail account is still [redacted: password]!",
    "The token: [redacted: token #0123456789ab].",
    "Mein Passwort lautet [redacted: password].",
    "[redacted: private key]",
]
_OUTPUT = [
    "Traceback (most recent call last):\n  File \"shop/cart.py\", line 9, in total\n    add(x)\nKeyError: 'price'",
    'File "shop/cart.py", line 9, in total',
    "    at Cart.total (/srv/shop/cart.js:3:5)",
    "TypeError: price is undefined",
    '{"status": "ok", "items": [1, 2], "name": "the report is done"}',
    '{\n  "status": "the report is done",\n  "items": 2\n}',
    '["the report is done", "the bill is paid"]',
    'The tool returned {"status": "the report is done"}.',
    "2026-03-01 12:00:00,113 ERROR worker is failing with a timeout",
    "drwxr-xr-x 2 root root 4096 Jan 1 12:00 src",
]
_SAID = [
    "The database runs at postgres://app:[redacted: password]@db.internal/app.",
    "My API key is [redacted: key] and it belongs to the billing service in Frankfurt.",
    "At the standup (10:30) the team agrees on a plan.",
    "The parser raises a ValueError for empty lines.",
    '"Dune": the best book that Mara knows.',
    "[[Garden]] links to the notes about [[Bees]].",
    "The config holds {name} where the user's name goes.",
]


@pytest.mark.parametrize("text", [*_REDACTED, *_OUTPUT])
def test_what_nobody_said_is_no_fact(text: str) -> None:
    facts = [fact for role in Role for fact in find_facts(text=text, role=role, number=1, speaker="")]
    assert (facts, says_nothing(text)) == ([], True)


@pytest.mark.parametrize("text", [*_REDACTED, *_OUTPUT])
def test_what_nobody_said_is_not_remembered(text: str) -> None:
    """R1: neither read by rules, nor believed where a model took it for a fact."""
    assert read_facts(text=text, speaker="", language="", policy=RememberPolicy()) == []
    assert not says_something(text=text, language="")


@pytest.mark.parametrize(("texts", "refusal"), [(_REDACTED, Refusal.REDACTED), (_OUTPUT, Refusal.OUTPUT)])
def test_it_is_no_belief_and_the_reason_is_named(texts: list[str], refusal: Refusal) -> None:
    """B8: step 3."""
    assert {refuse_statement(text) for text in texts} == {refusal}


@pytest.mark.parametrize("text", _SAID)
def test_what_says_more_is_kept(text: str) -> None:
    assert refuse_statement(text) not in (Refusal.REDACTED, Refusal.OUTPUT)
    assert not says_nothing(text)


def test_words_beside_a_traceback_are_read() -> None:
    text = f"The import fails on Windows since Monday.\n{_OUTPUT[0]}\nI prefer tabs on Linux."
    told = [fact.text for fact in find_facts(text=text, role=Role.USER, number=1)]
    assert told == ["The import fails on Windows since Monday.", "The user prefers tabs on Linux."]


@pytest.mark.parametrize(
    "text",
    [
        "Will do: always answer in Dutch.",
        "Noted: the key lies under the pot.",
        "Understood, I'll always answer in Dutch.",
        "I'll remember that the key lies under the pot.",
        "Okay: always answer in Dutch.",
    ],
)
def test_an_assistants_assent_tells_nothing_new(text: str) -> None:
    assert find_facts(text=text, role=Role.ASSISTANT, number=1) == []


def test_assent_is_small_talk_whoever_wrote_it_down() -> None:
    assert says_nothing("Will do: always answer in Dutch.")
