"""An announced change challenges a belief, until a later word from elsewhere bears out one of the two (C1)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from memory.domain.evidence import EvidenceRow
from memory.domain.gates import Reason
from memory.domain.gates.decisions import CHALLENGES
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.history.attribution import attribute_changes
from memory.ledger.author import Author
from memory.ledger.closing import close_belief, successions_of
from memory.ledger.confidence import read_rows_of, recompute_beliefs
from memory.ledger.locks import lock_beliefs
from memory.ledger.status import change_status
from memory.models import Belief, Evidence, EvidenceKind, Lineage, LineageKind, Transition

_WORDS_TO_UPHOLD = 2  # origins that bear out a challenged belief, with none for what is to take its place


def challenge_belief(*, belief: Belief, reason: Reason, at: datetime, author: Author) -> bool:
    """Challenge an active belief of which somebody says that it holds no longer; tell whether that is so from now on.

    Ahead of its day a change leaves the belief active, and says until when it holds. What is pinned stands.
    """
    if belief.status != BeliefStatus.ACTIVE or belief.is_pinned:
        return False
    if at > author.now:
        hold_until(belief=belief, at=at, author=author)
        return False
    hold_until(belief=belief, at=None, author=author)
    change_status(belief=belief, new=BeliefStatus.CHALLENGED, reason=reason, actor=author.actor, now=author.now)
    return True


def hold_until(*, belief: Belief, at: datetime | None, author: Author) -> None:
    """Say until when a belief holds, as was announced; None where that is open again."""
    if belief.valid_until != at:
        attribute_changes(actor=author.actor, reason=Reason.ANNOUNCED)
        belief.valid_until = at
        belief.save(update_fields=["valid_until"])
        recompute_beliefs(beliefs=[belief], now=author.now)


def is_challenged(belief: Belief) -> bool:
    """Tell whether a belief is challenged by what was said, and not by a person's hand."""
    return belief.status == BeliefStatus.CHALLENGED and belief.status_reason in CHALLENGES


def settle_challenges(*, beliefs: Sequence[Belief], author: Author) -> None:
    """Close or uphold what is challenged, where new words about it or about its successors decide that.

    The first word for the new from another origin than the announcement closes the old, unless one for the old came
    before it. Two origins for the old with none for the new uphold it, and archive what was to take its place.
    """
    ids = [belief.pk for belief in beliefs]
    replaced = Lineage.objects.filter(
        child__in=ids, kind=LineageKind.SUPERSESSION, parent__status=BeliefStatus.CHALLENGED
    )
    concerned = {*replaced.values_list("parent_id", flat=True), *(one.pk for one in beliefs if is_challenged(one))}
    here = {belief.pk: belief for belief in beliefs}
    for belief in lock_beliefs(concerned) if concerned else []:
        if is_challenged(belief) and not belief.is_pinned:
            _settle(here.get(belief.pk, belief), author)


def _settle(belief: Belief, author: Author) -> None:
    announcement = _announcement_of(belief)
    if announcement is None:
        return
    successors = lock_beliefs(successions_of(belief).values("child"))
    rows = read_rows_of(beliefs=[belief.pk, *(one.pk for one in successors)])
    old = _first_words(rows[belief.pk], Verdict.SUPPORTS, announcement)
    if successors:
        new = _united([_first_words(rows[one.pk], Verdict.SUPPORTS, announcement) for one in successors])
    else:
        new = _first_words(rows[belief.pk], Verdict.CONTRADICTS, announcement)
    if new and (not old or min(new.values()) < min(old.values())):
        close_belief(belief=belief, at=announcement.occurred_at, author=author)
    elif len(old) >= _WORDS_TO_UPHOLD and not new:
        _uphold(belief, successors, author)


def _announcement_of(belief: Belief) -> EvidenceRow | None:
    """Return the word by which a belief is challenged: the announcement, else the contradiction; no later one."""
    since = Transition.objects.filter(belief=belief, new=BeliefStatus.CHALLENGED).order_by("-pk").values_list("at")
    [challenged_at] = since.first() or (None,)
    rows = {row.episode_id: row for row in read_rows_of(beliefs=[belief.pk])[belief.pk]}
    against = Evidence.objects.filter(belief=belief, verdict=Verdict.CONTRADICTS, episode__in=list(rows))
    if challenged_at:
        against = against.filter(created_at__lte=challenged_at)
    announced = set(against.filter(kind=EvidenceKind.ANNOUNCED).values_list("episode_id", flat=True))
    named = announced or set(against.filter(base_weight__gt=0).values_list("episode_id", flat=True))
    return max((rows[key] for key in named), key=lambda row: (_said_at(row), row.episode_id), default=None)


def _first_words(rows: Collection[EvidenceRow], verdict: Verdict, announcement: EvidenceRow) -> dict[str, datetime]:
    """Return by origin when it first spoke so since an announcement; the announcement's own origin is left out."""
    first: dict[str, datetime] = {}
    for row in rows:
        said_at = _said_at(row)
        is_later = said_at > _said_at(announcement) and row.origin != announcement.origin
        if is_later and row.verdict is verdict and row.base_weight > 0:
            first[row.origin] = min(said_at, first.get(row.origin, said_at))
    return first


def _said_at(row: EvidenceRow) -> datetime:
    return row.said_at or row.occurred_at


def _united(words: Sequence[Mapping[str, datetime]]) -> dict[str, datetime]:
    return {origin: at for one in words for origin, at in one.items()}


def _uphold(belief: Belief, successors: Sequence[Belief], author: Author) -> None:
    change_status(belief=belief, new=BeliefStatus.ACTIVE, reason=Reason.UPHELD, actor=author.actor, now=author.now)
    for successor in successors:
        if not successor.is_pinned:
            change_status(
                belief=successor,
                new=BeliefStatus.ARCHIVED,
                reason=Reason.UNCONFIRMED,
                actor=author.actor,
                now=author.now,
            )
