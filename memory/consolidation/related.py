"""Which beliefs a claim has something to do with, by the slots, names and words that they share."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from memory.claims import RULES_READER
from memory.consolidation.sources import EpisodeSource
from memory.domain.evidence import Verdict, was_closed_at
from memory.domain.lifecycle import LIVE
from memory.language.clauses import Mode
from memory.language.readings import Reading, read_sentence
from memory.language.relations import ClaimRelation, relate_claim
from memory.language.slots import slots_by_name, without_ended
from memory.language.third_person import person_of
from memory.ledger.gates import is_closed
from memory.models import Belief, Claim

EXPLICIT = 0.6  # confidence of a claim from which it plainly states something lasting

_SHARED = 2  # rare words by which two sentences may be about one thing
_RARE = 0.2  # share of the beliefs in which a word stands at most to be rare, …
_FEW = 3  # … or so many of them


class WordIndex:
    """Sentences by the words, slots and names that stand in them."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._rare = max(_FEW, _RARE * len(readings))
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for place, reading in enumerate(readings):
            for word in _words_of(reading):
                self._by_word[word].add(place)

    def having(self, words: Iterable[str]) -> set[int]:
        """Return the places of the sentences that have any of some words."""
        return set[int]().union(*(self._by_word.get(word, set()) for word in words))

    def alike(self, claim: Claim, reading: Reading) -> set[int]:
        """Return the sentences that may be about what a claim is: of a slot or name of its own, or of two rare words.

        That is no verdict, but a reason to ask for one before the claim founds a belief by itself.
        """
        slots = (reading.slots.keys() | set(claim.slots)) & slots_by_name().keys()
        keys = [*(f"slot:{name}" for name in slots), *(f"name:{name}" for name in reading.names)]
        where = (self._by_word.get(stem, set()) for stem in reading.stems)
        shared = Counter(place for places in where if len(places) <= self._rare for place in places)
        return self.having(keys) | {place for place, count in shared.items() if count >= _SHARED}


class KnownBeliefs:
    """The beliefs of a workspace that live, or did when a claim was made, by the slots and words that they share."""

    def __init__(self, *, workspace_id: int, user: str | None = None, said_from: datetime) -> None:
        """Read the live beliefs, and those that were closed later than what is asked about was said from."""
        mine = Belief.objects.for_workspace(workspace_id).defer("search")
        beliefs = mine.filter(status__in=LIVE) | mine.closed().filter(valid_until__gt=said_from)
        self.beliefs = list(beliefs if user is None else beliefs.filter(user__in=("", user)))
        self.readings = [_read_belief(belief) for belief in self.beliefs]
        self._index = WordIndex(self.readings)

    def related(self, claim: Claim, source: EpisodeSource) -> Iterator[tuple[Belief, ClaimRelation]]:
        """Yield the beliefs that a claim says something about, and what."""
        reading = read_claim(claim=claim, source=source)
        asked = (*reading.stems, *_keys_of(reading), *_ended_words(reading))
        for place in sorted(self._index.having(asked)):
            belief = self.beliefs[place]
            if not _is_in_sight(belief, source):
                continue
            found = relate_claim(
                claim=reading,
                belief=self.readings[place],
                is_explicit=claim.confidence >= EXPLICIT,
                is_sure=claim.reader != RULES_READER,
            )
            if found.verdict is not Verdict.IRRELEVANT:
                yield belief, found

    def alike(self, claim: Claim, source: EpisodeSource) -> set[str]:
        """Return the beliefs that may be about what a claim is, whatever their vectors say."""
        places = self._index.alike(claim, read_claim(claim=claim, source=source))
        return {self.beliefs[place].pk for place in places if _is_in_sight(self.beliefs[place], source)}


def is_of_old(found: Iterable[tuple[Belief, ClaimRelation]]) -> bool:
    """Tell whether what is said is about a belief that was closed since: then it founds nothing that holds now (C2)."""
    return any(is_closed(belief) for belief, _ in found)


def find_alike_claims(told: Sequence[tuple[Claim, EpisodeSource]]) -> dict[int, set[int]]:
    """Return by claim the others that may be about what it is."""
    readings = [read_claim(claim=claim, source=source) for claim, source in told]
    index = WordIndex(readings)
    return {
        claim.pk: {told[place][0].pk for place in index.alike(claim, reading)} - {claim.pk}
        for (claim, _), reading in zip(told, readings, strict=True)
    }


def _words_of(reading: Reading) -> Iterable[str]:
    yield from reading.stems
    yield from _keys_of(reading)
    yield from (f"name:{name}" for name in reading.names)
    yield from _plain_words(reading.sentence)


def _keys_of(reading: Reading) -> Iterable[str]:
    """Yield what a sentence says something of: its slots, and what is somebody's, be its words ever so common."""
    yield from (f"slot:{name}" for name in reading.slots)
    if reading.possession:
        yield f"thing:{reading.possession.thing}"


def _plain_words(sentence: str) -> Iterable[str]:
    return (f"word:{word}" for word in sentence.lower().replace("'s", "").replace(".", " ").replace(",", " ").split())


def _ended_words(reading: Reading) -> Iterable[str]:
    return (f"word:{word}" for thing in reading.ended for word in thing.lower().split())


def _is_in_sight(belief: Belief, source: EpisodeSource) -> bool:
    if was_closed_at(status=belief.status, valid_until=belief.valid_until, at=source.occurred_at):
        return False
    same_project = belief.project_id in (None, source.project_id)
    return same_project and belief.user in ("", source.user) and belief.language in ("", source.language)


def read_claim(*, claim: Claim, source: EpisodeSource) -> Reading:
    """Return a claim as rules compare it."""
    person = person_of(user=source.user, language=claim.language)
    reading = read_sentence(claim.sentence, person=person, subject=claim.subject, language=claim.language)
    return reading if claim.reader == RULES_READER else _as_model_read(reading, claim)


def _as_model_read(reading: Reading, claim: Claim) -> Reading:
    """Take a model's word for what changes and what has ended, and for a slot that rules do not see."""
    slots = {claim.slot: found} if (found := _named_value(claim)) else {}
    return replace(
        reading,
        slots=without_ended(slots | reading.slots, claim.ended),
        is_change=claim.mode == Mode.CHANGE,
        ended=tuple(claim.ended),
    )


def _named_value(claim: Claim) -> frozenset[str]:
    """Return the value that a model names for a slot; of a slot that lists its values only such a one is sure."""
    slot = slots_by_name().get(claim.slot)
    if slot is None or not claim.value:
        return frozenset()
    listed = slot.members.get(claim.value.lower())
    return frozenset({listed or claim.value.lower()}) if listed or not slot.members else frozenset()


def _read_belief(belief: Belief) -> Reading:
    person = person_of(user=belief.user, language=belief.language)
    return read_sentence(belief.statement, person=person, subject=belief.subject, language=belief.language)
