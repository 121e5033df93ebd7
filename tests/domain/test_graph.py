"""L7: which box a memory belongs in, when a box is sealed, and which boxes are on one trace.

L19: edges gain confidence when they are seen again, lose it when they are not, and link more the rarer a name.
L19: what recall makes of the edges that it walked.
"""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.graph import (
    BoxState,
    EdgeKind,
    EdgeState,
    Traced,
    WalkedEdge,
    add_to_box,
    begin_edge,
    choose_box,
    contribution_of,
    decay_edge,
    is_idle,
    is_over,
    known_confidence,
    overlap_of_topics,
    reinforce_edge,
    spread_from,
    trace_boxes,
    weigh_shared_names,
)
from memory.domain.policy_memories import BoxPolicy, GraphPolicy
from memory.language.sentences import find_cause
from memory.language.subjects import topics_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOXES = BoxPolicy()


def box(*topics: str, minutes: float = 0, memories: int = 1) -> BoxState:
    at = NOON + timedelta(minutes=minutes)
    return BoxState(topics=topics, memories=memories, opened_at=at, last_at=at)


def chosen(*topics: str, boxes: list[BoxState], minutes: float = 1, current: int | None = None) -> int | None:
    at = NOON + timedelta(minutes=minutes)
    return choose_box(topics=topics, at=at, boxes=boxes, current=current, policy=BOXES)


def ends(state: BoxState, *, minutes: float) -> bool:
    return is_over(box=state, at=NOON + timedelta(minutes=minutes), policy=BOXES)


def test_a_memory_is_about_whom_it_names_or_else_about_its_longest_words() -> None:
    assert topics_of(names=["mara", "berlin", "mara"], text="Mara is in Berlin.", policy=BOXES) == ("mara", "berlin")
    assert topics_of(names=[], text="We are harvesting the apples by then", policy=BOXES) == ("harvesting", "apples")


@pytest.mark.parametrize(
    ("one", "other", "share"), [("abc", "bcd", 2 / 3), ("a", "abcd", 1), ("a", "b", 0), ("", "a", 0)]
)
def test_overlap_is_the_share_of_the_smaller_that_both_have(one: str, other: str, share: float) -> None:
    assert overlap_of_topics(one=list(one), other=list(other)) == pytest.approx(share)


def test_a_memory_goes_into_the_open_box_of_its_topic() -> None:
    """L7: one open box a topic."""
    boxes = [box("garden", "apples"), box("compiler", "parser")]
    assert chosen("parser", "tokens", boxes=boxes, current=0) == 1


@pytest.mark.parametrize(("shared", "place"), [(7, 0), (6, None)])
def test_a_topic_shifts_below_an_overlap_of_035(shared: int, place: int | None) -> None:
    """L7: 7 of 20 stay, 6 of 20 do not."""
    topics = [f"topic {number}" for number in range(20)]
    boxes = [box(*topics[:shared], *(f"other {number}" for number in range(30)))]
    assert chosen(*topics, boxes=boxes, current=0) == place


@pytest.mark.parametrize(("minutes", "is_far"), [(30, False), (30.1, True), (-30, False), (-30.1, True)])
def test_a_box_is_idle_after_30_minutes(minutes: float, is_far: bool) -> None:
    """L7."""
    assert is_idle(box=box("garden"), at=NOON + timedelta(minutes=minutes), policy=BOXES) is is_far
    assert chosen("garden", boxes=[box("garden")], minutes=minutes) == (None if is_far else 0)
    assert ends(box("garden"), minutes=minutes) is (is_far and minutes > 0)


def test_what_has_no_topic_stays_where_its_session_is() -> None:
    assert chosen(boxes=[box("garden"), box("compiler")], current=1) == 1
    assert chosen(boxes=[box("garden")]) is None


def test_a_session_that_said_nothing_yet_has_no_topic_to_shift_from() -> None:
    assert chosen("garden", boxes=[box()], current=0) == 0


def test_a_box_is_known_by_its_latest_topics() -> None:
    state = box(*(f"topic {number}" for number in range(48)))
    later = add_to_box(box=state, topics=["new", "topic 3"], at=NOON + timedelta(minutes=5), policy=BOXES)
    assert later.topics[:4] == ("new", "topic 3", "topic 0", "topic 1")
    assert (len(later.topics), later.memories) == (48, 2)
    assert (later.opened_at, later.last_at) == (NOON, NOON + timedelta(minutes=5))


