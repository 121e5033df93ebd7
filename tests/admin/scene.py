"""A workspace with one row of every kind, each text of which carries the workspace's name."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Model

from memory.models import (
    ApiKey,
    Belief,
    BeliefAccess,
    BeliefEmbedding,
    Box,
    BoxMember,
    ChildVerdict,
    Claim,
    ClusterJob,
    ClusterMember,
    ContradictionCandidate,
    Conversation,
    Cycle,
    CycleStep,
    Edge,
    Entity,
    Episode,
    EpisodeAccess,
    EpisodeEmbedding,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    Membership,
    MemoryFile,
    Mention,
    ModelCall,
    ModelCallEpisode,
    Project,
    PublicationStep,
    PublishedBelief,
    RememberedFact,
    RememberJob,
    Role,
    StructuralChild,
    StructuralJob,
    Transition,
    Workspace,
)
from tests import factories
from tests.factories import NOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The rows of one workspace."""

    workspace: Workspace
    membership: Membership
    project: Project
    key: ApiKey
    episode: Episode
    claim: Claim
    belief: Belief
    evidence: Evidence
    lineage: Lineage
    cycle: Cycle
    step: CycleStep
    job: ClusterJob
    verdict: JobVerdict
    decision: GateDecision
    call: ModelCall
    transition: Transition
    change: StructuralJob
    proposed: StructuralChild
    child_verdict: ChildVerdict
    conversation: Conversation
    entity: Entity
    edge: Edge
    rival: ContradictionCandidate
    box: Box
    remembrance: RememberJob
    file: MemoryFile

    def rows(self) -> list[Model]:
        """List one row of every kind that has pages."""
        return [getattr(self, name) for name in self.__slots__]


def person(name: str, *, workspace: Workspace | None = None, role: Role = Role.READER) -> User:
    """Store a member of the staff, and their membership."""
    user = User.objects.create_user(name, is_staff=True)  # no password: hashing one takes most of a test
    if workspace:
        Membership.objects.create(workspace=workspace, user=user, role=role)
    return user


def set_scene(name: str) -> Scene:
    """Store a workspace with one row of every kind."""
    workspace = factories.workspace(name=f"workspace of {name}")
    owner = person(f"owner-of-{name}", workspace=workspace, role=Role.OWNER)
    belief = factories.belief(
        workspace=workspace, statement=f"The statement of {name} holds.", alpha=4.0, beta=2.0, evidence_count=4
    )
    episode = factories.episode(workspace=workspace, text=f"An episode of {name}.", session=f"session-of-{name}")
    claim = _claim(name, episode=episode)
    cycle = Cycle.objects.create(
        workspace=workspace, trigger="person", now=NOW, state="finished", finished_at=NOW, counts={"created": 1}
    )
    job = ClusterJob.objects.create(workspace=workspace, cycle=cycle, number=1, kind="cluster", members_hash="a" * 64)
    call = _answer(name, job=job)
    proposed = _propose(name, belief=belief, cycle=cycle)
    _store_facts(workspace=workspace, belief=belief, episode=episode, job=job, call=call)
    return Scene(
        workspace=workspace,
        membership=Membership.objects.get(workspace=workspace, user=owner),
        project=factories.project(workspace=workspace, slug=f"project-of-{name}"),
        key=factories.key(workspace=workspace)[0],
        episode=episode,
        claim=claim,
        belief=belief,
        evidence=add_evidence(belief, episode, reason=f"A reason of {name}.", cycle=cycle, call=call),
        lineage=_revise(name, belief=belief, cycle=cycle),
        cycle=cycle,
        step=CycleStep.objects.create(workspace=workspace, cycle=cycle, name="lease", counts={"episodes": 1}),
        job=job,
        verdict=_judge(name, belief=belief, episode=episode, job=job, call=call),
        decision=GateDecision.objects.create(
            workspace=workspace, cycle=cycle, belief=belief, gate="archive", passed=False, reason="no_ground",
            facts={"confidence": 0.6667},
        ),
        call=call,
        transition=_restore(name, belief=belief),
        change=proposed.job,
        proposed=proposed,
        child_verdict=_judge_proposed(name, child=proposed, episode=episode, call=call),
        conversation=_say(name, workspace=workspace),
        entity=_mention(name, episode=episode),
        rival=_oppose(name, belief=belief, call=call),
        edge=_link(episode=episode, other=factories.episode(workspace=workspace, text=f"An effect of {name}.")),
        box=_put_into_box(name, episode=episode),
        remembrance=_remember(name, episode=episode, belief=belief),
        file=_publish(name, belief=belief, cycle=cycle),
    )  # fmt: skip


