"""What a memory of a life scores, by patterns alone."""

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.quality.life_scores import (
    Life,
    Mark,
    Score,
    figures_of,
    find_faults,
    is_unfit,
    parse_life,
    score_answers,
    score_beliefs,
    score_life,
)


def message(session: int, text: str, *, role: str = "user") -> dict[str, str]:
    """Return a message of a session, each a day after the one before."""
    return {"session": f"s{session}", "occurred_at": f"2026-01-0{session}T09:00:00+00:00", "role": role, "text": text}


def a_life(**changes: Any) -> Life:
    """Make a life of two facts said in three sessions and one said once, with a trap and two questions."""
    row = {
        "id": "small",
        "user": "Ida",
        "episodes": [
            message(1, "I ride to work, and my boss is Per."),
            message(2, "Per left. Una is my boss now, and I ride in the rain."),
            message(2, "You should try the bus.", role="assistant"),
            message(3, "Una is a good boss. I ride as ever."),
            message(4, "Is Una your boss or mine? My dog Pip asks."),
        ],
        "facts": [
            {
                "id": "boss", "kind": "changed", "statement": "Ida's boss is Una.", "sessions": 3,
                "current": [r"\buna\b.*\bboss", r"\bboss\b.*\buna\b"],
                "not": [r"^(?!.*(?:una|was)).*\bboss\b.*\bper\b"],
            },
            {"id": "ride", "kind": "stable", "statement": "Ida rides to work.", "sessions": 3,
             "current": [r"\brides?\b"], "not": []},
            {"id": "dog", "kind": "stable", "statement": "Pip is a dog.", "sessions": 1,
             "current": [r"\bpip\b.*\bdog\b", r"\bdog pip\b"], "not": []},
        ],
        "traps": [{"id": "bus", "kind": "advice", "false": [r"\bida\b.*\bbus\b"]}],
        "questions": [
            {"q": "Who is in charge?", "fact": "boss", "right": [r"\buna\b"], "wrong": [r"\bper\b"]},
            {"q": "Any animals?", "fact": "dog", "right": [r"\bpip\b"], "wrong": []},
        ],
    }  # fmt: skip
    return parse_life(row | changes)


class FakeMemory:
    """A memory that believes what it was made with and answers each question alike."""

    def __init__(self, *, believed: Sequence[str] = (), results: Sequence[str] = ()) -> None:
        self._believed, self._results = believed, results

    def beliefs(self) -> Sequence[str]:
        """Return all that is believed."""
        return self._believed

    def recall(self, question: str, *, limit: int) -> Sequence[str]:
        """Return the results, whatever is asked."""
        return self._results[:limit]


LIFE = a_life()


def test_a_fact_counts_as_found_where_it_was_said_in_three_sessions() -> None:
    score = score_beliefs(life=LIFE, beliefs=["Ida rides to work.", "Pip is a dog."])

    assert (score.found, score.facts) == (1, 2)
    assert (score.true, score.known, score.beliefs) == (2, 2, 2)


def test_what_no_pattern_finds_is_neither_true_nor_false() -> None:
    score = score_beliefs(life=LIFE, beliefs=["Ida owns a kettle."])

    assert (score.beliefs, score.known, score.true, score.false) == (1, 0, 0, 0)
    assert LIFE.mark("Ida owns a kettle.") is Mark.UNKNOWN


@pytest.mark.parametrize("belief", ["Ida's boss is Per.", "Ida takes the bus."])
def test_the_former_truth_and_a_trap_are_false(belief: str) -> None:
    score = score_beliefs(life=LIFE, beliefs=[belief])

    assert (score.known, score.true, score.false) == (1, 0, 1)
    assert LIFE.mark(belief) is Mark.FALSE


def test_a_truth_that_falls_for_a_trap_is_false_and_finds_nothing() -> None:
    score = score_beliefs(life=LIFE, beliefs=["Ida rides to work by bus."])

    assert (score.known, score.true, score.false, score.found) == (1, 0, 1, 0)


def test_what_was_once_so_is_not_false_when_it_says_so() -> None:
    assert LIFE.mark("Per was Ida's boss.") is Mark.UNKNOWN
    assert LIFE.mark("Ida's boss is Una, it was Per.") is Mark.TRUE


@pytest.mark.parametrize(
    ("believed", "changed"),
    [
        (["Ida's boss is Una."], 1),
        (["Ida's boss is Una.", "Ida's boss is Per."], 0),
        (["Ida's boss is Per."], 0),
        ([], 0),
    ],
)
def test_a_change_counts_where_the_new_is_believed_and_the_old_is_not(believed: list[str], changed: int) -> None:
    score = score_beliefs(life=LIFE, beliefs=believed)

    assert (score.changed, score.changes) == (changed, 1)