@pytest.mark.parametrize(
    ("topics", "days", "found"),
    [
        ("ab678", 6.9, [Traced(place=0, overlap=0.4)]),
        ("a5678", 6.9, []),
        ("ab678", 7.1, []),
        ("ab678", -6.9, [Traced(place=0, overlap=0.4)]),
    ],
)
def test_a_trace_leads_to_boxes_of_the_same_topic_within_a_week(topics: str, days: float, found: list[Traced]) -> None:
    """L7: overlap ≥ 0.4 and at most 7 days apart."""
    other = box(*"abcde", minutes=-days * 24 * 60)
    assert trace_boxes(box=box(*topics), others=[other], policy=BOXES) == found


def test_a_box_continues_those_that_are_most_like_it() -> None:
    others = [box("a", "x", "y"), box("a", "b", "c"), box("a", "b", "y", minutes=-9), box("a", "b", "y", minutes=-5)]
    found = trace_boxes(box=box("a", "b", "c"), others=others, policy=BOXES)
    assert [traced.place for traced in found] == [1, 3, 2]


SEEN = datetime(2026, 1, 1, tzinfo=UTC)
GRAPH = GraphPolicy()


def after(days: float) -> datetime:
    return SEEN + timedelta(days=days)


def faded(confidence: float | None, *, days: float) -> float | None:
    standing = EdgeState(confidence=confidence, decays_at=after(180))
    return decay_edge(standing=standing, now=after(days), policy=GRAPH).confidence


@pytest.mark.parametrize(
    ("days", "confidence"), [(0, 0.7), (90, 0.7), (179.9, 0.7), (180, 0.6), (269, 0.6), (270, 0.5), (10_000, 0.1)]
)
def test_an_edge_loses_a_tenth_for_each_window_after_its_grace(days: float, confidence: float) -> None:
    """L19: 90 days of grace, then 0.1 for each further 90 days that are over, never below 0.1."""
    edge = begin_edge(kind=EdgeKind.ENTITY, seen_at=SEEN, policy=GRAPH)
    assert decay_edge(standing=edge, now=after(days), policy=GRAPH).confidence == confidence


@given(
    confidence=st.none() | st.floats(0, 1).map(lambda value: round(value, 4)),
    looks=st.lists(st.floats(0, 4_000), max_size=60),
    end=st.floats(0, 4_000),
)
def test_decay_is_the_same_at_any_cadence(confidence: float | None, looks: list[float], end: float) -> None:
    """L19: whether one looks daily, weekly, at odd moments or once."""
    begun = EdgeState(confidence=confidence, decays_at=after(180))
    often = begun
    for days in sorted(look for look in looks if look <= end):
        often = decay_edge(standing=often, now=after(days), policy=GRAPH)
        assert decay_edge(standing=often, now=after(days), policy=GRAPH) == often
    assert decay_edge(standing=often, now=after(end), policy=GRAPH) == decay_edge(
        standing=begun, now=after(end), policy=GRAPH
    )


@pytest.mark.parametrize("cadence", [1, 7, 30, 365, 1_500])
def test_daily_weekly_or_once_makes_no_difference(cadence: int) -> None:
    """L19."""
    standing = EdgeState(confidence=0.85, decays_at=after(180))
    for days in range(0, 1_501, cadence):
        standing = decay_edge(standing=standing, now=after(days), policy=GRAPH)
    assert decay_edge(standing=standing, now=after(1_500), policy=GRAPH).confidence == 0.1


def test_what_lies_below_the_floor_is_not_raised_to_it() -> None:
    assert faded(0.04, days=5_000) == 0.04


def test_an_edge_without_a_confidence_counts_as_sure_and_fades_from_there() -> None:
    """L19: no confidence → 1.0."""
    assert (known_confidence(None), faded(None, days=180)) == (1.0, 0.9)


@pytest.mark.parametrize(("before", "confidence"), [(0.7, 0.75), (0.98, 1.0), (1.0, 1.0), (None, 1.0)])
def test_an_edge_that_is_seen_again_gains_a_twentieth(before: float | None, confidence: float) -> None:
    """L19: +0.05, cap 1, and its grace begins anew."""
    again = reinforce_edge(confidence=before, seen_at=after(100), policy=GRAPH)
    assert again == EdgeState(confidence=confidence, decays_at=after(280))


def test_a_rare_name_links_more_than_a_common_one() -> None:
    """1/(1 + ln 2) = 0.59; two names: 1 − (1 − 0.59)(1 − 0.126)."""
    alone, common = weigh_shared_names(said=[2]), weigh_shared_names(said=[1_000])
    assert alone == pytest.approx(1 / (1 + math.log(2)))
    assert common == pytest.approx(0.1264, abs=1e-4)
    assert weigh_shared_names(said=[2, 1_000]) == pytest.approx(1 - (1 - alone) * (1 - common))