def _claim(name: str, *, episode: Episode) -> Claim:
    """Store what an episode asserts."""
    return Claim.objects.create(
        workspace=episode.workspace, episode=episode, number=1, sentence=f"A claim of {name}.", subject=name,
        mode="change", kind="identity", confidence=0.8, reader="rules-1", created_at=NOW,
    )  # fmt: skip


def _answer(name: str, *, job: ClusterJob) -> ModelCall:
    """Store a call of a job that was answered."""
    return ModelCall.objects.create(
        workspace=job.workspace, cycle=job.cycle, job=job, purpose="synthesize", model="m", input_hash="b" * 64,
        outcome="ok", reply=f"A reply of {name}.", finished_at=NOW,
    )  # fmt: skip


def _judge(name: str, *, belief: Belief, episode: Episode, job: ClusterJob, call: ModelCall) -> JobVerdict:
    """Store what a call of a job said of an episode and a belief."""
    return JobVerdict.objects.create(
        workspace=belief.workspace, job=job, belief=belief, episode=episode, statement_hash="c" * 64,
        verdict="IRRELEVANT", basis="model", reason=f"A verdict of {name}.", call=call,
    )  # fmt: skip


def _judge_proposed(name: str, *, child: StructuralChild, episode: Episode, call: ModelCall) -> ChildVerdict:
    """Store what a call said of an episode and a proposed belief."""
    return ChildVerdict.objects.create(
        workspace=episode.workspace, child=child, episode=episode, verdict="SUPPORTS", basis="model",
        reason=f"A new verdict of {name}.", call=call,
    )  # fmt: skip


def _revise(name: str, *, belief: Belief, cycle: Cycle) -> Lineage:
    """Store a belief that came of another one."""
    child = factories.belief(workspace=belief.workspace, statement=f"The later statement of {name} holds.")
    return Lineage.objects.create(
        workspace=belief.workspace, kind="revision", parent=belief, child=child, created_at=NOW, cycle=cycle
    )


def _restore(name: str, *, belief: Belief) -> Transition:
    return Transition.objects.create(
        workspace=belief.workspace, belief=belief, old="archived", new="active", reason=f"A whim of {name}.",
        actor="person someone", at=NOW,
    )  # fmt: skip


def _say(name: str, *, workspace: Workspace) -> Conversation:
    said = factories.turn(workspace=workspace, session=f"talk of {name}", content=f"A turn of {name}.")
    conversation: Conversation = said.conversation
    return conversation


def _remember(name: str, *, episode: Episode, belief: Belief) -> RememberJob:
    """Store a text that was remembered at once, with its fact."""
    told = RememberJob.objects.create(
        workspace=episode.workspace, episode=episode, actor=f"agent of {name}", state="done", created_at=NOW,
        done_at=NOW,
    )  # fmt: skip
    RememberedFact.objects.create(
        workspace=episode.workspace, remembrance=told, number=0, text=f"A fact of {name}.", outcome="created",
        belief=belief,
    )  # fmt: skip
    return told


def _publish(name: str, *, belief: Belief, cycle: Cycle) -> MemoryFile:
    """Store a file in which a belief stands."""
    file = MemoryFile.objects.create(
        workspace=belief.workspace, path=f"/notes of {name}/MEMORY.md", user=f"user of {name}", created_at=NOW,
        published_at=NOW,
    )  # fmt: skip
    PublishedBelief.objects.create(
        workspace=belief.workspace, file=file, belief=belief, confidence=0.91, promoted_at=NOW
    )
    PublicationStep.objects.create(
        workspace=belief.workspace, belief=belief, path=file.path, step="promote", confidence=0.9, cycle=cycle, at=NOW
    )
    Belief.objects.filter(pk=belief.pk).update(promoted_at=NOW, published_confidence=0.91)
    return file


