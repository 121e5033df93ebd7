"""Gates that need no model are decided as soon as evidence comes in: return from the archive, close, challenge (C1–C3).

`run_immediate_gates` follows each `record_evidence`; `read_facts_of` reads what any gate may know of a belief.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta

from django.conf import settings
from django.db.models import F, Max, Q, QuerySet

from memory.domain.evidence import (
    EvidenceRow,
    Verdict,
    error_threshold,
    find_change_point,
    is_destabilised,
    weigh_evidence,
)
from memory.domain.gates import BeliefFacts, CloseGate, GateDecision, returns_from_archive
from memory.domain.lifecycle import CHALLENGES, LIVE, BeliefStatus, Reason
from memory.history import attribute_changes
from memory.ledger.confidence import (
    WITHDRAWN_STATUSES,
    chosen_confidence,
    confidence_policy,
    is_taken_back,
    read_evidence_rows,
    read_evidence_rows_of,
    recompute_beliefs,
)
from memory.ledger.transactions import Author, LineageInput, change_status, lock_beliefs, record_lineage
from memory.models import (
    Belief,
    Cycle,
    Evidence,
    EvidenceKind,
    Lineage,
    LineageKind,
    StructuralJob,
    StructuralKind,
    Transition,
)
from memory.models import GateDecision as DecisionRow

_WORDS_TO_UPHOLD = 2  # origins that bear out a challenged belief, with none for what is to take its place


def run_immediate_gates(*, beliefs: Sequence[Belief], gained: Mapping[str, Sequence[Verdict]], author: Author) -> None:
    """Do at once what new evidence asks for without a model.

    What it supports may come back from the archive (B14), or hold beyond its announced end. What it ends is closed,
    what it announces or denies is challenged (F3). What it contradicts may be closed (C1), but in a cycle, whose gates
    look at all that it brought.
    """
    returning = [b for b in beliefs if b.status == BeliefStatus.ARCHIVED and Verdict.SUPPORTS in gained.get(b.pk, ())]
    disputed = [b for b in beliefs if b.status in LIVE and Verdict.CONTRADICTS in gained.get(b.pk, ())]
    end_by_words(beliefs=disputed, author=author)
    _take_ends_back([b for b in beliefs if Verdict.SUPPORTS in gained.get(b.pk, ())], author)
    closing = [] if author.cycle else [belief for belief in disputed if belief.status in LIVE]
    asked = [*returning, *closing]
    facts = read_facts_of(beliefs=asked, now=author.now, cycle=author.cycle) if asked else {}
    for belief in returning:
        decision = returns_from_archive(
            facts=facts[belief.pk], archived_for=_archive_reason(belief), policy=settings.POLICY.gate
        )
        record_decisions(cycle=author.cycle, decided=[BeliefDecision(belief=belief, decision=decision)])
        if decision.passed:
            change_status(
                belief=belief, new=BeliefStatus.ACTIVE, reason=decision.reason, actor=author.actor, now=author.now
            )
    for belief in closing:
        decide_closing(belief=belief, facts=facts[belief.pk], author=author)
    resolve_challenges(beliefs=[belief for belief in beliefs if gained.get(belief.pk)], author=author)


_DOUBT = 0.5  # confidence at which what one person said stands no longer by itself


def end_by_words(*, beliefs: Sequence[Belief], author: Author) -> None:
    """Close beliefs that the person concerned says have ended, on their day; challenge what is announced or denied.

    Denied is what somebody told and as much speaks against as for, by messages of the belief's own project and user. A
    day ahead leaves a belief active until then. What is pinned stands. The caller holds the workspace's lock and the
    beliefs'.
    """
    words = _read_words_against(beliefs, author.now)
    for belief in beliefs:
        against = words[belief.pk]
        if belief.is_pinned or belief.status not in LIVE or not against:
            continue
        if ends := against.get(EvidenceKind.ENDED):
            _end_on(belief, max(ends), author)
        elif announced := against.get(EvidenceKind.ANNOUNCED):
            challenge_belief(belief=belief, reason=Reason.ANNOUNCED, at=max(announced), author=author)
        elif belief.is_told and chosen_confidence(belief) <= _DOUBT:
            challenge_belief(belief=belief, reason=Reason.DISPUTED, at=author.now, author=author)


def _read_words_against(beliefs: Collection[Belief], now: datetime) -> dict[str, dict[str, list[datetime]]]:
    """Return by belief and kind from when on its own project and user say that it does not hold.

    An end that they took back before its day is left out (F3).
    """
    own = Q(episode__user=F("belief__user")) & (
        Q(episode__project=F("belief__project")) | Q(episode__project=None, belief__project=None)
    )
    columns = ("belief", "verdict", "kind", "valid_at", "episode__occurred_at")
    rows = list(_words_in_force().filter(own, belief__in=[one.pk for one in beliefs]).values_list(*columns))
    kept: dict[str, list[datetime]] = defaultdict(list)
    for key, verdict, _, _, said_at in rows:
        if verdict == Verdict.SUPPORTS:
            kept[key].append(said_at)
    words: dict[str, dict[str, list[datetime]]] = defaultdict(lambda: defaultdict(list))
    for key, verdict, kind, valid_at, said_at in rows:
        if verdict == Verdict.CONTRADICTS and not is_taken_back(said_at=said_at, day=valid_at, kept=kept[key]):
            words[key][kind].append(valid_at or min(said_at, now))  # a clock that is ahead announces nothing (C1)
    return words


def _words_in_force() -> QuerySet[Evidence]:
    """Select the evidence that counts and that no person overruled since, by restoring its belief (B14)."""
    restored_at = F("belief__restored_by_person_at")
    rows: QuerySet[Evidence] = Evidence.objects.filter(
        Q(belief__restored_by_person_at=None) | Q(created_at__gt=restored_at), base_weight__gt=0
    )
    return rows.exclude(episode__status__in=WITHDRAWN_STATUSES)


def read_announced_ends(*, beliefs: Collection[Belief], now: datetime) -> dict[str, datetime]:
    """Return by belief the last day that is announced as its end, else the one that it was told with (C1)."""
    words = _read_words_against(beliefs, now)
    announced = {key: [*by[EvidenceKind.ENDED], *by[EvidenceKind.ANNOUNCED]] for key, by in words.items()}
    days = {key: max(ends) for key, ends in announced.items() if ends}
    founding = Evidence.objects.filter(belief__in=[one.pk for one in beliefs], is_founding=True)
    told = founding.exclude(episode__status__in=WITHDRAWN_STATUSES).filter(claim__holds_until__isnull=False)
    for key, last_day in told.values_list("belief_id", "claim__holds_until"):
        days.setdefault(key, datetime.combine(last_day + timedelta(days=1), time(), tzinfo=UTC))
    return days


def _take_ends_back(beliefs: Sequence[Belief], author: Author) -> None:
    """Let beliefs hold on whose announced end was taken back before its day by the words that came in (F3)."""
    ahead = [one for one in beliefs if one.status in LIVE and one.valid_until and one.valid_until > author.now]
    announced = Evidence.objects.filter(verdict=Verdict.CONTRADICTS, valid_at=F("belief__valid_until"))
    announced = announced.filter(belief__in=[one.pk for one in ahead])
    said = set(announced.values_list("belief_id", flat=True)) if ahead else set()
    days = read_announced_ends(beliefs=ahead, now=author.now) if said else {}
    for belief in (one for one in ahead if one.pk in said):
        set_valid_until(belief=belief, at=days.get(belief.pk), author=author)


def _end_on(belief: Belief, day: datetime, author: Author) -> None:
    """Close a belief as of a day; as of the word that ends it, where that names a day before all that bears it out."""
    rows = [row for row in read_evidence_rows(belief_id=belief.pk) if row.base_weight > 0]
    is_known_before = any(row.occurred_at < day for row in rows if row.verdict is Verdict.SUPPORTS)
    against = [_said_at(row) for row in rows if row.verdict is Verdict.CONTRADICTS]
    at = day if is_known_before else max([day, *against])
    if at > author.now:
        set_valid_until(belief=belief, at=at, author=author)
    else:
        close_belief(belief=belief, at=at, author=author)


def decide_closing(*, belief: Belief, facts: BeliefFacts, author: Author) -> GateDecision:
    """Ask whether what a belief says has changed, close it if so, and keep a decision that closes it (C1)."""
    decision = CloseGate().decide(facts=facts, policy=settings.POLICY.gate)
    if decision.passed and facts.change:
        record_decisions(cycle=author.cycle, decided=[BeliefDecision(belief=belief, decision=decision)])
        close_belief(belief=belief, at=facts.change.at, author=author)
    return decision


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefDecision:
    """A decision on a belief, and the twin that the merge gate saw."""

    belief: Belief
    decision: GateDecision
    twin: Belief | None = None


# Why a status changes where evidence that came in asks for it: no cycle's doing and no curator's.
IMMEDIATE_REASONS = CHALLENGES | {
    Reason.FRESH_SUPPORT, Reason.CONFIDENT_AGAIN, Reason.CHANGED, Reason.UPHELD, Reason.UNCONFIRMED,
    # for which something is archived again whose fresh support was taken back at once
    Reason.UNSUPPORTED, Reason.STALE_AND_WEAK, Reason.DOUBTFUL, Reason.LOW_CONFIDENCE,
}  # fmt: skip


def record_decisions(*, cycle: Cycle | None, decided: Sequence[BeliefDecision]) -> None:
    """Keep decisions with their facts; a belief touched twice in a cycle keeps the later one."""
    last = {(entry.belief.pk, entry.decision.gate): entry for entry in decided}
    DecisionRow.objects.bulk_create(
        [_decision_row(entry, cycle) for entry in last.values()],
        update_conflicts=True,
        unique_fields=["cycle", "belief", "gate"],
        update_fields=["passed", "reason", "facts", "twin", "created_at"],
    )


def _decision_row(entry: BeliefDecision, cycle: Cycle | None) -> DecisionRow:
    return DecisionRow(
        workspace_id=entry.belief.workspace_id,
        cycle=cycle,
        belief=entry.belief,
        twin=entry.twin,
        gate=entry.decision.gate,
        passed=entry.decision.passed,
        reason=entry.decision.reason,
        facts=dict(entry.decision.facts),
    )


def _archive_reason(belief: Belief) -> Reason:
    """Return the gate's reason; whatever else stands there is a person's, whose word no cycle overrules."""
    if belief.archived_by_person_at or belief.status_reason not in set(Reason):
        return Reason.BY_PERSON
    return Reason(belief.status_reason)


def challenge_belief(*, belief: Belief, reason: Reason, at: datetime, author: Author) -> bool:
    """Challenge an active belief of which somebody says that it holds no longer; tell whether that is so from now on.

    Ahead of its day a change leaves the belief active, and says until when it holds. What is pinned stands.
    """
    if belief.status != BeliefStatus.ACTIVE or belief.is_pinned:
        return False
    if at > author.now:
        set_valid_until(belief=belief, at=at, author=author)
        return False
    set_valid_until(belief=belief, at=None, author=author)
    change_status(belief=belief, new=BeliefStatus.CHALLENGED, reason=reason, actor=author.actor, now=author.now)
    return True


def set_valid_until(*, belief: Belief, at: datetime | None, author: Author) -> None:
    """Say until when a belief holds, as was announced; None where that is open again."""
    if belief.valid_until != at:
        attribute_changes(actor=author.actor, reason=Reason.ANNOUNCED)
        belief.valid_until = at
        belief.save(update_fields=["valid_until"])
        recompute_beliefs(beliefs=[belief], now=author.now)


def is_challenged(belief: Belief) -> bool:
    """Tell whether a belief is challenged by what was said, and not by a person's hand."""
    return belief.status == BeliefStatus.CHALLENGED and belief.status_reason in CHALLENGES


