"""D5: what is unlike all that is remembered matters more."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.policy import Policy
from memory.domain.policy_recall import AssociativePolicy, RecallPolicy
from memory.domain.scoring import (
    belief_factors,
    fit_among,
    inverse_document_frequency,
    scale_min_max,
    score_associations,
    score_beliefs,
    score_episodes,
    score_priors,
    score_sessions,
    standardise,
    text_weight,
    trust_in_words,
)
from memory.domain.similarity import measure_surprise, move_importance

POLICY = RecallPolicy()
shares = st.floats(min_value=0, max_value=1)
columns = st.integers(1, 20).flatmap(
    lambda size: st.tuples(*(st.lists(shares, min_size=size, max_size=size) for _ in range(4)))
)


def test_a_beliefs_score_has_three_weighed_parts() -> None:
    """B17: 0.5·(confidence·similarity) + 0.3·retrieval strength + 0.2·text score, min-max over the candidates."""
    scores = score_beliefs(
        confidence=[0.8, 0.6], similarity=[0.9, 0.5], strength=[0.4, 1.0], text=[7, 3], policy=POLICY
    )

    assert scores.score == pytest.approx([0.5 * 0.72 + 0.3 * 0.4 + 0.2 * 1.0, 0.5 * 0.3 + 0.3 * 1.0 + 0.2 * 0.0])


def test_equal_text_scores_count_half() -> None:
    """B17: 0.5 if all equal."""
    assert scale_min_max(values=[3.0, 3.0]).tolist() == [0.5, 0.5]


def test_text_scores_are_measured_by_all_that_was_found() -> None:
    """B17: beside an episode that says much more of the query, a belief that shares one word of it has little."""
    assert scale_min_max(values=[1.0, 2.0], beside=[0.0, 10.0]).tolist() == [0.1, 0.2]


def test_a_belief_is_measured_against_the_episodes_found() -> None:
    """B17: half of each channel's standard score among the episodes, where both weigh the same."""
    fit = fit_among(
        similarity=[0.7, 0.7, 0.3], text=[4, 1, 1], episode_similarity=[0.4, 0.6], episode_text=[1, 3], weight=0.5
    )

    assert fit == pytest.approx([2.0, 0.5, -1.5])


@pytest.mark.parametrize(("coverage", "weight"), [([], 0.0), ([0.1], 0.0), ([0.22, 0.0], 0.14), ([0.3, 0.9], 0.7)])
def test_words_are_trusted_as_far_as_they_cover_the_query(coverage: list[float], weight: float) -> None:
    """B17: not at all up to a coverage of an eighth, to 0.7 from one of 0.6 on, by the best text."""
    trust = trust_in_words(coverage=coverage, policy=POLICY)
    assert text_weight(trust=trust, policy=POLICY) == pytest.approx(weight)


def test_weighted_words_speak_for_the_vector_as_far_as_words_are_trusted() -> None:
    """B17: of what vectors say, the share of weighted words is the trust in words."""
    similarity, weighted, text = [0.9, 0.5, 0.1], [0.2, 0.4, 0.9], [0, 0, 0]
    scores = score_episodes(
        similarity=similarity, weighted=weighted, text=text, weight=0.0, trust=0.25, policy=POLICY
    ).vector

    assert scores == pytest.approx(0.75 * standardise(values=similarity) + 0.25 * standardise(values=weighted))


def test_what_speaks_for_and_against_an_episode_is_told_apart() -> None:
    """B17: in standard scores, each under its name; a text of forty different words is not long."""
    priors = score_priors(
        of_time=[0.0, 0.5], is_named=[True, False], is_order=[True, False], is_by_ai=[False, True],
        length=[40, 80], policy=POLICY,
    )  # fmt: skip

    assert {name: values.tolist() for name, values in priors.items()} == {
        "asked_time": [0.0, 1.5],
        "named_speaker": [0.3, 0.0],
        "standing_order": [1.0, 0.0],
        "own_turn": [0.0, -1.0],
        "long_text": [0.0, pytest.approx(-0.7 * np.log(2))],
    }


def test_a_prior_lifts_an_episode_over_one_that_is_as_like() -> None:
    """B17: what speaks for an episode counts as standard scores do."""
    scores = score_episodes(
        similarity=[0.5, 0.5, 0.1], text=[1, 1, 0], priors=[np.array([0.0, 0.3, 0.0])], weight=0.5, policy=POLICY
    )

    assert np.argmax(scores.score) == 1


