"""Which texts are to be judged against which statements in one question."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_IN_SIGHT = 20  # questions with room that a text is tried in: a pool may fill thousands


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


def gather_pairs(
    *, waiting: Mapping[str, Collection[str]], texts: Sequence[str], most_texts: int
) -> list[JudgingBatch]:
    """Cut what was packed for one question into as few as it takes by now."""
    return list(_cut({key: set(those) for key, those in waiting.items() if those}, texts, most_texts))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedText:
    """A text, whose it is (a question has one text of each voice), and the statements to judge it against."""

    key: tuple[str, int]
    voice: str
    statements: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Pack:
    """Texts that share a question, each with its own statements."""

    texts: list[PackedText] = field(default_factory=list)
    statements: set[str] = field(default_factory=set)
    voices: set[str] = field(default_factory=set)

    def add(self, text: PackedText) -> None:
        """Take a text into the question."""
        self.texts.append(text)
        self.statements |= set(text.statements)
        self.voices.add(text.voice)


def pack_texts(*, texts: Sequence[PackedText], most_statements: int, most_texts: int) -> list[Pack]:
    """Gather texts into few questions, in their order, each where it adds fewest statements; long lists are cut."""
    packs: list[Pack] = []
    roomy: list[Pack] = []
    for text in (part for whole in texts for part in _in_parts(whole, most_statements)):
        fitting = [pack for pack in roomy if _has_room(pack, text, most_statements)]
        if fitting:
            pack = min(fitting, key=lambda pack: len(set(text.statements) - pack.statements))
        else:
            pack = Pack()
            packs.append(pack)
            roomy = [*roomy[-_IN_SIGHT + 1 :], pack]
        pack.add(text)
        roomy = [each for each in roomy if len(each.texts) < most_texts]
    return packs


def _in_parts(text: PackedText, most: int) -> Iterator[PackedText]:
    for start in range(0, len(text.statements), most):
        yield PackedText(key=text.key, voice=text.voice, statements=text.statements[start : start + most])


def _has_room(pack: Pack, text: PackedText, most: int) -> bool:
    return text.voice not in pack.voices and len(pack.statements.union(text.statements)) <= most
