"""Find every row that refers to an episode or a belief: beliefs that may quote it, calls that saw it, jobs about it.

`find_references` returns their ids. A belief may quote what it was made of, and what came of such a belief may, too.
A belief that was judged by an episode alone does not: its words were there before. Nor does a claim need to have drawn
on an episode to quote it: a reading is shown what is believed, and may name in one message what another one told.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet

from memory.domain.lifecycle import CHALLENGES, Reason
from memory.forgetting import find_dependent_claims
from memory.models import (
    ChildVerdict,
    Claim,
    ClusterJob,
    ContradictionCandidate,
    Episode,
    Evidence,
    JobVerdict,
    Lineage,
    ModelCall,
    RememberedFact,
    RevokedEvidence,
    RevokedLineage,
    StructuralChild,
    StructuralJob,
    TurnEpisode,
)
from memory.models.conversations import REASON_CONTRADICTED, REASON_EQUIVALENT
from memory.text.words import FUNCTION_WORDS, list_names, list_words

Ids = frozenset[str]

# What came in another belief's place for these has its words from episodes of its own, …
_NOT_QUOTING = (REASON_CONTRADICTED, REASON_EQUIVALENT, *CHALLENGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Ids of rows."""

    quoting: Ids  # beliefs that may quote an episode
    named: Ids  # beliefs that are to go themselves, with what came of them
    leaning: Ids  # other beliefs that lose evidence, or what came of them
    jobs: frozenset[int]
    changes: frozenset[int]  # structural jobs
    calls: frozenset[int]
    claims: frozenset[int]  # of other episodes, that drew on one that goes, or have words of it

    @property
    def beliefs(self) -> Ids:
        """Return the beliefs that go."""
        return self.quoting | self.named


def find_references(*, episodes: QuerySet[Episode], beliefs: Collection[str]) -> References:
    """Find what is to go, or to be made illegible, with some episodes and some beliefs."""
    ids = episodes.order_by().values("pk")
    claims = _drawn_on(episodes) | _borrowing(episodes)
    saw = _ids(_changes_that_saw(ids).values_list("pk", flat=True))
    children = StructuralChild.objects.filter(job__in=saw).values_list("belief_id", flat=True)
    quoting = _with_descendants({*_made_of(ids, claims), *_ids(children)})
    named = _with_descendants(beliefs)
    gone = quoting | named
    changes = saw | _ids(_changes_about(gone).values_list("pk", flat=True))
    jobs = _ids(_jobs_about(ids, gone, claims).values_list("pk", flat=True))
    return References(
        quoting=quoting,
        named=named,
        leaning=_leaning(ids, gone, changes, claims),
        jobs=jobs,
        changes=changes,
        calls=_calls(ids, gone, jobs, changes) | _calls_that_saw(claims),
        claims=claims,
    )


def _ids(found: Iterable[Any]) -> frozenset[Any]:
    return frozenset(key for key in found if key is not None)


def _drawn_on(episodes: QuerySet[Episode]) -> frozenset[int]:
    found: set[int] = set()
    for workspace in set(episodes.order_by().values_list("workspace_id", flat=True)):
        found |= find_dependent_claims(
            workspace_id=workspace, episodes=list(episodes.order_by().values_list("pk", flat=True))
        )
    return frozenset(found)


