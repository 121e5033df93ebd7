"""Which texts are to be judged against which statements in one question."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingBatch:
    """Statements and texts, by their keys, of which every pair is judged; some pairs may need no verdict."""

    statements: tuple[str, ...]
    texts: tuple[str, ...]


def batch_pairs(
    *, waiting: Mapping[str, Collection[str]], texts: Sequence[str], most_statements: int, most_texts: int
) -> list[JudgingBatch]:
    """Cut what waits for a verdict, texts by statement, into questions; both keep their order.

    Statements that wait for the same texts, mostly, are asked about together: a verdict too many costs less than
    showing a text again.
    """
    return [
        batch
        for group in _groups({key: set(those) for key, those in waiting.items() if those}, most_statements)
        for batch in _cut(group, texts, most_texts)
    ]


def _groups(waiting: Mapping[str, set[str]], most: int) -> list[dict[str, set[str]]]:
    groups: list[dict[str, set[str]]] = []
    for key, those in waiting.items():
        fitting = (group for group in groups if len(group) < most and _share_most(group, those))
        group = next(fitting, None)
        if group is None:
            groups.append({key: those})
        else:
            group[key] = those
    return groups


def _share_most(group: Mapping[str, set[str]], those: set[str]) -> bool:
    """Tell whether most texts of either side are the other's, too."""
    shown = set[str]().union(*group.values())
    return 2 * len(shown & those) > max(len(shown), len(those))


def _cut(group: Mapping[str, set[str]], texts: Sequence[str], most: int) -> Iterator[JudgingBatch]:
    shown = [text for text in texts if any(text in those for those in group.values())]
    for start in range(0, len(shown), most):
        part = shown[start : start + most]
        concerned = tuple(key for key, those in group.items() if those.intersection(part))
        yield JudgingBatch(statements=concerned, texts=tuple(part))
