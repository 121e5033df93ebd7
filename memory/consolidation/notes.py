"""What a memory says of an older one: it confirms it (L15), says the same or more, or cannot hold beside it (L18).

The pair question is asked of the reader, sentence by sentence and both ways; no rule says what words mean. Where the
reader is not sure, nothing follows. Whoever acts on the answer hides a text from recall, so that little is taken for
sure: each threshold is chosen for precision, and one text stays for another only if it holds all that it said. The
reader is asked about what people say and nothing else: of sentences out of documents, which it was not trained on, a
quarter of those that it is sure are in conflict are (measured on 2,720 near pairs of NLI sets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from memory.domain.policy import Policy
from memory.domain.taxonomy import Category, Kind, Tier, tier_of
from memory.llm.reader import CONTRADICTS, SUPPORTS, reader, spoken
from memory.models import Episode, Source
from memory.text.sentences import split_sentences
from memory.text.words import is_question

# They belong to a training of the reader: choose them anew for each, on pairs that it was not trained on.
BORNE_OUT = 0.8  # SUPPORTS: of what is near enough to confirm, none of 721 labelled pairs that differ reaches it
HELD = 0.8  # SUPPORTS, the words being in the other text: "I eat no meat" bears out "I eat meat" at .5
SAME = 0.9  # SUPPORTS each way, for other words: contradictions that change one word of many reach .8
IN_CONFLICT = 0.9  # CONTRADICTS of the newer one: nine of ten near pairs of unseen authors are right, no more at .95
_MOST_SENTENCES = 4  # of a text; of longer ones only the same words say the same
_LONGEST_SENTENCE = 240  # bytes, since of two longer ones the reader would see a part


class Relation(StrEnum):
    """What two notes are to each other."""

    NONE = "none"  # or the reader is not sure
    SAME = "same"
    NEWER_SAYS_MORE = "newer says more"
    OLDER_SAYS_MORE = "older says more"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a newer text is to an older one, and whether all that the older says is so by it."""

    relation: Relation = Relation.NONE
    is_borne_out: bool = False


_NOTHING = Comparison()


def compare_memories(*, newer: Episode, older: Episode, similarity: float, policy: Policy) -> Comparison:
    """Return what follows for two memories of one user from what they say of each other.

    One speaker's alone are compared. A correction confirms nothing, and is in conflict with an event, too ("on
    Thursday, not Friday"); else only notes are anything to each other. Of what nobody said for themselves only the
    same words are the same: a model corrects no user. What takes another's place is no guess.
    """
    numbers = policy.extraction
    is_correction = newer.category == Category.CORRECTION
    are_notes = newer.kind is Kind.NOTE and older.kind is Kind.NOTE
    may_confirm = similarity > numbers.confirm_similarity and not is_correction
    may_relate = similarity >= numbers.conflict_similarity and (are_notes or is_correction)
    if newer.speaker != older.speaker or not (may_confirm or may_relate):
        return _NOTHING
    is_speech = newer.source == older.source == Source.HUMAN
    found = compare_texts(newer=newer.text, older=older.text, speaker=newer.speaker, is_speech=is_speech)
    is_allowed = {
        Relation.NONE: True,
        Relation.SAME: are_notes and may_confirm,
        Relation.NEWER_SAYS_MORE: are_notes and not is_correction and not _is_guess(newer, policy),
        Relation.OLDER_SAYS_MORE: are_notes and not is_correction and not _is_guess(older, policy),
        Relation.CONFLICT: newer.occurred_at > older.occurred_at and not _is_guess(newer, policy),
    }[found.relation]
    return Comparison(
        relation=found.relation if may_relate and is_allowed else Relation.NONE,
        is_borne_out=found.is_borne_out and may_confirm,
    )


def _is_guess(episode: Episode, policy: Policy) -> bool:
    """Tell whether it was extracted as a guess; what nobody extracted was said as it stands."""
    if episode.confidence is None:
        return False
    return tier_of(confidence=episode.confidence, policy=policy.extraction) is Tier.SPECULATIVE


