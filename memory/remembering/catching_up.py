"""Beliefs that were made while no vector could be had are embedded, and compared then (R2)."""

from collections.abc import Mapping, Sequence

from memory.domain.gates.decisions import LIVE
from memory.domain.lifecycle import BeliefStatus
from memory.domain.matter import matter_of
from memory.domain.remembering import Course
from memory.ledger.beliefs import check_embedding_model, find_suppressed, source_of_belief
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.transactions import LineageInput, change_status, lock_existing_beliefs, record_lineage
from memory.models import Belief, FactOutcome, LineageKind, RememberedFact
from memory.models.conversations import REASON_EQUIVALENT
from memory.remembering.changing import bear_out
from memory.remembering.holds import Hold
from memory.remembering.linking import link_neighbours
from memory.remembering.meeting import Meeting, without_rivals
from memory.remembering.reading import Unanswered, embed_texts, own_vector
from memory.remembering.surroundings import choose_match, find_near
from memory.search.vectors import Vectors, store_belief_vectors

PUT_AWAY = "a person put away what says the same"


def unmatched_facts(*, hold: Hold) -> list[RememberedFact]:
    """List the facts of a remembrance whose beliefs wait for a vector."""
    return list(hold.remembrance.facts.filter(is_unmatched=True).select_related("belief"))


def embed_facts(*, hold: Hold, facts: Sequence[RememberedFact]) -> Mapping[str, Vectors]:
    """Embed what waits, and the episode where it waits, too; by their words. Raises Unanswered."""
    episode = hold.remembrance.episode
    if episode.status not in WITHDRAWN_STATUSES and (matter := matter_of(episode.text, episode.speaker)):
        own_vector(episode=episode, matter=matter).collect()
    found = embed_texts(texts=[fact.text for fact in facts], episode=episode)
    if len(found) < len({fact.text for fact in facts}):
        raise Unanswered("no vectors")
    return found


def catch_up(*, meeting: Meeting, fact: RememberedFact, vector: Vectors) -> None:
    """Compare a belief that is there already with those beside it; raise Unasked where something must be asked first.

    What says the same as another belief becomes part of that one. A text that was forgotten has no word to give.
    """
    assert fact.belief_id  # only a belief waits for a vector
    [belief] = lock_existing_beliefs([fact.belief_id])
    check_embedding_model(workspace_id=belief.workspace_id, model=meeting.model)
    store_belief_vectors(workspace_id=belief.workspace_id, model=meeting.model, vectors={belief.pk: vector})
    fact.is_unmatched = False
    if belief.status in LIVE and meeting.remembrance.episode.status not in WITHDRAWN_STATUSES:
        _compare(meeting, fact, belief, vector)
    fact.save()


def _compare(meeting: Meeting, fact: RememberedFact, belief: Belief, vector: Vectors) -> None:
    within = meeting.surroundings_of(belief)
    near = find_near(within=within, vector=vector, besides=belief.pk)
    near = [one for one in near if one[0].status != BeliefStatus.INVALIDATED]  # what was closed takes in no belief
    candidate = source_of_belief(belief=belief)
    match = choose_match(candidate=candidate, near=near)
    if match.course is Course.REINFORCE:
        _join(meeting, fact, belief, match.target)
    elif find_suppressed(workspace_id=belief.workspace_id, candidate=candidate, vector=vector):
        fact.outcome = FactOutcome.SUPPRESSED
        _end(meeting, belief, BeliefStatus.INVALIDATED, PUT_AWAY)
    else:
        asked = meeting.rule(belief, match) if match.candidates else None
        meeting.apply(fact, belief, asked)
        link_neighbours(belief=belief, near=without_rivals(near, asked), now=meeting.now)


def _join(meeting: Meeting, fact: RememberedFact, belief: Belief, target: str) -> None:
    """Give a belief's word to the one that was there first, and let it go on in that one."""
    bear_out(belief_id=target, episode=meeting.remembrance.episode, author=meeting.author)
    [twin] = lock_existing_beliefs([target])
    descent = LineageInput(parents=[belief], kind=LineageKind.MERGE, reason=REASON_EQUIVALENT)
    record_lineage(child=twin, descent=descent, author=meeting.author)
    _end(meeting, belief, BeliefStatus.MERGED, REASON_EQUIVALENT)
    fact.outcome, fact.belief = FactOutcome.REINFORCED, twin


def _end(meeting: Meeting, belief: Belief, status: BeliefStatus, reason: str) -> None:
    change_status(belief=belief, new=status, reason=reason, actor=meeting.author.actor, now=meeting.now)