def resolve_challenges(*, beliefs: Sequence[Belief], author: Author) -> None:
    """Close or uphold what is challenged, where new words about it or about its successors decide that.

    The first word for the new from another origin than the announcement closes the old, unless one for the old came
    before it. Two origins for the old with none for the new uphold it, and archive what was to take its place.
    """
    ids = [belief.pk for belief in beliefs]
    replaced = Lineage.objects.filter(
        child__in=ids, kind=LineageKind.SUPERSESSION, parent__status=BeliefStatus.CHALLENGED
    )
    _uphold_without_reason(beliefs, author)
    concerned = {*replaced.values_list("parent_id", flat=True), *(one.pk for one in beliefs if is_challenged(one))}
    here = {belief.pk: belief for belief in beliefs}
    for belief in lock_beliefs(concerned) if concerned else []:
        if is_challenged(belief) and not belief.is_pinned:
            _resolve(here.get(belief.pk, belief), author)


def _uphold_without_reason(beliefs: Sequence[Belief], author: Author) -> None:
    """Uphold what was challenged because its reason ended and is said to hold all the same (F1)."""
    for belief in beliefs:
        if belief.status == BeliefStatus.CHALLENGED and belief.status_reason == Reason.REASON_ENDED:
            ended_at = _reason_ended_at(belief)
            rows = [row for row in read_evidence_rows(belief_id=belief.pk) if not ended_at or _said_at(row) > ended_at]
            newest = max(rows, key=lambda row: (_said_at(row), row.episode_id), default=None)
            if newest and newest.verdict is Verdict.SUPPORTS:
                change_status(
                    belief=belief, new=BeliefStatus.ACTIVE, reason=Reason.UPHELD, actor=author.actor, now=author.now
                )