def _borrowing(episodes: QuerySet[Episode]) -> frozenset[int]:
    """Find the claims of other episodes with names or numbers of one of these that their own messages do not have.

    Other words prove nothing: two people live somewhere. Looked at are later claims of who may have been shown what an
    episode founded: its user's in its project; everybody's where it names no user, all projects' where it names none.
    """
    found: set[int] = set()
    scopes = episodes.order_by().values_list("workspace", "user", "project").annotate(Min("created_at"))
    for workspace, user, project, first in scopes:
        gone = episodes.filter(workspace=workspace, user=user, project=project)
        told = _NamedWords.of(*gone.order_by().values_list("text", flat=True))
        others = Claim.objects.for_workspace(workspace).filter(created_at__gte=first)
        others = others.exclude(episode__in=episodes.order_by().values("pk")).select_related("episode")
        others = others.filter(episode__user=user) if user else others
        others = others.filter(episode__project=project) if project else others
        for claim in others.defer("episode__search").iterator():
            said = claim.episode
            names = _NamedWords.of(claim.sentence, *claim.entities, names=claim.entities)
            borrowed = names.shared_with(told) - _words(said.text, said.speaker, said.user, str(said.occurred_at.year))
            if borrowed and claim.drew_on:
                drawn = Episode.objects.filter(pk__in=claim.drew_on).exclude(pk__in=episodes.order_by().values("pk"))
                borrowed -= _words(*drawn.values_list("text", flat=True))
            if borrowed:
                found.add(claim.pk)
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedWords:
    """The words of texts, and those among them that are of a name or hold a number."""

    words: Ids
    names: Ids

    @classmethod
    def of(cls, *texts: str, names: Sequence[str] = ()) -> "_NamedWords":
        words = _words(*texts)
        numbers = frozenset(word for word in words if any(map(str.isdigit, word)))
        return cls(words=words, names=numbers | _words(*names, *(name for text in texts for name in list_names(text))))

    def shared_with(self, other: "_NamedWords") -> Ids:
        """Return the words of both that are of a name in one: the first word of a sentence may not look like one."""
        return (self.names & other.words) | (self.words & other.names)


def _words(*texts: str) -> Ids:
    words = (word.casefold().removesuffix("'s") for text in texts for word in list_words(text))
    return frozenset(words) - FUNCTION_WORDS


def _calls_that_saw(claims: Collection[int]) -> frozenset[int]:
    """Find the calls that saw the episodes of claims, whose sentences they were shown."""
    own = Claim.objects.filter(pk__in=claims).values("episode")
    return _ids(ModelCall.objects.filter(episodes__in=own).values_list("pk", flat=True))


def _made_of(episodes: QuerySet[Any], claims: Collection[int]) -> Ids:
    """Find the beliefs whose founding cluster, or founding evidence, an episode is of; undone ones, too."""
    founded = ClusterJob.objects.filter(Q(members__episode__in=episodes) | Q(members__claim__in=claims))
    founding = Evidence.objects.filter(Q(episode__in=episodes) | Q(claim__in=claims), is_founding=True)
    undone = RevokedEvidence.objects.filter(episode__in=episodes, cycle=F("belief__created_in"))
    made = founded.values_list("created_belief_id", flat=True), founding.values_list("belief_id", flat=True)
    return _ids([*made[0], *made[1], *undone.values_list("belief_id", flat=True)])


def _changes_that_saw(episodes: QuerySet[Any]) -> QuerySet[StructuralJob]:
    judged = ChildVerdict.objects.filter(episode__in=episodes).values("child__job")
    called = ModelCall.objects.filter(episodes__in=episodes, structural_job__isnull=False).values("structural_job")
    return StructuralJob.objects.filter(Q(pk__in=judged) | Q(pk__in=called))


def _with_descendants(beliefs: Collection[str]) -> Ids:
    return _reach(beliefs, [("parent", "child")])


def _reach(beliefs: Collection[str], steps: Sequence[tuple[str, str]]) -> Ids:
    """Return the beliefs that lineage leads to from some, those among them."""
    found, frontier = set(beliefs), set(beliefs)
    while frontier:
        near: set[str] = set()
        for table in (Lineage, RevokedLineage):
            for here, there in steps:
                rows = table._default_manager.filter(**{f"{here}__in": frontier}).exclude(reason__in=_NOT_QUOTING)
                rows = rows.exclude(_WAS_THERE)
                near.update(rows.values_list(f"{there}_id", flat=True))
        frontier = near - found
        found |= frontier
    return frozenset(found)


