"""The simulated histories: their truth, their noise, and what an episode says of a statement."""

from dataclasses import replace
from itertools import product

import pytest

from benchmarks.quality.histories import (
    NOISE,
    SPAN_DAYS,
    STATEMENTS,
    Claim,
    Kind,
    Says,
    judge,
    make_histories,
    state_majority,
)
from memory.domain.statements import refuse_statement

YES, NO = Claim(does=True), Claim(does=False)
YES_HERE, NO_HERE = Claim(does=True, context=0), Claim(does=False, context=0)
YES_THERE, NO_THERE = Claim(does=True, context=1), Claim(does=False, context=1)
ONLY_HERE = Claim(does=True, context=0, elsewhere=True)


def test_the_same_seed_draws_the_same_histories_whatever_the_count() -> None:
    assert make_histories(count=5, seed=1) == make_histories(count=9, seed=1)[:5]
    assert make_histories(count=5, seed=1) != make_histories(count=5, seed=2)


def test_kinds_come_in_thirds_and_noise_is_uniform_between_its_bounds() -> None:
    histories = make_histories(count=300, seed=1)
    noises = [history.noise for history in histories]

    assert [sum(history.kind is kind for history in histories) for kind in Kind] == [100, 100, 100]
    assert NOISE[0] <= min(noises) < 0.11
    assert 0.29 < max(noises) <= NOISE[1]
    assert sum(noises) / len(noises) == pytest.approx(0.2, abs=0.01)


def test_episodes_are_wrong_as_often_as_the_noise_says() -> None:
    """Of the histories without contexts: the share of episodes that deny what was so is the mean noise."""
    histories = [history for history in make_histories(count=600, seed=1) if history.kind is not Kind.CONTEXTS]
    said = [(history, one) for history in histories for one in history.said]
    wrong = sum(not history.is_true(one.claim, day=one.day) for history, one in said)
    expected = sum(history.noise for history, _ in said)

    assert wrong == pytest.approx(expected, rel=0.03)


def test_a_change_of_mind_turns_the_truth_around() -> None:
    history = next(history for history in make_histories(count=3, seed=1) if history.kind is Kind.CHANGE)

    assert 0.3 * SPAN_DAYS <= history.changes_on <= 0.7 * SPAN_DAYS
    assert history.is_true(YES, day=history.changes_on - 1)
    assert not history.is_true(YES, day=history.changes_on)
    assert history.is_true(NO, day=history.changes_on)
    assert history.phase(day=history.changes_on - 1) == "before a change of mind"
    assert history.phase(day=history.changes_on) == "30 days from a change of mind"
    assert history.phase(day=history.changes_on + 30) == "later after a change of mind"


def test_where_the_truth_hangs_on_the_context_a_statement_without_one_is_false() -> None:
    history = replace(make_histories(count=1, seed=1)[0], kind=Kind.CONTEXTS)

    assert [claim for claim in STATEMENTS if history.is_true(claim, day=0)] == [YES_HERE, NO_THERE]


@pytest.mark.parametrize(
    ("said", "statement", "verdict"),
    [
        (YES, YES, Says.SUPPORTS),
        (NO, YES, Says.CONTRADICTS),
        (YES_HERE, YES, Says.SUPPORTS),
        (NO_HERE, YES, Says.PARTIAL),
        (YES, YES_HERE, Says.SUPPORTS),
        (NO, YES_HERE, Says.CONTRADICTS),
        (YES_THERE, YES_HERE, Says.IRRELEVANT),
        (ONLY_HERE, YES, Says.PARTIAL),
        (ONLY_HERE, NO, Says.PARTIAL),
        (ONLY_HERE, YES_HERE, Says.SUPPORTS),
        (ONLY_HERE, NO_THERE, Says.SUPPORTS),
        (ONLY_HERE, YES_THERE, Says.CONTRADICTS),
        (ONLY_HERE, NO_HERE, Says.CONTRADICTS),
    ],
)
def test_an_episode_says_of_a_statement(said: Claim, statement: Claim, verdict: Says) -> None:
    """B11: the scripted verdicts."""
    assert judge(said=said, statement=statement) is verdict


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ([YES, YES, NO], YES),
        ([NO, NO, YES], NO),
        ([YES_HERE, YES_HERE, NO_THERE], YES_HERE),  # in conflict: the majority with its context
        ([YES_HERE, YES_HERE, YES_HERE], YES_HERE),  # no conflict, and every one names the context
        ([YES, YES, YES_HERE], YES),  # most name none
        ([YES_HERE, YES_THERE, YES_HERE], YES),
    ],
)
def test_a_new_statement_is_what_most_episodes_support(said: list[Claim], statement: Claim) -> None:
    """B10: the majority, with its context where the episodes conflict."""
    assert state_majority(said, among=STATEMENTS) == statement


def test_every_statement_stands_by_itself_and_has_words_of_its_own() -> None:
    histories = make_histories(count=80, seed=1)
    words = {(history.number, claim): history.word(claim) for history, claim in product(histories, STATEMENTS)}

    assert not [text for text in words.values() if refuse_statement(statement=text)]
    assert all(len({words[history.number, claim] for claim in STATEMENTS}) == len(STATEMENTS) for history in histories)