def _reason_ended_at(belief: Belief) -> datetime | None:
    """Return when it was last said that a belief's reason is over, else the day on which that held no more."""
    reasons = Belief.objects.closed().filter(
        pk__in=Evidence.objects.filter(belief=belief, is_founding=True).values("claim__because")
    )
    against = _words_in_force().filter(belief__in=reasons.values("pk"), verdict=Verdict.CONTRADICTS)
    said_at: datetime | None = against.aggregate(at=Max("episode__occurred_at"))["at"]
    closed_at: datetime | None = reasons.aggregate(at=Max("valid_until"))["at"]
    return said_at or closed_at


def _resolve(belief: Belief, author: Author) -> None:
    announcement = _announcement_of(belief)
    if announcement is None:
        return
    successors = lock_beliefs(live_successors(belief).values("child"))
    rows = read_evidence_rows_of(beliefs=[belief.pk, *(one.pk for one in successors)])
    old = _first_words(rows[belief.pk], Verdict.SUPPORTS, announcement)
    if successors:
        new = _merge_words([_first_words(rows[one.pk], Verdict.SUPPORTS, announcement) for one in successors])
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
    rows = {row.episode_id: row for row in read_evidence_rows_of(beliefs=[belief.pk])[belief.pk]}
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


def _merge_words(words: Sequence[Mapping[str, datetime]]) -> dict[str, datetime]:
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


