"""Rule verdicts (B11, B8): what an episode says of a belief when no model is asked."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.domain.evidence import Verdict
from memory.language.analysis import SpokenText
from memory.language.verdicts import judge_by_rules

VOCABULARY = "Mara uses not tabs spaces over never likes now in Python 5 ms"


def _judge(episode: str, belief: str, *, speaker: str = "", similarity: float | None = None) -> Verdict:
    claim = SpokenText(text=episode, speaker=speaker)
    return judge_by_rules(episode=claim, belief=SpokenText(text=belief), similarity=similarity).verdict


@pytest.mark.parametrize(
    ("episode", "belief"),
    [
        ("Mara set her editor to tabs because Mara prefers tabs over spaces", "Mara prefers tabs over spaces"),
        ("Jonas asked again for shorter answers, Jonas likes brief answers", "Jonas likes short answers"),
        ("The nightly build failed on Windows again", "The nightly build fails on Windows"),
        ("We deploy the backend to Fly from the main branch", "We deploy the backend to Fly"),
        ("Lena doesn't eat meat, she had the lentils", "Lena never eats meat"),
        ("Stand-up starts at 9:30 am every day", "Stand-up is at 9:30"),
        ("Mara nimmt wie immer Tabs, Mara mag Tabs", "Mara mag Tabs"),
        ("Jonas trinkt morgens immer Tee mit Milch", "Jonas trinkt morgens Tee"),
        ("Lena isst auch im Urlaub kein Fleisch", "Lena isst kein Fleisch"),
        ("Das Backend läuft seit Mai auf einem Server in Frankfurt", "Das Backend läuft in Frankfurt"),
    ],
)
def test_restated_belief_is_supported(episode: str, belief: str) -> None:
    """B11: the episode states what the belief says."""
    assert _judge(episode, belief) is Verdict.SUPPORTS


@pytest.mark.parametrize(
    ("episode", "belief"),
    [
        ("Spaces over tabs", "Tabs over spaces"),
        ("Mara prefers spaces over tabs", "Mara prefers tabs over spaces"),
        ("Mara now prefers spaces over tabs in Python files", "Mara prefers tabs over spaces"),
        ("Mara does not use vim", "Mara uses vim"),
        ("Mara no longer uses vim", "Mara uses vim"),
        ("Mara stopped using vim", "Mara uses vim"),
        ("Mara hates long meetings", "Mara likes long meetings"),
        ("Lena hates hiking", "Lena loves hiking"),
        ("Jonas lives in Porto now", "Jonas lives in Berlin"),
        ("Jonas moved from Berlin to Porto last month", "Jonas lives in Berlin"),
        ("Jonas drinks coffee every morning", "Jonas never drinks coffee"),
        ("We moved the backend from Fly to Render", "We run the backend on Fly"),
        ("The backend now deploys to Render", "The backend deploys to Fly"),
        ("The timeout is 60 seconds", "The timeout is 30 seconds"),
        ("The stand-up is at 10:00 now", "The stand-up is at 9:30"),
        ("Deploys are forbidden on Fridays", "Deploys are allowed on Fridays"),
        ("The worker calls the scheduler", "The scheduler calls the worker"),
        ("Go is faster than Rust for this parser", "Rust is faster than Go for this parser"),
        ("Mara bevorzugt jetzt Leerzeichen statt Tabs", "Mara bevorzugt Tabs statt Leerzeichen"),
        ("Lena isst wieder Fleisch", "Lena isst kein Fleisch"),
        ("Das Team benutzt Jenkins nicht mehr", "Das Team benutzt Jenkins"),
        ("Die Besprechung beginnt jetzt um 11 Uhr", "Die Besprechung beginnt um 10 Uhr"),
        ("Der Cache ist ausgeschaltet", "Der Cache ist eingeschaltet"),
    ],
)
def test_opposite_is_a_contradiction(episode: str, belief: str) -> None:
    """B11: the episode states what cannot be true beside the belief."""
    assert _judge(episode, belief) is Verdict.CONTRADICTS


@pytest.mark.parametrize(
    ("episode", "belief"),
    [
        ("Mara uses tabs except in YAML files", "Mara uses tabs"),
        ("Mara uses tabs only when the file already has them", "Mara uses tabs"),
        ("Jonas likes long meetings as long as there is an agenda", "Jonas likes long meetings"),
        ("Mara prefers tabs, but not in Python", "Mara prefers tabs"),
        ("Mara mag Tabs, außer in YAML", "Mara mag Tabs"),
        ("Jonas trinkt Kaffee nur wenn er müde ist", "Jonas trinkt Kaffee"),
    ],
)
def test_exception_makes_support_partial(episode: str, belief: str) -> None:
    """B11: the episode limits what the belief says without limit."""
    assert _judge(episode, belief) is Verdict.PARTIAL


@pytest.mark.parametrize(
    ("episode", "belief"),
    [
        ("The weather in Lisbon was fine", "Mara prefers tabs over spaces"),
        ("Jonas uses vim", "Mara uses vim"),
        ("Does Mara prefer tabs over spaces?", "Mara prefers tabs over spaces"),
        ("Mara might move to Oslo", "Mara moved to Oslo"),
        ("Mara bought a new bike", "Mara bought a new bike and sold her car"),
        ("The app was not deployed on Friday", "The app is deployed on Tuesday instead of Friday"),
        ("Deployed the API to Render today because Fly was down", "The API is deployed to Fly"),
        ("Lena mag Hunde", "Jonas trinkt keinen Kaffee"),
        ("Mara prefers tabs", "Mara bevorzugt Tabs"),
        ("Kemal prépare le dîner", "Kemal cooks dinner"),
    ],
)
def test_anything_unsure_is_irrelevant(episode: str, belief: str) -> None:
    """B11: unsure means IRRELEVANT."""
    assert _judge(episode, belief) is Verdict.IRRELEVANT


def test_first_person_episode_speaks_for_its_speaker() -> None:
    assert _judge("I prefer tabs over spaces", "Mara prefers tabs over spaces", speaker="Mara") is Verdict.SUPPORTS


def test_first_person_episode_says_nothing_of_another() -> None:
    assert _judge("I prefer tabs over spaces", "Mara prefers tabs over spaces", speaker="Jonas") is Verdict.IRRELEVANT


def test_low_similarity_leaves_different_sentences() -> None:
    """B8a: a cosine on the reference scale can only take a verdict away."""
    episode, belief = "Jonas drinks coffee before work and bikes there", "Coffee is what Jonas drinks"
    assert _judge(episode, belief, similarity=0.9) is Verdict.SUPPORTS
    assert _judge(episode, belief, similarity=0.2) is Verdict.IRRELEVANT


def test_high_similarity_and_the_guard_vouch_for_a_missing_word() -> None:
    """B8: cosine alone never reinforces; with the guard it may stand in for one word."""
    episode, belief = "For big reviews Ines takes a printed copy outside", "Ines prints big reviews"
    assert _judge(episode, belief, similarity=0.95) is Verdict.SUPPORTS
    wordy, other = "A meeting needs an agenda three days ahead", "Every meeting of ours needs a printed agenda"
    assert _judge(wordy, other) is Verdict.IRRELEVANT
    assert _judge(wordy, other, similarity=0.95) is Verdict.SUPPORTS


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=80), other=st.text(max_size=80))
@example(text="Mara keeps 5² jars and ¹ lid.", other="Mara keeps ① jar.")
@example(text="1,²3 jars.", other="It is 9:¹.")
def test_any_text_gets_a_verdict_and_a_reason(text: str, other: str) -> None:
    judgement = judge_by_rules(episode=SpokenText(text=text), belief=SpokenText(text=other))
    assert judgement.verdict in Verdict
    assert judgement.reason.endswith(".")


@settings(max_examples=100, deadline=None)
@given(words=st.lists(st.sampled_from(VOCABULARY.split()), max_size=9))
def test_no_text_contradicts_itself(words: list[str]) -> None:
    text = " ".join(words)
    assert _judge(text, text) is not Verdict.CONTRADICTS
