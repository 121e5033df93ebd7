"""L1: how strongly a turn asks to be remembered."""

import json
import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from memory.domain.policy_memories import TurnsPolicy
from memory.language.explicit_requests import (
    BadCue,
    Cues,
    Signal,
    known_languages,
    load_cues,
    scan_signal,
)

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