def close_belief(*, belief: Belief, at: datetime, author: Author) -> Belief | None:
    """Close a belief that held until a time; return the belief that those who contradict it bear out, if one is there.

    What was said of it from then on counts no longer, neither for nor against. The caller holds the workspace's lock
    and the belief's.
    """
    against = _contradicting_since(belief, at)
    attribute_changes(actor=author.actor, reason=Reason.CHANGED)
    belief.valid_until = at
    belief.save(update_fields=["valid_until"])
    change_status(
        belief=belief, new=BeliefStatus.INVALIDATED, reason=Reason.CHANGED, actor=author.actor, now=author.now
    )
    recompute_beliefs(beliefs=[belief], now=author.now)
    _challenge_what_rests_on(belief, author)
    if successor := _declared_successor(belief):
        set_valid_from(belief=successor, at=at, author=author)
    elif successor := None if is_ended_by_words(belief) else _find_successor(belief, against):
        set_valid_from(belief=successor, at=at, author=author)
        descent = LineageInput(parents=[belief], kind=LineageKind.SUPERSESSION, reason=Reason.CHANGED)
        record_lineage(child=successor, descent=descent, author=author)
    return successor


def _challenge_what_rests_on(belief: Belief, author: Author) -> None:
    """Challenge what was told with a belief as its reason, until a later word upholds or ends it (F1)."""
    founded = Evidence.objects.filter(is_founding=True, claim__because=belief.pk, belief__status=BeliefStatus.ACTIVE)
    for dependent in lock_beliefs(founded.values("belief")) if founded.exists() else []:
        challenge_belief(belief=dependent, reason=Reason.REASON_ENDED, at=author.now, author=author)


