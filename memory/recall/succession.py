"""What was superseded stands below what took its place (B16)."""

from collections.abc import Iterator, Mapping, Sequence

from memory.recall.ranking import Ranked, best

Successions = Mapping[str, str]  # the belief in the place of what an episode says, by that episode


def give_way(*, ranked: Sequence[Ranked], successions: Successions) -> list[Ranked]:
    """Let what was superseded change places with its successor where that stands lower: the best score is the latter's.

    Scores are only shared out anew.
    """
    if not successions:
        return list(ranked)
    here = {item.id: item for item in ranked}
    changed: dict[str, Ranked] = {}
    for leader, followers in _lines(here, successions).items():
        ordered = [here[leader], *best(ranked=followers)]
        scores = sorted((item.score for item in ordered), reverse=True)
        for item, score in zip(ordered, scores, strict=True):
            changed[item.id] = _moved(item, score)
    return [changed.get(item.id, item) for item in ranked]


def _lines(here: Mapping[str, Ranked], successions: Successions) -> dict[str, list[Ranked]]:
    lines: dict[str, list[Ranked]] = {}
    for episode, belief in successions.items():
        if episode in here and belief in here:
            lines.setdefault(belief, []).append(here[episode])
    return lines


def _moved(item: Ranked, score: float) -> Ranked:
    return item if score == item.score else item.gain(score - item.score, succession=score - item.score)


def successors_of(*, ranked: Sequence[Ranked], successions: Successions) -> Iterator[str]:
    """Name the beliefs that stand in the place of what some of these episodes say."""
    return (successions[item.id] for item in ranked if item.id in successions)
