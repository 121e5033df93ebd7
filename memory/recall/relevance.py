"""Decide which memories have to do with a query, and which of those deserve a line (B16).

`RelevanceFloor` tells whether a memory is relevant; `choose_lines` keeps the relevant ones and each fact once.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import structlog

from memory.domain.policy import Policy
from memory.domain.policy_recall import RecollectionPolicy, RelevancePolicy
from memory.language.sentences import says_more
from memory.language.words import detect_language
from memory.recall.query import MemoryType, RecalledMemory
from memory.recall.questions.times import find_values, names_but_a_time
from memory.recall.questions.words import asks_of_own, count_telling, names_something, sets_task, telling_stems
from memory.recall.ranking import Ranked
from memory.search.prepared import SearchFailed, TimedSearch
from memory.search.related import AssertedClaim, FoundClaim, read_assertions
from memory.text.words import list_names

log = structlog.get_logger(__name__)
_FEWEST_TELLING = 2  # words that say something, for a query's likeness to be trusted as it is


class RelevanceFloor:
    """What a memory must reach to have to do with a query, on the reference scale of similarity.

    It may do so by likeness alone, or with the help of the query's telling words. A question about somebody's own
    matters is likelier to have an answer here than one that anybody might ask. A task is about what it is done to: that
    it resembles another is no sign of anything. What names nothing ("yes please") is about nothing that is remembered;
    what names but a time is about all of that time. Likeness alone says less in a language that the model does not
    know, and of a query of hardly any words.
    """

    def __init__(
        self, *, query: str, asks_of_time: bool, is_for_task: bool, is_multilingual: bool, policy: RelevancePolicy
    ) -> None:
        self._is_time_all = asks_of_time and names_but_a_time(query)
        is_task = sets_task(query) and not is_for_task
        is_own = asks_of_own(query)
        self._policy = policy
        self._names_something = names_something(query)
        self._least = policy.floor - (policy.own if is_own else 0.0) + (policy.task if is_task else 0.0)
        is_foreign = not is_multilingual and detect_language(query) not in ("", "en")
        self._off = policy.foreign if is_foreign else 0.0
        if not is_own and count_telling(query) < _FEWEST_TELLING:
            self._off += policy.bare

    def is_cleared_by(self, item: Ranked) -> bool:
        """Tell whether a ranked memory has to do with the query."""
        if self._is_time_all:
            return _part_or_zero(item, "asked_time") > 0
        if not self._names_something:
            return False
        similarity, telling = item.part("similarity"), _part_or_zero(item, "telling")
        reached = self._policy.unknown if math.isnan(similarity) else similarity
        reached += self._policy.words * telling if telling > 0 else -self._off
        return reached >= self._least


def _part_or_zero(item: Ranked, name: str) -> float:
    return item.part(name) if name in item.columns else 0.0


def choose_lines(
    *, memories: Sequence[RecalledMemory], query: str, timed: TimedSearch, policy: Policy
) -> list[RecalledMemory]:
    """Keep what has to do with the query, in its order, and each fact once; it may be nothing.

    Where what episodes assert cannot be read in time, only words tell which lines say the same.
    """
    relevant = [memory for memory in memories if memory.is_relevant]
    episodes = [memory.id for memory in relevant if memory.type == MemoryType.EPISODE]
    claims: dict[str, list[AssertedClaim]] = {}
    if episodes:
        try:
            claims = timed.run(partial(read_assertions, episodes=episodes), seconds=policy.recall.channel_seconds)
        except SearchFailed as error:
            log.warning("recall.claims_failed", error=str(error))
    return _keep_each_fact_once(relevant, _read_meanings(relevant, claims, query), query, policy.recollection)


def keep_best(*, memories: Sequence[RecalledMemory], policy: RecollectionPolicy) -> list[RecalledMemory]:
    """Keep what is about as good as the best of its kind that is relevant.

    A summary, which has words of many, is no measure.
    """
    best: dict[MemoryType, float] = {}
    for memory in memories:
        if memory.is_relevant and not memory.is_derived:
            best[memory.type] = max(memory.score, best.get(memory.type, 0.0))
    return [memory for memory in memories if memory.score >= policy.least_share * best.get(memory.type, 0.0)]


def _keep_each_fact_once(
    memories: Sequence[RecalledMemory], meant: Mapping[str, "_Meant"], query: str, policy: RecollectionPolicy
) -> list[RecalledMemory]:
    """Leave out what says only what another says, and name the words of each episode that the query is about.

    An episode says what a belief says that these words bear out, or that others of it do and that fits the query as
    well: then the belief is told, of several episodes the one that was said last. Of what shares its telling words, the
    best is told. Nothing that was given up is told without what took its place.
    """
    kept: list[RecalledMemory] = []
    for memory in sorted(memories, key=_is_superseded):
        said = [one for one in kept if meant[memory.id].beliefs & meant[one.id].beliefs]
        if all(_outranks(memory, one) for one in said):
            kept = [one for one in kept if not _gives_way(one, memory, meant)]
            kept.append(memory)
    told = [_with_passage(memory, meant[memory.id]) for memory in memories if memory in kept]
    return drop_without_successor(list(_without_repetitions(told, query, policy)))


def drop_without_successor(memories: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    """Leave out what was given up where what took its place is not told."""
    here = {memory.id for memory in memories}
    return [one for one in memories if one.superseded_by is None or one.superseded_by in here]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meant:
    """What a memory says of a query: its words, whether these still hold, and the beliefs that they bear out."""

    words: str = ""
    is_current: bool = False  # while other words of it were given up
    beliefs: frozenset[str] = frozenset()


def _read_meanings(
    memories: Sequence[RecalledMemory], claims: Mapping[str, Sequence[AssertedClaim]], query: str
) -> dict[str, _Meant]:
    """Return by id what each memory says; of beliefs, only those that may be told themselves count."""
    here = {memory.id: memory.text for memory in memories if memory.type == MemoryType.BELIEF}
    fit = QueryFit(query)
    return {
        memory.id: _meaning_of_claims(claims.get(memory.id, ()), memory.claim, here, fit)
        if memory.type == MemoryType.EPISODE
        else _Meant(beliefs=frozenset([memory.id]))
        for memory in memories
    }


class QueryFit:
    """How well sentences fit a query: how many of its telling words they share."""

    def __init__(self, query: str) -> None:
        self._language = detect_language(query)
        self._words = self.stems_of(query)

    def stems_of(self, sentence: str) -> frozenset[str]:
        """Return the stems of a sentence's telling words, in the language of the query."""
        return telling_stems(sentence, self._language)

    def count_shared(self, stems: Collection[str]) -> int:
        """Count the query's telling words among some stems."""
        return len(self._words.intersection(stems))