def test_beliefs_beyond_the_first_of_a_fact_are_doubled() -> None:
    score = score_beliefs(life=LIFE, beliefs=["Ida rides.", "Ida rides to work.", "Ida rides daily.", "Pip is a dog."])

    assert (score.doubled, score.found) == (2, 1)


@pytest.mark.parametrize(
    "belief",
    [
        "I ride to work.",
        "My boss is Una.",
        "Una said that we ride.",
        "Ich fahre Rad.",
        "Unsere Chefin ist Una.",
        "Ida rides to work\nand back.",
        "Ida rides " + "on and " * 15,
    ],
)
def test_a_belief_is_unfit_in_the_first_person_of_several_lines_or_too_long(belief: str) -> None:
    assert is_unfit(belief)
    assert LIFE.mark(belief) is Mark.UNFIT


@pytest.mark.parametrize(
    "belief",
    [
        "Ida rides to work.",
        'Ida says "I ride" of herself.',
        "Ida sagt „ich fahre“, wenn man fragt.",
        "Ida lives in the US, i.e. far away.",
        "Ida rides " + "on and " * 14,
    ],
)
def test_quotations_and_look_alikes_of_the_first_person_are_fit(belief: str) -> None:
    assert not is_unfit(belief)


def test_an_unfit_belief_finds_no_fact_and_doubles_none() -> None:
    score = score_beliefs(life=LIFE, beliefs=["I ride, says Ida, to work.", "We ride.", "Ida rides."])

    assert (score.unfit, score.found, score.doubled) == (2, 1, 0)
    assert score_beliefs(life=LIFE, beliefs=["We ride."]).found == 0


@pytest.mark.parametrize(
    ("results", "first", "soon"),
    [
        (["Una it is", "Per"], 1, 1),
        (["a kettle", "Una it is", "Per"], 0, 1),
        (["a kettle", "Per", "Una it is"], 0, 0),
        (["Una after Per", "Una it is"], 0, 1),
        (["a", "b", "c", "Una it is"], 0, 0),
        ([], 0, 0),
    ],
)
def test_an_answer_is_right_first_or_with_nothing_wrong_above_it(results: list[str], first: int, soon: int) -> None:
    life = a_life(questions=[{"q": "Who?", "fact": "boss", "right": [r"\buna\b"], "wrong": [r"\bper\b"]}])

    score = score_answers(life=life, memory=FakeMemory(results=results))

    assert (score.questions, score.right_first, score.right_soon) == (1, first, soon)


def test_figures_are_shares_over_all_lives_and_numbers_a_life() -> None:
    score = score_life(life=LIFE, memory=FakeMemory(believed=["Ida rides.", "Ida takes the bus."], results=["Pip"]))
    both = figures_of(score + score_life(life=LIFE, memory=FakeMemory()))

    assert both == {
        "beliefs": 1.0, "unfit": 0.0, "known %": 100.0, "found %": 25.0, "true %": 50.0, "false": 0.5, "doubled": 0.0,
        "changed %": 0.0, "right@1 %": 25.0, "right@3 %": 25.0,
    }  # fmt: skip


def test_nothing_believed_and_nothing_asked_is_nought() -> None:
    assert set(figures_of(Score()).values()) == {0.0}


def test_sound_data_have_no_faults() -> None:
    assert list(find_faults(LIFE)) == []


def test_faults_of_data_are_named() -> None:
    facts = [
        {"id": "a", "kind": "changed", "statement": "Ida rides.", "sessions": 3, "current": ["rides"], "not": []},
        {"id": "b", "kind": "stable", "statement": "Ida is my boss.", "sessions": 1, "current": ["ida"], "not": []},
        {"id": "c", "kind": "stable", "statement": "Pip barks.", "sessions": 1, "current": ["dog"], "not": []},
    ]
    questions = [{"q": "What?", "fact": "none", "right": ["nowhere"], "wrong": []}]
    episodes = [message(2, "the dog rides"), message(1, "ida")]
    life = a_life(facts=facts, questions=questions, episodes=episodes, traps=[])

    assert list(find_faults(life)) == [
        "its messages are not in the order of their times",
        "a: it changed, and nothing is false",
        "a: the patterns of b find its statement",
        "a: its patterns find it in 1 of 3 sessions",
        "b: its statement counts as unfit",
        "c: its own patterns do not find its statement",
        "a question about no fact: What?",
        "nothing that was said answers: What?",
    ]