def set_valid_from(*, belief: Belief, at: datetime, author: Author) -> None:
    """Say since when a belief holds, where nothing that was said of it is older."""
    if belief.valid_from is None and all(row.occurred_at >= at for row in read_evidence_rows(belief_id=belief.pk)):
        belief.valid_from = at
        belief.save(update_fields=["valid_from"])
        recompute_beliefs(beliefs=[belief], now=author.now)


def is_closed(belief: Belief) -> bool:
    """Tell whether a belief was closed because what it says has changed."""
    return belief.status == BeliefStatus.INVALIDATED and belief.status_reason == Reason.CHANGED


def has_successor(belief: Belief) -> bool:
    """Tell whether something that lives has come in a closed belief's place."""
    return live_successors(belief).exists()


def live_successors(belief: Belief) -> QuerySet[Lineage]:
    """Select what names the live beliefs of the same project and user that are to take a belief's place."""
    rows: QuerySet[Lineage] = Lineage.objects.filter(
        parent=belief,
        kind=LineageKind.SUPERSESSION,
        child__status__in=LIVE,
        child__project=belief.project_id,
        child__user=belief.user,
    )
    return rows


def _declared_successor(belief: Belief) -> Belief | None:
    """Return the newest live belief of which it is said that it supersedes this one."""
    return max(
        lock_beliefs(live_successors(belief).values("child")), key=lambda one: (one.created_at, one.pk), default=None
    )


def _contradicting_since(belief: Belief, at: datetime) -> set[str]:
    rows = read_evidence_rows(belief_id=belief.pk)
    return {
        row.episode_id
        for row in rows
        if row.base_weight > 0 and row.verdict is Verdict.CONTRADICTS and row.occurred_at >= at
    }


def is_ended_by_words(belief: Belief) -> bool:
    """Tell whether the person concerned said that a belief has ended: only their words name what replaces it (F3)."""
    return bool(_words_in_force().filter(belief=belief, kind=EvidenceKind.ENDED).exists())


def _find_successor(belief: Belief, against: set[str]) -> Belief | None:
    """Return the newest live belief that was made of one of these episodes and that half of them bear out."""
    told = Evidence.objects.filter(episode__in=against, verdict=Verdict.SUPPORTS, base_weight__gt=0)
    told = told.filter(belief__status__in=LIVE, belief__project=belief.project_id, belief__user=belief.user)
    made = set(told.filter(is_founding=True).values_list("belief_id", flat=True))
    counts = Counter(key for key in told.values_list("belief_id", flat=True) if key in made)
    borne_out = [key for key, count in counts.items() if 2 * count >= len(against)]
    if not borne_out:
        return None
    return max(lock_beliefs(borne_out), key=lambda one: (one.created_at, one.pk))