def _oppose(name: str, *, belief: Belief, call: ModelCall) -> ContradictionCandidate:
    """Store a belief that may contradict another one, and that nobody could tell whether it does."""
    other = factories.belief(workspace=belief.workspace, statement=f"The rival of {name} holds.")
    first, second = sorted((belief, other), key=lambda each: each.pk)
    return ContradictionCandidate.objects.create(
        workspace=belief.workspace, first=first, second=second, similarity=0.7, state="needs_a_person",
        reason=f"A doubt of {name}.", checked_at=NOW, call=call, created_at=NOW,
    )  # fmt: skip


def _mention(name: str, *, episode: Episode) -> Entity:
    """Store an entity that an episode names."""
    entity = Entity.objects.create(workspace=episode.workspace, name=f"friend of {name}", created_at=NOW)
    Mention.objects.create(workspace=episode.workspace, entity=entity, episode=episode, name=entity.name)
    return entity


def _link(*, episode: Episode, other: Episode) -> Edge:
    return Edge.objects.create(
        workspace=episode.workspace, source=episode, target=other, kind="causal", weight=0.9, confidence=0.8,
        created_at=NOW, last_seen_at=NOW, decays_at=NOW,
    )  # fmt: skip


def _put_into_box(name: str, *, episode: Episode) -> Box:
    box = Box.objects.create(
        workspace=episode.workspace, topics=[f"topic of {name}"], opened_at=NOW, last_at=NOW, session=f"talk of {name}"
    )
    BoxMember.objects.create(workspace=episode.workspace, box=box, episode=episode)
    return box


def _propose(name: str, *, belief: Belief, cycle: Cycle) -> StructuralChild:
    """Store a structural job that was refused, with what was proposed."""
    change = StructuralJob.objects.create(
        workspace=belief.workspace, kind="revise", belief=belief, belief_version="d" * 64, decided_in=cycle,
        cycle=cycle, state="refused", refusal="too_few_supports", facts={"confidence": 0.3},
        proposal={"statement": f"A proposal of {name}."},
    )  # fmt: skip
    return StructuralChild.objects.create(
        workspace=belief.workspace, job=change, number=0, statement=f"A proposal of {name}.", statement_hash="e" * 64
    )


def add_evidence(belief: Belief, episode: Episode, **given: object) -> Evidence:
    """Store a verdict of an episode on a belief."""
    fields = {"verdict": "SUPPORTS", "basis": "model", "created_at": NOW}
    return Evidence.objects.create(workspace=belief.workspace, belief=belief, episode=episode, **fields | given)


def add_episodes(belief: Belief, number: int) -> None:
    """Store that many more episodes that support a belief, all of one session."""
    for each in range(number):
        text = f"Supporting episode {each} of {belief.workspace.name}"
        occurred_at = NOW + timedelta(minutes=each)
        episode = factories.episode(
            workspace=belief.workspace, text=text, session="s", origin="session:s", occurred_at=occurred_at
        )
        add_evidence(belief, episode)


def _store_facts(*, workspace: Workspace, belief: Belief, episode: Episode, job: ClusterJob, call: ModelCall) -> None:
    vector = [0.123] * 768
    EpisodeEmbedding.objects.create(workspace=workspace, episode=episode, model="a-model", vector=vector)
    BeliefEmbedding.objects.create(workspace=workspace, belief=belief, model="a-model", vector=vector)
    EpisodeAccess.objects.create(workspace=workspace, episode=episode, accessed_at=NOW, access_count=3)
    BeliefAccess.objects.create(workspace=workspace, belief=belief, accessed_at=NOW, access_count=3)
    ClusterMember.objects.create(workspace=workspace, job=job, episode=episode, position=0)
    ModelCallEpisode.objects.create(workspace=workspace, call=call, episode=episode)
