"""L3, B8: what programs print, and what nothing is left of but markers, is neither fact nor belief."""

import pytest

from memory.domain.policy_memories import RememberPolicy
from memory.domain.taxonomy import Role
from memory.language.facts import find_facts, read_facts, says_something
from memory.language.refusals import Refusal, refuse_statement, says_nothing

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