# … as has what was there when another belief was closed, and was not worded to take its place.
_WAS_THERE = Q(reason=Reason.CHANGED) & ~Exists(StructuralChild.objects.filter(belief=OuterRef("child_id")))


def _changes_about(beliefs: Collection[str]) -> QuerySet[StructuralJob]:
    made = StructuralChild.objects.filter(Q(belief__in=beliefs) | Q(suppressed_by__in=beliefs)).values("job")
    return StructuralJob.objects.filter(Q(belief__in=beliefs) | Q(twin__in=beliefs) | Q(pk__in=made))


def _jobs_about(episodes: QuerySet[Any], beliefs: Collection[str], claims: Collection[int]) -> QuerySet[ClusterJob]:
    named = (Q(**{f"{name}__in": beliefs}) for name in ("belief", "created_belief", "joined_belief", "suppressed_by"))
    about = Q(members__episode__in=episodes) | Q(members__claim__in=claims)
    for each in named:
        about |= each
    if beliefs:
        about |= Q(pairs__has_any_keys=list(beliefs))
    return ClusterJob.objects.filter(about)


def _leaning(episodes: QuerySet[Any], gone: Ids, changes: Collection[int], claims: Collection[int]) -> Ids:
    """Find the beliefs that stay and lose something, with all that they came of and that came of them."""
    told = Evidence.objects.filter(Q(episode__in=episodes) | Q(claim__in=claims)).values_list("belief_id", flat=True)
    changed = StructuralJob.objects.filter(pk__in=changes).values_list("belief_id", "twin_id")
    near = {*told, *(key for pair in changed for key in pair if key), *gone}
    return _reach(near, [("parent", "child"), ("child", "parent")]) - gone


def _calls(
    episodes: QuerySet[Any], beliefs: Ids, jobs: Collection[int], changes: Collection[int]
) -> frozenset[int]:  # fmt: skip
    """Find the calls that saw an episode, a belief that goes, or what came of a job about either."""
    told = TurnEpisode.objects.filter(episode__in=episodes).values("turn__conversation")
    made = ModelCall.objects.filter(
        Q(episodes__in=episodes) | Q(job__in=jobs) | Q(structural_job__in=changes) | Q(conversation__in=told)
    )
    facts = RememberedFact.objects.filter(
        Q(belief__in=beliefs) | Q(rival__in=beliefs) | Q(asked_about__overlap=list(beliefs))
    )
    asked = [call for pair in facts.values_list("call_id", "contradiction_call_id") for call in pair]
    said = [
        _rivals_of(beliefs),
        Evidence.objects.filter(Q(episode__in=episodes) | Q(belief__in=beliefs)),
        JobVerdict.objects.filter(Q(episode__in=episodes) | Q(belief__in=beliefs) | Q(job__in=jobs)),
        ChildVerdict.objects.filter(Q(episode__in=episodes) | Q(child__job__in=changes)),
    ]
    cited = [call for rows in said for call in rows.values_list("call_id", flat=True).distinct()]
    return _ids([*made.values_list("pk", flat=True), *cited, *asked])


def _rivals_of(beliefs: Ids) -> QuerySet[ContradictionCandidate]:
    """Find the pairs whose calls may have been shown some beliefs: one call shows several that have one in common."""
    touching = ContradictionCandidate.objects.filter(Q(first__in=beliefs) | Q(second__in=beliefs)).values_list(
        "first_id", "second_id"
    )
    shown = {key for pair in touching for key in pair}
    return ContradictionCandidate.objects.filter(Q(first__in=shown) | Q(second__in=shown))


def founding_episodes(*, beliefs: Ids) -> Ids:
    """Return the episodes that some beliefs were made of or rest on."""
    members = ClusterJob.objects.filter(created_belief__in=beliefs).values_list("members__episode_id", flat=True)
    told = Evidence.objects.filter(belief__in=beliefs).values_list("episode_id", flat=True)
    return _ids([*members, *told])
