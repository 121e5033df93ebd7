"""Whose words a fact is really in, whatever a model says that it quotes (L3), and what only says again (R8)."""

from collections.abc import Sequence

from memory.domain.conversation import Fact, SaidTurn
from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS
from memory.domain.sentences import list_words, split_sentences

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


def says_more(*, summary: str, told: Sequence[str], share: float) -> bool:
    """Tell whether a summary has a sentence of which texts have less than a share of the words, or not all numbers."""
    known = {word for text in told for word in _stems(text) | _numbers(text)}
    sentences = [(_stems(sentence), _numbers(sentence)) for sentence in split_sentences(summary)]
    return any(len(words & known) < share * len(words) or not numbers <= known for words, numbers in sentences)


def _numbers(text: str) -> set[str]:
    return {word for word in list_words(text) if any(map(str.isdigit, word))}


def _holds_any(wanted: Sequence[set[str]], *, said: set[str], name: set[str]) -> bool:
    return any(words - name <= said for words in wanted if words - name)


def _stems(text: str) -> set[str]:
    words = (word.casefold() for word in list_words(text))
    kept = (word for word in words if word not in ENGLISH_STOPS and word not in GERMAN_STOPS)
    return {word[:_STEM] for word in kept if len(word) >= _SHORTEST}