def read_facts_of(*, beliefs: Sequence[Belief], now: datetime, cycle: Cycle | None) -> dict[str, BeliefFacts]:
    """Return what gates may know of beliefs, their twins aside, by id; the caller holds their locks."""
    ids = [belief.pk for belief in beliefs]
    rows, busy, undone = read_evidence_rows_of(beliefs=ids), beliefs_with_open_jobs(ids), _last_undone_changes(ids)
    return {
        belief.pk: replace(
            _belief_facts(belief, rows[belief.pk], now, cycle),
            has_open_structural_job=belief.pk in busy,
            since_revision_undone=_time_since(undone.get((belief.pk, StructuralKind.REVISE)), now),
            since_close_undone=_time_since(undone.get((belief.pk, StructuralKind.CLOSE)), now),
            since_split_undone=_time_since(undone.get((belief.pk, StructuralKind.SPLIT)), now),
        )
        for belief in beliefs
    }


def beliefs_with_open_jobs(ids: Collection[str]) -> set[str]:
    """Find those that an open structural job is about."""
    jobs = StructuralJob.objects.open().filter(Q(belief__in=ids) | Q(twin__in=ids))
    return {key for pair in jobs.values_list("belief_id", "twin_id") for key in pair if key}


def _last_undone_changes(ids: Collection[str]) -> dict[tuple[str, str], datetime]:
    """Return by belief and kind when a person last had a change of it undone (B22)."""
    jobs = StructuralJob.objects.filter(belief__in=ids).undone().order_by("undone_at")
    return {(belief, kind): at for belief, kind, at in jobs.values_list("belief_id", "kind", "undone_at")}


def _belief_facts(belief: Belief, rows: Sequence[EvidenceRow], now: datetime, cycle: Cycle | None) -> BeliefFacts:
    confidence = confidence_policy(belief.workspace)
    weighed = weigh_evidence(rows=rows, policy=confidence)
    age = max(now - belief.created_at, timedelta())
    numbers, error = settings.POLICY.destabilization, belief.prediction_error
    evidence_count = weighed.evidence_count
    return BeliefFacts(
        status=BeliefStatus(belief.status),
        confidence=chosen_confidence(belief),
        evidence_count=evidence_count,
        since_reinforced=max(now - (belief.last_reinforced_at or belief.created_at), timedelta()),
        peak_confidence=belief.peak_confidence,
        prediction_error=error,
        error_threshold=error_threshold(evidence_count=evidence_count, age=age, policy=numbers),
        is_destabilised=is_destabilised(error=error, evidence_count=evidence_count, age=age, policy=numbers),
        lineage_depth=belief.lineage_depth,
        since_changed=_since_changed(belief, now),
        is_pinned=belief.is_pinned,
        is_told=belief.is_told,
        is_challenged=is_challenged(belief),
        is_additive=belief.workspace.is_additive,
        since_restored_by_person=_time_since(belief.restored_by_person_at, now),
        was_changed_this_cycle=belief.lineage_depth > 0 and cycle is not None and belief.created_in_id == cycle.pk,
        supporting=weighed.rows.get(Verdict.SUPPORTS, 0),
        contradicting=weighed.rows.get(Verdict.CONTRADICTS, 0),
        partial=weighed.rows.get(Verdict.PARTIAL, 0),
        supporting_origins=weighed.origins.get(Verdict.SUPPORTS, 0),
        contradicting_origins=weighed.origins.get(Verdict.CONTRADICTS, 0),
        origins_against=weighed.origins_against,
        change=find_change_point(rows=rows, policy=confidence) if weighed.origins_against > 1 else None,
    )


def _since_changed(belief: Belief, now: datetime) -> timedelta | None:
    """Return the time since the last change of structure or statement; being born of a cluster is none."""
    is_as_born = belief.lineage_depth == 0 and belief.statement_changed_at <= belief.created_at
    return None if is_as_born else now - belief.statement_changed_at


def _time_since(moment: datetime | None, now: datetime) -> timedelta | None:
    return now - moment if moment else None