def test_a_cause_is_the_memory_that_says_it() -> None:
    """L19: in the same words, or in most of them; the first of equals."""
    texts = ["The train was late.", "It rained all night.", "it rained  all night", "All night the heavy rain fell."]
    assert find_cause(cause="It rained all night", texts=texts, least=0.6) == (1, 1.0)
    assert find_cause(cause="The heavy rain fell early", texts=texts, least=0.6) == (3, 0.75)


def test_a_cause_that_no_memory_says_is_none() -> None:
    assert find_cause(cause="The bridge was closed", texts=["The train was late."], least=0.6) is None
    assert find_cause(cause="it is", texts=["It is so."], least=0.6) is None
    assert find_cause(cause="It rained", texts=[], least=0.6) is None


SPREADING = GraphPolicy()


def walked(origin: str, target: str, hop: int, *, weight: float = 1.0, confidence: float = 1.0) -> WalkedEdge:
    return WalkedEdge(origin=origin, target=target, kind=EdgeKind.ENTITY, weight=weight, confidence=confidence, hop=hop)


@pytest.mark.parametrize(("hop", "contribution"), [(1, 0.28), (2, 0.196), (3, 0.1372)])
def test_an_edge_contributes_weight_times_confidence_times_07_to_the_hop(hop: int, contribution: float) -> None:
    """L19: 0.5 · 0.8 · 0.7^hop."""
    step = walked("a", "b", hop, weight=0.5, confidence=0.8)
    assert contribution_of(step=step, policy=SPREADING) == pytest.approx(contribution)


def test_one_edge_by_hand() -> None:
    """L19: given 1 and 0.7, of which the start is 1/1.7; each round passes 0.85 of everything to the other."""
    seed, other = 1 / 1.7, 0.7 / 1.7
    restart = (seed, other)
    for _ in range(8):
        seed, other = 0.15 * restart[0] + 0.85 * other, 0.15 * restart[1] + 0.85 * seed
    spread = spread_from(seeds={"a": 1.0}, steps=[walked("a", "b", 1)], policy=SPREADING)
    assert spread.scores == {"b": pytest.approx(other / max(seed, other))}


def test_edges_below_the_cut_are_not_followed() -> None:
    """L19: under 0.2."""
    steps = [walked("a", "b", 1, confidence=0.2), walked("a", "c", 1, confidence=0.19)]
    assert spread_from(seeds={"a": 1.0}, steps=steps, policy=SPREADING).scores.keys() == {"b"}


def test_what_is_nearer_and_surer_scores_higher() -> None:
    steps = [
        walked("a", "near", 1),
        walked("a", "unsure", 1, confidence=0.4),
        walked("near", "far", 2),
        walked("far", "farther", 3),
    ]
    scores = spread_from(seeds={"a": 1.0}, steps=steps, policy=SPREADING).scores
    assert scores["near"] > scores["unsure"]
    assert scores["near"] > scores["far"] > scores["farther"] > 0


def test_a_path_tells_every_edge_from_where_the_walk_began() -> None:
    steps = [walked("a", "b", 1), walked("b", "c", 2), walked("a", "d", 1, weight=0.1), walked("d", "c", 2, weight=0.1)]
    paths = spread_from(seeds={"a": 1.0}, steps=steps, policy=SPREADING).paths
    assert [(step.origin, step.target) for step in paths["c"]] == [("a", "b"), ("b", "c")]


def test_a_seed_that_another_leads_to_gains_and_one_that_none_leads_to_does_not() -> None:
    spread = spread_from(seeds={"a": 1.0, "b": 0.5, "alone": 0.9}, steps=[walked("a", "b", 1)], policy=SPREADING)
    assert spread.scores.keys() == {"b"}


def test_the_order_in_which_edges_are_read_does_not_matter() -> None:
    steps = [walked("a", "b", 1, weight=0.3), walked("s", "b", 1), walked("b", "c", 2), walked("b", "a", 2, weight=0.4)]
    seeds = {"a": 0.8, "s": 0.8}
    assert spread_from(seeds=seeds, steps=steps, policy=SPREADING) == spread_from(
        seeds=dict(reversed(seeds.items())), steps=steps[::-1], policy=SPREADING
    )


def test_without_edges_there_is_nothing_to_spread() -> None:
    assert spread_from(seeds={"a": 1.0}, steps=[], policy=SPREADING).scores == {}
