"""Verdicts by a classifier of pairs, and the rules' veto (B11)."""

import pytest

from memory.domain.evidence import Verdict
from memory.language.analysis import SpokenText
from memory.language.relations import judge_pair
from memory.language.verdicts import Judgement

BIKE = "Mara rides her bike to work."
SURE = 0.99


def judge(episode: str, belief: str = BIKE, *, entailment: float = 0.0, contradiction: float = 0.0) -> Judgement:
    return judge_pair(
        episode=SpokenText(text=episode, language="en"),
        belief=SpokenText(text=belief, language="en"),
        entailment=entailment,
        contradiction=contradiction,
    )


@pytest.mark.parametrize(
    "paraphrase",
    ["To work on her bike: the usual start of a day for Mara.", "Two wheels carry Mara to her office every day."],
)
def test_a_paraphrase_that_no_rule_knows_is_judged_by_the_classifier(paraphrase: str) -> None:
    assert judge(paraphrase).verdict is Verdict.IRRELEVANT
    assert judge(paraphrase, entailment=SURE).verdict is Verdict.SUPPORTS
    assert judge(paraphrase, contradiction=SURE).verdict is Verdict.CONTRADICTS


@pytest.mark.parametrize(("entailment", "contradiction"), [(0.69, 0.0), (0.0, 0.79), (0.5, 0.5)])
def test_a_classifier_that_is_not_sure_says_nothing(entailment: float, contradiction: float) -> None:
    found = judge("Two wheels carry Mara to her office.", entailment=entailment, contradiction=contradiction)
    assert found.verdict is Verdict.IRRELEVANT


@pytest.mark.parametrize(
    ("episode", "belief"),
    [
        ("Mara never takes her bike when she has to go to work.", BIKE),
        ("Mara prefers spaces over tabs.", "Mara prefers tabs over spaces."),
        ("The build takes 9 minutes.", "The build takes 4 minutes."),
    ],
)
def test_a_contradiction_that_rules_find_stands(episode: str, belief: str) -> None:
    """A classifier overlooks denials, turned comparisons and numbers."""
    assert judge(episode, belief, entailment=SURE).verdict is Verdict.CONTRADICTS


@pytest.mark.parametrize(
    ("episode", "belief"),
    [
        ("Is it her bike that Mara rides to work?", BIKE),  # a question
        ("Mara might ride her bike to work.", BIKE),  # a hedge
        ("Mara takes the bike to work only if it is dry.", "Every day Mara takes the bike to work."),  # a condition
        ("The ride of Mara to work took 9 minutes.", "The way to work takes Mara 4 minutes by bike."),  # numbers
        (
            "The server of the shop in Lyon runs the backups.",
            "The backups run on a server of the shop in Oslo.",
        ),  # names
    ],
)
def test_nothing_supports_against_what_rules_and_guard_see(episode: str, belief: str) -> None:
    assert judge(episode, belief, entailment=SURE).verdict is not Verdict.SUPPORTS


@pytest.mark.parametrize("episode", ["Is it her bike that Mara rides to work?", "Mara might ride her bike to work."])
def test_what_may_not_count_does_not_contradict_either(episode: str) -> None:
    assert judge(episode, contradiction=SURE).verdict is Verdict.IRRELEVANT


def test_support_by_rules_against_a_sure_contradiction_is_left() -> None:
    """Rules do not see every change: unsure means IRRELEVANT."""
    told = "Our office went down to 2 rooms, each good for a meeting of ten."
    believed = "The office has 4 meeting rooms."
    assert judge(told, believed).verdict is Verdict.SUPPORTS
    assert judge(told, believed, contradiction=SURE).verdict is Verdict.IRRELEVANT


def test_a_language_that_no_rule_knows_is_the_classifiers() -> None:
    found = judge_pair(
        episode=SpokenText(text="Mara va au travail à vélo.", language="fr"),
        belief=SpokenText(text="Mara se rend au bureau à bicyclette.", language="fr"),
        entailment=SURE,
        contradiction=0.0,
    )
    assert found.verdict is Verdict.SUPPORTS
