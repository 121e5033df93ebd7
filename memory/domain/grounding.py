"""Whose words a fact is really in, whatever a model says that it quotes (L3)."""

from collections.abc import Sequence

from memory.domain.conversation import Fact, SaidTurn
from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS
from memory.domain.sentences import list_words

_STEM = 5  # letters of a word that its forms share
_SHORTEST = 3


def turns_that_tell(*, fact: Fact, turns: Sequence[SaidTurn]) -> list[SaidTurn]:
    """Return the turns that a fact quotes, and those that have more of its words than any of them.

    A model may be talked into ascribing to one what another said: it then quotes a turn that lacks the fact's words.
    """
    names = {word for turn in turns for word in _stems(turn.speaker)}
    wanted = _stems(fact.text) - names
    shared = {turn.number: len(wanted & _stems(turn.text)) for turn in turns}
    most = max((shared[number] for number in fact.turns if number in shared), default=0)
    return [turn for turn in turns if turn.number in fact.turns or shared[turn.number] > most]


def turns_that_repeat(*, texts: Sequence[str], turns: Sequence[SaidTurn]) -> list[SaidTurn]:
    """Return the turns that hold every word of one of some texts, but for the name of who speaks."""
    wanted = [_stems(text) for text in texts]
    return [turn for turn in turns if _holds_any(wanted, said=_stems(turn.text), name=_stems(turn.speaker))]


def _holds_any(wanted: Sequence[set[str]], *, said: set[str], name: set[str]) -> bool:
    return any(words - name <= said for words in wanted if words - name)


def _stems(text: str) -> set[str]:
    words = (word.casefold() for word in list_words(text))
    kept = (word for word in words if word not in ENGLISH_STOPS and word not in GERMAN_STOPS)
    return {word[:_STEM] for word in kept if len(word) >= _SHORTEST}