def _meaning_of_claims(
    claims: Sequence[AssertedClaim], meant: str | None, beliefs: Mapping[str, str], fit: QueryFit
) -> _Meant:
    """Choose the claim that fits best, of several the one that recall names as meant; it may be none."""
    stems = [fit.stems_of(claim.sentence) for claim in claims]
    shared = [fit.count_shared(one) for one in stems]
    best = max(shared, default=0)
    if best == 0:
        return _Meant()
    places = [place for place, count in enumerate(shared) if count == best]
    place = next((place for place in places if claims[place].sentence == meant), places[0])
    chosen = claims[place]
    ended = [other for other, claim in enumerate(claims) if claim.is_given_up]
    return _Meant(
        words=chosen.words or chosen.sentence,
        # Two claims are of one matter, or may be, where they share more words than whom they name.
        is_current=bool(ended) and not any(other == place or len(stems[place] & stems[other]) > 1 for other in ended),
        beliefs=frozenset(
            key
            for key in beliefs.keys() & {key for claim in claims for key in claim.beliefs}
            if key in chosen.beliefs or fit.count_shared(fit.stems_of(beliefs[key])) >= best
        ),
    )


def _is_superseded(memory: RecalledMemory) -> bool:
    return memory.superseded_by is not None


def _outranks(one: RecalledMemory, other: RecalledMemory) -> bool:
    if one.type != other.type:
        return one.type == MemoryType.BELIEF
    return one.dated > other.dated


def _gives_way(one: RecalledMemory, other: RecalledMemory, meant: Mapping[str, _Meant]) -> bool:
    return bool(meant[one.id].beliefs & meant[other.id].beliefs) and _outranks(other, one)


def _with_passage(memory: RecalledMemory, meant: _Meant) -> RecalledMemory:
    """Name the words that are meant; an episode is not marked for other words of it that were given up."""
    superseded_by = None if meant.is_current else memory.superseded_by
    return replace(memory, passage=meant.words, superseded_by=superseded_by)


class _LineContent(NamedTuple):
    """A line's text, whether it is a belief's, the stems of its telling words and of whom it names, and its values."""

    text: str
    is_belief: bool
    stems: frozenset[str]
    names: frozenset[str]
    values: Mapping[str, frozenset[str]]


def _without_repetitions(
    memories: Sequence[RecalledMemory], query: str, policy: RecollectionPolicy
) -> Iterator[RecalledMemory]:
    """Yield what says something that no better one has said; summaries are weighed where it is known what has room."""
    language = detect_language(" ".join([query, *(memory.text for memory in memories)]))
    asked, told = telling_stems(query, language), list[_LineContent]()
    for memory in memories:
        said = _LineContent(
            text=memory.text,
            is_belief=memory.type == MemoryType.BELIEF,
            stems=telling_stems(memory.text, language),
            names=telling_stems(" ".join(one for one in list_names(memory.text) if not one.isupper()), language),
            values=find_values(memory.text),
        )
        if memory.is_derived:
            yield memory
        elif not any(_repeats(said, other, asked, policy) for other in told):
            told.append(said)
            yield memory


def _repeats(said: _LineContent, before: _LineContent, asked: frozenset[str], policy: RecollectionPolicy) -> bool:
    """Tell whether a line says what another has said: beside the subject that is asked about, they share what is told.

    It has then nothing else to tell, or they share two words of it; what does not name that subject must
    share more. Whom both name is no such word. Two beliefs, and what names other numbers or days, are two facts.
    """
    if (said.is_belief and before.is_belief) or _differ(said.values, before.values):
        return False
    shared = (said.stems & before.stems) - asked - (said.names & before.names)
    if said.stems & before.stems & asked:
        enough: float = 2 if said.stems - shared - asked - said.names else 1
    else:
        enough = max(2, policy.shared * min(len(said.stems), len(before.stems)))
    return len(shared) >= enough or not says_more(summary=said.text, told=[before.text], share=1.0)


def _differ(one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]) -> bool:
    """Tell whether two lines name values of one kind, a day or a number, and none in common."""
    return any(not one[kind] & other[kind] for kind in one.keys() & other.keys())


def find_meant_claim(*, claims: Sequence[FoundClaim], fit: QueryFit, nearest: float) -> str:
    """Return which assertion of an episode a query means: what shares most of its telling words.

    Else the one that makes the episode as near to the query as it is (`nearest`, a cosine); it may be none.
    """
    meant = []
    for claim in claims:
        shared = fit.count_shared(fit.stems_of(claim.sentence))
        if claim.sentence and (shared or claim.similarity >= nearest):
            meant.append((shared, claim.similarity, claim.sentence))
    return max(meant, key=itemgetter(0, 1))[2] if meant else ""