def test_a_rare_word_tells_more_than_a_common_one() -> None:
    """B17: ln(1 + (N − n + ½)/(n + ½)), and never below nothing."""
    assert inverse_document_frequency(documents=9, frequency=1) == pytest.approx(np.log(1 + 8.5 / 1.5))
    assert inverse_document_frequency(documents=3, frequency=9) == 0.0


def test_a_single_candidate_has_a_score() -> None:
    scores = score_episodes(similarity=[0.9], text=[4.0], weight=0.5, policy=POLICY).score

    assert 0.0 < scores[0] < 1.0


def test_no_candidates_have_no_scores() -> None:
    assert score_beliefs(confidence=[], similarity=[], strength=[], text=[], policy=POLICY).score.tolist() == []
    assert score_episodes(similarity=[], text=[], weight=0.5, policy=POLICY).score.tolist() == []


def test_each_arm_can_lift_an_episode() -> None:
    """B17: both vectors and text contribute to the order."""
    by_vector = score_episodes(similarity=[0.9, 0.1, 0.1], text=[0, 0, 0], weight=0.5, policy=POLICY).score
    by_text = score_episodes(similarity=[0.5, 0.5, 0.5], text=[0, 0, 9], weight=0.5, policy=POLICY).score

    assert (int(np.argmax(by_vector)), int(np.argmax(by_text))) == (0, 2)


def test_scores_mean_the_same_whatever_the_arms_weigh() -> None:
    """B17: the sum is standardised anew, so that the one that stands out scores as high by one arm as by both."""
    similarity, text = [0.9, 0.1, 0.2, 0.1], [7, 1, 1, 2]
    by_one = score_episodes(similarity=similarity, text=text, weight=0.0, policy=POLICY)
    by_both = score_episodes(similarity=similarity, text=text, weight=0.5, policy=POLICY)

    assert (by_one.together.std(), by_both.together.std()) == pytest.approx((1.0, 1.0))
    assert by_one.score[0] == pytest.approx(by_both.score[0], abs=0.01)


def test_what_differs_by_rounding_alone_is_not_stretched() -> None:
    """B17: where one arm takes back what the other gives, all are equal."""
    scores = score_episodes(similarity=[0.1, 0.2, 0.6], text=[0.6, 0.5, 0.1], weight=0.5, policy=POLICY)

    assert scores.together == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)


def test_a_session_answers_as_its_best_ten_do_on_average() -> None:
    """B17: what it lacks of ten counts as average, and the mean over all is taken off."""
    scores = score_sessions(scores=[3, 2, -1, 1], sessions=["a", "a", None, "b"], best=10)

    assert scores == pytest.approx([0.5 - 1.1 / 3, 0.5 - 1.1 / 3, 0.0, 0.1 - 1.1 / 3])


def test_only_a_sessions_best_tell_how_it_answers() -> None:
    """B17: a long session is not worse for what else was said in it."""
    scores = score_sessions(scores=[3, 2, -4, 1], sessions=["a", "a", "a", "b"], best=2)

    assert scores[0] - scores[3] == pytest.approx(2.5 - 0.5)


@pytest.mark.parametrize("sessions", [[], [None, None], ["a", "a"]])
def test_where_sessions_do_not_differ_they_change_nothing(sessions: list[str | None]) -> None:
    """B17: nor where there are none."""
    assert score_sessions(scores=[2, -1], sessions=sessions, best=10).tolist() == [0.0, 0.0]


def test_beliefs_stand_beside_episodes_at_four_fifths() -> None:
    """B17: the blend with beliefs is their score × 0.8, and less where a time is asked about."""
    assert belief_factors(count=2, policy=POLICY).tolist() == [0.8, 0.8]
    assert belief_factors(count=2, held=[0.0, 1.0], policy=POLICY) == pytest.approx([0.56, 1.0])


def test_standard_scores_have_mean_zero_and_deviation_one() -> None:
    scores = standardise(values=[1.0, 2.0, 3.0])

    assert (scores.mean(), scores.std()) == pytest.approx((0.0, 1.0))


@given(columns)
def test_scores_are_bounded(drawn: tuple[list[float], list[float], list[float], list[float]]) -> None:
    """B17: what is blended lies in 0..1."""
    confidence, similarity, strength, text = drawn
    beliefs = score_beliefs(
        confidence=confidence, similarity=similarity, strength=strength, text=text, policy=POLICY
    ).score
    episodes = score_episodes(similarity=similarity, text=text, weight=0.5, policy=POLICY).score

    assert np.all((beliefs >= 0) & (beliefs <= 1 + 1e-12))
    assert np.all((episodes >= 0) & (episodes <= 1))


