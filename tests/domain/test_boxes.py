"""L7: which box a memory belongs in, when a box is sealed, and which boxes are on one trace."""

from datetime import UTC, datetime, timedelta

import pytest

from memory.domain.graph import (
    BoxState,
    Traced,
    add_to_box,
    choose_box,
    is_idle,
    is_over,
    overlap_of_topics,
    trace_boxes,
)
from memory.domain.policy_memories import BoxPolicy
from memory.language.subjects import topics_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICY = BoxPolicy()


def box(*topics: str, minutes: float = 0, memories: int = 1) -> BoxState:
    at = NOON + timedelta(minutes=minutes)
    return BoxState(topics=topics, memories=memories, opened_at=at, last_at=at)


def chosen(*topics: str, boxes: list[BoxState], minutes: float = 1, current: int | None = None) -> int | None:
    at = NOON + timedelta(minutes=minutes)
    return choose_box(topics=topics, at=at, boxes=boxes, current=current, policy=POLICY)


def ends(state: BoxState, *, minutes: float) -> bool:
    return is_over(box=state, at=NOON + timedelta(minutes=minutes), policy=POLICY)


def test_a_memory_is_about_whom_it_names_or_else_about_its_longest_words() -> None:
    assert topics_of(names=["mara", "berlin", "mara"], text="Mara is in Berlin.", policy=POLICY) == ("mara", "berlin")
    assert topics_of(names=[], text="We are harvesting the apples by then", policy=POLICY) == ("harvesting", "apples")


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
    assert is_idle(box=box("garden"), at=NOON + timedelta(minutes=minutes), policy=POLICY) is is_far
    assert chosen("garden", boxes=[box("garden")], minutes=minutes) == (None if is_far else 0)
    assert ends(box("garden"), minutes=minutes) is (is_far and minutes > 0)


def test_what_has_no_topic_stays_where_its_session_is() -> None:
    assert chosen(boxes=[box("garden"), box("compiler")], current=1) == 1
    assert chosen(boxes=[box("garden")]) is None


def test_a_session_that_said_nothing_yet_has_no_topic_to_shift_from() -> None:
    assert chosen("garden", boxes=[box()], current=0) == 0


def test_a_box_is_known_by_its_latest_topics() -> None:
    state = box(*(f"topic {number}" for number in range(48)))
    later = add_to_box(box=state, topics=["new", "topic 3"], at=NOON + timedelta(minutes=5), policy=POLICY)
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
    assert trace_boxes(box=box(*topics), others=[other], policy=POLICY) == found


def test_a_box_continues_those_that_are_most_like_it() -> None:
    others = [box("a", "x", "y"), box("a", "b", "c"), box("a", "b", "y", minutes=-9), box("a", "b", "y", minutes=-5)]
    found = trace_boxes(box=box("a", "b", "c"), others=others, policy=POLICY)
    assert [traced.place for traced in found] == [1, 3, 2]