def compare_texts(*, newer: str, older: str, speaker: str, is_speech: bool = True) -> Comparison:
    """Ask of two texts of one speaker what each says of the other; without speech only their words are compared.

    A text of several sentences holds what another says if it holds each of its sentences; one that says several
    things does not fall with one of them, nor any with a part of its own words.
    """
    words, others = _tokens(newer), _tokens(older)
    if words and words == others:
        return Comparison(relation=Relation.SAME, is_borne_out=True)
    said, noted = _sentences(newer), _sentences(older)
    if not said or not noted or not is_speech:
        return _NOTHING
    forth, back = _ask(said, noted, speaker)
    newer_holds = _holds_each(said, noted, forth[..., SUPPORTS], back[..., SUPPORTS])
    older_holds = _holds_each(noted, said, back[..., SUPPORTS].T, forth[..., SUPPORTS].T)
    if newer_holds and older_holds:
        relation = Relation.SAME
    elif newer_holds or older_holds:
        relation = Relation.NEWER_SAYS_MORE if newer_holds else Relation.OLDER_SAYS_MORE
    elif len(noted) == 1 and forth[..., CONTRADICTS].max() >= IN_CONFLICT and not _is_within(words, others):
        relation = Relation.CONFLICT
    else:
        relation = Relation.NONE
    is_borne_out = newer_holds or bool((forth[..., SUPPORTS].max(axis=0) >= BORNE_OUT).all())
    return Comparison(relation=relation, is_borne_out=is_borne_out and relation is not Relation.CONFLICT)


def _ask(said: Sequence[str], noted: Sequence[str], speaker: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return what each sentence said later says of each noted one, and the other way round; questions say nothing."""
    shape = len(said), len(noted), 4
    later, earlier = ([spoken(speaker, text) for text in texts] for texts in (said, noted))
    forth = reader().relation([(b, a) for a in later for b in earlier]).reshape(shape)
    back = reader().relation([(a, b) for a in later for b in earlier]).reshape(shape)
    for place, text in enumerate(said):
        if is_question(text):
            forth[place], back[place] = 0, 0
    for place, text in enumerate(noted):
        if is_question(text):
            forth[:, place], back[:, place] = 0, 0
    return forth, back


def _holds_each(
    holders: Sequence[str], held: Sequence[str], forth: NDArray[np.float32], back: NDArray[np.float32]
) -> bool:
    """Tell whether each sentence is held by some other: `forth` is how surely each of these bears each of those out."""
    return all(
        any(_holds(one, other, forth[i, j], back[i, j]) for i, one in enumerate(holders))
        for j, other in enumerate(held)
    )


def _holds(holder: str, held: str, forth: float, back: float) -> bool:
    """Tell whether a sentence says all that another says: in its words, with them, or for sure in other ones.

    One that has the other's words and more says more, whatever the reader makes of the way back: "must not eat gluten"
    does not hold "must not eat gluten or dairy", though it bears it out.
    """
    words, others = _tokens(holder), _tokens(held)
    if words == others:
        return True
    if _is_within(others, words):
        return forth >= HELD
    return not _is_within(words, others) and min(forth, back) >= SAME


def _is_within(words: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether words stand among others in the same order."""
    rest = iter(others)
    return all(word in rest for word in words)


_MARKS = ".,;:!…"
_BULLETS = frozenset("-–—•*")


def _tokens(text: str) -> list[str]:
    """Return what stands between spaces, without the marks of a sentence: "65 €" and "65 $" are not the same words."""
    found = (token.strip(_MARKS) for token in text.casefold().split())
    return [token for token in found if token and not set(token) <= _BULLETS]


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text that can be asked about as a whole, else nothing: what is left out would hide."""
    found = split_sentences(text)
    is_whole = _tokens(" ".join(found)) == _tokens(text)
    fits = len(found) <= _MOST_SENTENCES and all(len(one.encode()) <= _LONGEST_SENTENCE for one in found)
    return found if is_whole and fits else []