@given(columns)
def test_scores_do_not_depend_on_the_order_of_candidates(
    drawn: tuple[list[float], list[float], list[float], list[float]],
) -> None:
    _, similarity, _, text = drawn
    forward = score_episodes(similarity=similarity, text=text, weight=0.5, policy=POLICY).score
    backward = score_episodes(similarity=similarity[::-1], text=text[::-1], weight=0.5, policy=POLICY).score

    assert forward == pytest.approx(backward[::-1], abs=1e-9)


ASSOCIATIVE = AssociativePolicy()
PLAIN: dict[str, Any] = {
    "similarity": [0.0], "importance": [0.0], "unread_days": [1e9], "stability": [0.0], "is_named": [False],
    "is_insight": [False],
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "score"),
    [
        ({"similarity": [0.8]}, 0.50 * 0.8),
        ({"importance": [0.7]}, 0.20 * 0.7),
        ({"unread_days": [0.0]}, 0.10),
        ({"stability": [2.0]}, 0.05 * 2 / 5),
        ({"stability": [200.0]}, 0.05),
        ({"is_named": [True]}, 0.15),
        ({"similarity": [-0.5]}, 0.0),
    ],
)
def test_each_part_has_its_weight(given: dict[str, list[float]], score: float) -> None:
    """R5."""
    assert score_associations(**{**PLAIN, **given}, policy=ASSOCIATIVE).score == pytest.approx([score])


def test_all_parts_together_make_one() -> None:
    """R5: so that scores are shares, and both kinds of memory compare."""
    full = {name: [1.0] for name in PLAIN} | {"unread_days": [0.0], "stability": [5.0], "is_insight": [False]}
    assert score_associations(**full, policy=ASSOCIATIVE).score == pytest.approx([1.0])


def test_an_insight_has_half_the_score() -> None:
    """R5."""
    given = {**PLAIN, "similarity": [0.8], "is_named": [True], "is_insight": [True]}
    assert score_associations(**given, policy=ASSOCIATIVE).score == pytest.approx([(0.4 + 0.15) / 2])


def test_recency_halves_in_about_thirty_days() -> None:
    """R6."""
    scores = score_associations(**{name: values * 2 for name, values in PLAIN.items()} | {"unread_days": [0.0, 30.0]},
                                policy=ASSOCIATIVE)  # fmt: skip
    assert scores.recency[1] / scores.recency[0] == pytest.approx(0.5, abs=0.01)


SURPRISE = Policy().surprise


@pytest.mark.parametrize(
    ("similarities", "moved"),
    [
        ([], 0.65),
        ([0.65], 0.5),
        ([1.0] * 5, 0.2 + 0.6 * 0.0293),
        ([0.0] * 5, 0.8 - 0.6 * 0.0015),
    ],
    ids=["an empty store", "half a surprise", "known", "wholly new"],
)
def test_importance_moves_by_the_surprise(similarities: list[float], moved: float) -> None:
    """D5: by 0.6·(sigmoid(10·(d − 0.35)) − 0.5); +0.15 where nothing is remembered."""
    surprise = measure_surprise(similarities=similarities, policy=SURPRISE)
    assert move_importance(importance=0.5, surprise=surprise, policy=SURPRISE) == pytest.approx(moved, abs=1e-3)


def test_only_the_nearest_five_count() -> None:
    """D5: the mean distance to the 5 nearest."""
    surprise = measure_surprise(similarities=[0.8] * 5 + [0.0] * 5, policy=SURPRISE)
    assert surprise.distance == pytest.approx(0.2)


@pytest.mark.parametrize(("nearest", "flagged"), [(0.92, True), (0.919, False)])
def test_a_near_duplicate_is_flagged(nearest: float, flagged: bool) -> None:
    """D5: from 0.92 to a neighbour."""
    surprise = measure_surprise(similarities=[nearest, 0.1], policy=SURPRISE)
    assert surprise.is_near_duplicate is flagged


@pytest.mark.parametrize(("before", "similarity", "after"), [(0.1, 1.0, 0.05), (0.95, 0.0, 1.0)])
def test_importance_stays_within_its_bounds(before: float, similarity: float, after: float) -> None:
    """D5: 0.05 to 1."""
    surprise = measure_surprise(similarities=[similarity] * 5, policy=SURPRISE)
    assert move_importance(importance=before, surprise=surprise, policy=SURPRISE) == after
