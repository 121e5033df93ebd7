"""L19: what recall makes of the edges that it walked."""

import pytest

from memory.domain.graph import EdgeKind, WalkedEdge, contribution_of, spread_from
from memory.domain.policy_memories import GraphPolicy

POLICY = GraphPolicy()


def walked(origin: str, target: str, hop: int, *, weight: float = 1.0, confidence: float = 1.0) -> WalkedEdge:
    return WalkedEdge(origin=origin, target=target, kind=EdgeKind.ENTITY, weight=weight, confidence=confidence, hop=hop)


@pytest.mark.parametrize(("hop", "contribution"), [(1, 0.28), (2, 0.196), (3, 0.1372)])
def test_an_edge_contributes_weight_times_confidence_times_07_to_the_hop(hop: int, contribution: float) -> None:
    """L19: 0.5 · 0.8 · 0.7^hop."""
    step = walked("a", "b", hop, weight=0.5, confidence=0.8)
    assert contribution_of(step=step, policy=POLICY) == pytest.approx(contribution)


def test_one_edge_by_hand() -> None:
    """L19: given 1 and 0.7, of which the start is 1/1.7; each round passes 0.85 of everything to the other."""
    seed, other = 1 / 1.7, 0.7 / 1.7
    restart = (seed, other)
    for _ in range(8):
        seed, other = 0.15 * restart[0] + 0.85 * other, 0.15 * restart[1] + 0.85 * seed
    spread = spread_from(seeds={"a": 1.0}, steps=[walked("a", "b", 1)], policy=POLICY)
    assert spread.scores == {"b": pytest.approx(other / max(seed, other))}


def test_edges_below_the_cut_are_not_followed() -> None:
    """L19: under 0.2."""
    steps = [walked("a", "b", 1, confidence=0.2), walked("a", "c", 1, confidence=0.19)]
    assert spread_from(seeds={"a": 1.0}, steps=steps, policy=POLICY).scores.keys() == {"b"}


def test_what_is_nearer_and_surer_scores_higher() -> None:
    steps = [
        walked("a", "near", 1),
        walked("a", "unsure", 1, confidence=0.4),
        walked("near", "far", 2),
        walked("far", "farther", 3),
    ]
    scores = spread_from(seeds={"a": 1.0}, steps=steps, policy=POLICY).scores
    assert scores["near"] > scores["unsure"]
    assert scores["near"] > scores["far"] > scores["farther"] > 0


def test_a_path_tells_every_edge_from_where_the_walk_began() -> None:
    steps = [walked("a", "b", 1), walked("b", "c", 2), walked("a", "d", 1, weight=0.1), walked("d", "c", 2, weight=0.1)]
    paths = spread_from(seeds={"a": 1.0}, steps=steps, policy=POLICY).paths
    assert [(step.origin, step.target) for step in paths["c"]] == [("a", "b"), ("b", "c")]


def test_a_seed_that_another_leads_to_gains_and_one_that_none_leads_to_does_not() -> None:
    spread = spread_from(seeds={"a": 1.0, "b": 0.5, "alone": 0.9}, steps=[walked("a", "b", 1)], policy=POLICY)
    assert spread.scores.keys() == {"b"}


def test_the_order_in_which_edges_are_read_does_not_matter() -> None:
    steps = [walked("a", "b", 1, weight=0.3), walked("s", "b", 1), walked("b", "c", 2), walked("b", "a", 2, weight=0.4)]
    seeds = {"a": 0.8, "s": 0.8}
    assert spread_from(seeds=seeds, steps=steps, policy=POLICY) == spread_from(
        seeds=dict(reversed(seeds.items())), steps=steps[::-1], policy=POLICY
    )


def test_without_edges_there_is_nothing_to_spread() -> None:
    assert spread_from(seeds={"a": 1.0}, steps=[], policy=POLICY).scores == {}
