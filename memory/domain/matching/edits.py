"""Lay two texts over each other word by word and name what differs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from itertools import pairwise

from memory.domain.matching.alignment import align
from memory.domain.matching.analysis import Analysis
from memory.domain.matching.lexicon import Lexicon, Mark, load_lexicon
from memory.domain.matching.tokens import Token, count_negators

MAX_WORDS = 80  # words of a text that are laid over the other: the table grows with their product
ALTERNATIVES = frozenset({"or", "oder"})
ORDINAL_ENDINGS = ("th", "st", "nd", "rd")
NOW = frozenset({"now", "currently", "jetzt", "nun"})
# Words that say there is only one: beside them another member of a kind is another claim.
SINGLING = frozenset(
    {"is", "are", "was", "were", "now", "only", "always", "ist", "sind", "war", "jetzt", "nur", "immer"}
)


TELLING = frozenset({Mark.WORD, Mark.HEDGE, Mark.LIMITER, Mark.CONTRAST})


class EditKind(StrEnum):
    """What an edit does to the claim."""

    NONE = auto()
    DROPPED = auto()  # the belief leaves out something of the episode
    ADDED = auto()
    OTHER = auto()
    DENIED = auto()
    NUMBER = auto()
    OPPOSITE = auto()
    NAME = auto()


@dataclass(frozen=True, slots=True)
class Edit:
    """What one text has where the other has something else; either may be empty."""

    left: tuple[Token, ...]
    right: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The edits from left to right, and the share of the shorter text's words that are in both."""

    edits: tuple[Edit, ...]
    shared: int
    share: float


def overlay(left: Analysis, right: Analysis) -> Overlay:
    """Return how right differs from left, by concept and in order."""
    mine, theirs = _read(left), _read(right)
    pairs = align([_key(token) for token in mine], [_key(token) for token in theirs])
    edges = [(-1, -1), *pairs, (len(mine), len(theirs))]
    edits = (Edit(tuple(mine[a + 1 : c]), tuple(theirs[b + 1 : d])) for (a, b), (c, d) in pairwise(edges))
    return Overlay(
        edits=tuple(edit for edit in edits if edit.left or edit.right),
        shared=len(pairs),
        share=len(pairs) / max(1, min(len(mine), len(theirs))),
    )


def _read(analysis: Analysis) -> Sequence[Token]:
    return [token for token in analysis.tokens if token.surface[0].isalnum()][:MAX_WORDS]


def _key(token: Token) -> str:
    return f"{token.entry.sign}{token.entry.concept}" if token.entry.concept else token.lower


def classify_edit(edit: Edit, *, episode: Analysis, belief: Analysis, laid: Overlay, long_frame: int) -> EditKind:
    """Say what an edit does; another name counts in a frame of `long_frame` words or beside a "now"."""
    lexicon = load_lexicon(belief.language)
    if _is_denial(edit):
        return EditKind.DENIED
    if not edit.left or not edit.right:
        return _classify_addition(edit)
    if ALTERNATIVES & belief.markers:  # one of several alternatives may change and the sentence stay true
        return EditKind.OTHER if _says_something(edit.right) else EditKind.DROPPED
    left, right = _numbers(edit.left, lexicon), _numbers(edit.right, lexicon)
    if left and right:
        return EditKind.NUMBER if left != right else EditKind.NONE
    if _excludes(edit, lexicon=lexicon) or _is_other_of_kind(edit, belief=belief, lexicon=lexicon):
        return EditKind.OPPOSITE
    is_event = laid.shared >= long_frame or (bool(NOW & episode.markers) and not edit.left[0].first)
    if is_event and _is_renaming(edit, episode=episode):
        return EditKind.NAME
    if not (_says_something(edit.right) and _says_something(edit.left)):
        return _classify_addition(edit)
    return EditKind.DROPPED if _is_light(edit.right, lexicon=lexicon) else EditKind.OTHER


def _classify_addition(edit: Edit) -> EditKind:
    if _says_something(edit.right):
        return EditKind.ADDED
    return EditKind.DROPPED if _says_something(edit.left) else EditKind.NONE


def _is_denial(edit: Edit) -> bool:
    """Say whether nothing but a negation came or went, or stands where another word stood."""
    if _only_denies(edit.left, edit.right) or _only_denies(edit.right, edit.left):
        return True
    if count_negators(edit.left) % 2 == count_negators(edit.right) % 2:
        return False
    return max(len(_content(edit.left)), len(_content(edit.right))) <= (1 if edit.left and edit.right else 0)


def _only_denies(tokens: Iterable[Token], others: Iterable[Token]) -> bool:
    """Say whether one side has nothing but a verb of denial ("stopped") and the other nothing."""
    content = _content(tokens)
    return len(content) == 1 and content[0].entry.sign < 0 and not _content(others)


def _numbers(tokens: Iterable[Token], lexicon: Lexicon) -> set[str]:
    return {_number(token.lower, lexicon) for token in tokens} - {""}


def _number(word: str, lexicon: Lexicon) -> str:
    if any(character.isdigit() for character in word):
        return word[:-2] if word.endswith(ORDINAL_ENDINGS) else word
    value = lexicon.numbers.get(word, lexicon.ordinals.get(word))
    return "" if value is None else f"{value:g}"


def _says_something(tokens: Iterable[Token]) -> bool:
    return any(token.entry.mark in TELLING or token.lower[0].isdigit() for token in tokens)


def _is_light(tokens: Iterable[Token], *, lexicon: Lexicon) -> bool:
    return all(token.entry.concept in lexicon.light for token in _content(tokens))


def _content(tokens: Iterable[Token]) -> list[Token]:
    return [token for token in tokens if token.entry.mark is Mark.WORD]


def _excludes(edit: Edit, *, lexicon: Lexicon) -> bool:
    return any(_are_opposite(one, other, lexicon=lexicon) for one in edit.left for other in edit.right)


def _are_opposite(one: Token, other: Token, *, lexicon: Lexicon) -> bool:
    if one.entry.concept == other.entry.concept:
        return one.entry.sign != other.entry.sign
    return lexicon.exclude_each_other(one.entry.concept, other.entry.concept)


def _is_other_of_kind(edit: Edit, *, belief: Analysis, lexicon: Lexicon) -> bool:
    mine = {lexicon.kinds.get(token.entry.concept) for token in edit.left} - {None}
    kinds = [token.entry.concept for token in edit.right if lexicon.kinds.get(token.entry.concept) in mine]
    governed = any(word.governor for word in belief.words if word.concept in kinds) or bool(lexicon.times & set(kinds))
    return bool(kinds) and (governed or bool(SINGLING & belief.markers))


def _is_renaming(edit: Edit, *, episode: Analysis) -> bool:
    """Say whether names gave way to names that the episode has nowhere."""
    left, right = ({token.entry.concept for token in _content(side)} for side in (edit.left, edit.right))
    if right & episode.concepts or left <= right:
        return False
    return _are_names(edit.left) and _are_names(edit.right)


def _are_names(tokens: Iterable[Token]) -> bool:
    content = _content(tokens)
    return bool(content) and all(token.surface[0].isupper() for token in content)
