"""L3, R1: who wishes that something be remembered, or always be done, is told back what it is, without the wish."""

import pytest

from memory.domain.policy_memories import RememberPolicy
from memory.domain.taxonomy import Category, Role
from memory.language.explicit_requests import find_request, is_standing_order
from memory.language.facts import find_facts, read_facts


def _facts(text: str, role: Role = Role.USER) -> list[tuple[str, Category]]:
    return [(fact.text, fact.category) for fact in find_facts(text=text, role=role, number=1)]


def _remembered(text: str, speaker: str = "") -> list[str]:
    return [fact.text for fact in read_facts(text=text, speaker=speaker, language="", policy=RememberPolicy())]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Could you remember that my train leaves at 6:40 on Sunday?", "The user's train leaves at 6:40 on Sunday."),
        ("Hey, can you keep in mind that I am lactose intolerant, please?", "The user is lactose intolerant."),
        ("Can you keep in mind that I am deaf?", "The user is deaf."),
        ("Could you please note that Ana leaves in May?", "Ana leaves in May."),
        ("Would you mind remembering that I work in Graz?", "The user works in Graz."),
        ("Remember this: the spare key lies under the blue pot.", "The spare key lies under the blue pot."),
        ("Remember that the review is on Tuesday now, not on Monday.", "The review is on Tuesday now, not on Monday."),
        ("I want you to remember that my cat is called Olaf.", "The user's cat is called Olaf."),
        ("Don't forget: my shift ends at ten.", "The user's shift ends at ten."),
        ("Kannst du dir merken, dass ich vegan bin?", "Nutzer ist vegan."),
        ("Merk dir bitte, dass der Schlüssel unter dem Topf liegt.", "Der Schlüssel liegt unter dem Topf."),
    ],
)
def test_what_is_to_be_remembered_is_a_fact(text: str, told: str) -> None:
    assert [said for said, _ in _facts(text)] == [told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Can you please always answer in Dutch?", "Always answer in Dutch."),
        ("Could you always use metric units?", "Always use metric units."),
        ("Can you make sure to never push to main?", "Never push to main."),
        ("Please always answer in Dutch.", "Always answer in Dutch."),
        ("Could you answer in Dutch from now on?", "Answer in Dutch from now on."),
        ("Kannst du bitte immer auf Deutsch antworten?", "Immer auf Deutsch antworten."),
    ],
)
def test_an_order_that_lasts_is_a_principle(text: str, told: str) -> None:
    assert _facts(text) == [(told, Category.PRINCIPLE)]


@pytest.mark.parametrize(
    "text",
    [
        "Can you remember what I told you?",
        "Can you remember when my train leaves?",
        "Can you remember that restaurant we liked in Graz?",
        "Can you remember the name of the film we saw?",
        "Do you remember that my train leaves on Sunday?",
        "Could you fix the tests?",
        "Can you always see the logs?",
        "Could you always tell when somebody lies?",
        "Remember when we went to Rome?",
    ],
)
def test_a_question_stays_a_question(text: str) -> None:
    assert (_facts(text), _remembered(text)) == ([], [])


def test_what_an_assistant_asks_is_no_order() -> None:
    assert _facts("Could you please always run the linter?", Role.ASSISTANT) == []


@pytest.mark.parametrize("text", ["Note-taking is fun.", "Remembering that day makes me smile.", "I remember the war."])
def test_words_about_remembering_wish_nothing(text: str) -> None:
    assert find_request(text) is None


@pytest.mark.parametrize(
    ("text", "speaker", "told"),
    [
        ("Could you remember that my train leaves at 6:40?", "", "My train leaves at 6:40."),
        ("Remember that the review is on Tuesday.", "", "The review is on Tuesday."),
        ("Remember this: the key lies under the pot. It rains.", "", "The key lies under the pot."),
        ("Can you keep in mind that I drink no coffee?", "Mara", "Mara drinks no coffee."),
        ("Can you please always answer in Dutch?", "Mara", "Always answer in Dutch."),
    ],
)
def test_a_remembered_text_loses_its_wish(text: str, speaker: str, told: str) -> None:
    """R1: offline."""
    assert _remembered(text, speaker)[0] == told


@pytest.mark.parametrize(
    "opening",
    [
        "Always cite the source when I ask about history.",
        "Never use tabs.",
        "Please always answer in French.",
        "From now on, call me Al.",
        "Going forward I want you to use metric units.",
        "Whenever I ask about code, show the types.",
        "Make sure you always run the tests first.",
        "Can you please always use metric units?",
        "Hey Sam, don't ever push to main.",
        "Antworte immer auf Deutsch.",
        "Bitte nenne mir immer die Quelle.",
        "Ab jetzt bitte kurz.",
    ],
)
def test_what_is_to_be_done_from_now_on_is_a_standing_order(opening: str) -> None:
    """B17."""
    assert is_standing_order(opening)


@pytest.mark.parametrize(
    "opening",
    [
        "Never mind, it works.",
        "Always loved hiking.",
        "I always forget my keys.",
        "Always a pleasure!",
        "The server never restarts.",
        "In the future I want to travel.",
        "We should always talk like this.",
        "Ich bin immer müde.",
        "Nie wieder!",
        "In Zukunft will ich reisen.",
    ],
)
def test_what_is_told_of_always_and_never_orders_nothing(opening: str) -> None:
    """B17."""
    assert not is_standing_order(opening)
