"""L3, R1: who wishes that something be remembered, or always be done, is told back what it is, without the wish.

L1: how strongly a turn asks to be remembered.
"""

import json
import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from memory.domain.policy_memories import RememberPolicy, TurnsPolicy
from memory.domain.taxonomy import Category, Role
from memory.language.explicit_requests import (
    BadCue,
    Cues,
    Signal,
    find_request,
    is_standing_order,
    known_languages,
    load_cues,
    scan_signal,
)
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


POLICY = TurnsPolicy()
PHRASES = [
    json.loads(line) for line in Path(__file__).with_name("signal_phrases.jsonl").read_text("utf-8").splitlines()
]
LONGEST = 32 * 1024
LIMIT_MS = 5.0  # of the processor: machines are shared


def cues_of(*languages: str) -> Cues:
    return load_cues(languages=languages)


def scan(text: str, *, cues: Cues | None = None) -> Signal:
    return scan_signal(text=text, cues=cues or cues_of("en"), policy=POLICY)


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: str(phrase["text"])[:40])
def test_every_phrase_has_its_level(phrase: dict[str, str]) -> None:
    """L1: all of them, hard negatives among them, each scanned with the cues of its language."""
    assert scan(phrase["text"], cues=cues_of(phrase["language"])) == phrase["level"]


def test_the_phrases_are_many_and_of_all_levels() -> None:
    """L1: 300 lines of our own, none twice."""
    counts = Counter(phrase["level"] for phrase in PHRASES)
    assert len({phrase["text"] for phrase in PHRASES}) == len(PHRASES) >= 300
    assert set(counts) == set(Signal)
    assert min(counts.values()) >= 30


def test_other_languages_do_not_change_what_english_says() -> None:
    """L1: cues of all languages together; German and English words seldom meet."""
    cues = cues_of(*known_languages())
    changed = [phrase["text"] for phrase in PHRASES if scan(phrase["text"], cues=cues) != phrase["level"]]
    assert len(changed) <= len(PHRASES) * 0.01


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("I DON’T LIKE IT. NEVER USE COMIC SANS.", "high"),
        ("Thanks!\n\n- never merge on red\n- ask Bo first", "high"),
        ("> never merge on red", "high"),
        ("", "none"),
        ("¡¿…?!", "none"),
        ("İstanbul’a hoş geldin", "none"),
        ("🦊" * 500, "none"),
    ],
)
def test_spelling_does_not_matter(text: str, level: str) -> None:
    """L1: capitals, curly apostrophes, lists, quotes and other scripts."""
    assert scan(text) == level


def test_soft_cues_of_one_kind_count_once() -> None:
    """L1: two soft cues → medium, one → low."""
    assert scan("Tomorrow, or next week, or by Friday.") == Signal.LOW
    assert scan("Tomorrow, because of the rain.") == Signal.MEDIUM
    three = TurnsPolicy(soft_cues=3)
    assert scan_signal(text="Tomorrow, because of the rain.", cues=cues_of("en"), policy=three) == Signal.LOW


def test_the_ends_of_a_long_text_are_scanned() -> None:
    """L1: what people say stands before or after what they paste."""
    pasted = "0x7f3a 0x7f3b 0x7f3c\n" * 1_500
    assert scan(f"Never do this again:\n{pasted}") == Signal.HIGH
    assert scan(f"{pasted}\nNever do this again.") == Signal.HIGH
    assert scan(pasted) == Signal.NONE


def texts_of_any_length() -> dict[str, list[str]]:
    """Draw turns as they are, and the longest, among them what backtracking could be caught by."""
    source = (Path(__file__).parents[2] / "memory/export/importer.py").read_text("utf-8")
    pages = sorted((Path(__file__).parents[2] / "docs/operations").glob("*.md"))
    prose = "".join(page.read_text("utf-8") for page in pages)
    words = " ".join(phrase["text"] for phrase in PHRASES).split()
    drawn = random.Random(7)
    return {
        "turns": [phrase["text"] for phrase in PHRASES],
        "code": [(source * 8)[:LONGEST]] * 40,
        "prose": [(prose * 2)[:LONGEST]] * 40,
        "words": [" ".join(drawn.choices(words, k=7_000))[:LONGEST] for _ in range(40)],
        "one word": ["never " * (LONGEST // 6)] * 20,
        "almost": ["i have just now all finally no please, " * (LONGEST // 40)] * 20,
        "one letter": ["a" * LONGEST] * 20,
        "signs": ["'-:;,.!? " * (LONGEST // 9)] * 20,
        "white space": ["i " + " " * (LONGEST - 2)] * 20,
        "said": ["i said " + "and on " * (LONGEST // 7)] * 20,
    }


def test_no_text_takes_long_to_scan() -> None:
    """L1: a pattern that tries many ways would take hundreds; `benchmarks.turns` holds it against a millisecond."""
    cues = cues_of(*known_languages())
    slow = {}
    for name, texts in texts_of_any_length().items():
        taken = sorted(min(_milliseconds(text, cues) for _ in range(5)) for text in texts)
        slow[name] = taken[int(len(taken) * 0.99)]
    assert {name: ms for name, ms in slow.items() if ms >= LIMIT_MS} == {}


def _milliseconds(text: str, cues: Cues) -> float:
    began = time.thread_time()
    scan_signal(text=text, cues=cues, policy=POLICY)
    return (time.thread_time() - began) * 1000


def test_ones_own_cues_are_scanned_for(tmp_path: Path) -> None:
    """L1: custom patterns, with an anchor and without."""
    own = tmp_path / "own.toml"
    own.write_text(
        "[high.ship]\nahoy = ['\\bahoy, captain\\b']\n\"\" = ['\\bkiel\\d+\\b']\n[soft.tide]\ntide = ['\\btide\\b']\n",
        "utf-8",
    )
    cues = load_cues(languages=("en",), own=str(own))
    assert [scan(text, cues=cues) for text in ("Ahoy, captain!", "Off to kiel42", "The tide is out", "Ahoy there")] == [
        "high", "high", "low", "none",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[high.ship]\nahoy = ['(']", "high.ship.'ahoy': '('"),
        ("[loud.ship]\nahoy = ['x']", "loud"),
        ("[high.ship]\n'Ahoy' = ['x']", "'Ahoy'"),
        ("[high.ship]\n'ahoy you' = ['x']", "'ahoy you'"),
        ("[high.ship]\nahoy = 'x'", "high.ship.'ahoy'"),
        ("[high]\nship = 3", "high.ship"),
        ("high = [", "own.toml"),
    ],
)
def test_a_cue_that_cannot_be_is_named(tmp_path: Path, content: str, named: str) -> None:
    """L1: so that the start stops, and says at which."""
    own = tmp_path / "own.toml"
    own.write_text(content, "utf-8")
    with pytest.raises(BadCue, match=re.escape(named)):
        load_cues(languages=(), own=str(own))


def test_languages_that_are_not_there_are_named() -> None:
    with pytest.raises(BadCue, match=r"'xx'.*de, en"):
        load_cues(languages=("xx",))
    with pytest.raises(BadCue, match="nowhere"):
        load_cues(languages=(), own="/nowhere/own.toml")
