"""Link new memories: store whom they name, write their edges, put them into boxes by topic.

`link_due_memories` goes through all workspaces. Each batch is one transaction; repeating a batch adds nothing.
`drop_orphaned_names` cleans up after erased memories.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from memory.domain.graph import BoxState, Seal, add_to_box, choose_box, is_over, trace_boxes
from memory.domain.lifecycle import WORKSPACE_ERRORS
from memory.domain.policy import Policy
from memory.domain.policy_memories import BoxPolicy
from memory.graph.edges import (
    LinkableMemory,
    advance_linked_mark,
    find_workspaces_to_link,
    link_by_cause,
    link_by_names,
    link_by_time,
    lock_linking,
    read_unlinked,
)
from memory.language.subjects import topics_of
from memory.models import Box, BoxMember, Entity, Episode, Mention, Trace
from memory.models.fields import insert_new

log = structlog.get_logger(__name__)


def link_due_memories(*, policy: Policy) -> int:
    """Link the new memories of every workspace, for as long as one worker should; return how many."""
    ends_at = time.monotonic() + policy.graph.seconds
    return sum(_try_to_link(workspace_id, ends_at, policy) for workspace_id in find_workspaces_to_link())


def link_memories(*, workspace_id: int, policy: Policy | None = None, ends_at: float = float("inf")) -> int:
    """Link the new memories of a workspace until a moment of the monotonic clock; return how many.

    Where somebody else is linking there, leave that to them.
    """
    policy = policy or settings.POLICY
    linked, above = 0, 0
    while time.monotonic() < ends_at:
        batch = _link_batch(workspace_id, above, policy)
        if batch is None:
            return linked
        linked += len(batch)
        if not batch and not above:
            advance_linked_mark(workspace_id=workspace_id, policy=policy.graph)
            break
        above = batch[-1].number if batch else 0  # from the start again, for whoever took longer to store
    if linked:
        log.info("memories_linked", workspace=workspace_id, memories=linked)
    return linked


def _try_to_link(workspace_id: int, ends_at: float, policy: Policy) -> int:
    """Link, or log why not: those that come after it are linked all the same, and it is tried again."""
    try:
        return link_memories(workspace_id=workspace_id, policy=policy, ends_at=ends_at)
    except (DatabaseError, *WORKSPACE_ERRORS) as error:
        if not connection.is_usable():
            raise
        log.warning(
            "memories_not_linked",
            workspace=workspace_id,
            error=str(error),
            exc_info=not isinstance(error, DatabaseError),
        )
        return 0


@transaction.atomic
def _link_batch(workspace_id: int, above: int, policy: Policy) -> list[LinkableMemory] | None:
    """Link what comes next and return it; None if somebody else is at it."""
    if not lock_linking(workspace_id, waits=False):
        return None
    memories = read_unlinked(workspace_id=workspace_id, above=above, policy=policy.graph)
    if memories:
        names = {memory.id: memory.names for memory in memories}
        store_mentions(workspace_id=workspace_id, memories=memories, names=names)
        link_by_names(workspace_id=workspace_id, memories=memories, policy=policy.graph)
        link_by_time(workspace_id=workspace_id, memories=memories, policy=policy.graph)
        causes = {memory.id: memory.causes for memory in memories}
        link_by_cause(workspace_id=workspace_id, memories=memories, causes=causes, policy=policy.graph)
        put_into_boxes(workspace_id=workspace_id, memories=memories, names=names, policy=policy.box)
    return memories


def store_mentions(
    *, workspace_id: int, memories: Sequence[LinkableMemory], names: Mapping[str, Sequence[str]]
) -> None:
    """Store whom and what new memories name, by their ids; who was never named before becomes an entity."""
    first: dict[str, datetime] = {}
    for memory in memories:
        for name in names[memory.id]:
            first.setdefault(name, memory.created_at)
    known = _known_entities(workspace_id, first)
    _create_entities(workspace_id, {name: at for name, at in first.items() if name not in known})
    known |= _known_entities(workspace_id, first.keys() - known.keys())
    rows = [
        {"workspace_id": workspace_id, "entity_id": known[name], "episode_id": memory.id, "name": name}
        for memory in memories
        for name in names[memory.id]
    ]
    insert_new(model=Mention, rows=rows)


def drop_unmentioned_entities(*, workspace_id: int) -> None:
    """Delete entities that no memory names any more, and let no entity keep a name that none has for it any more."""
    entities = Entity.objects.for_workspace(workspace_id)
    mentions = Mention.objects.filter(entity=OuterRef("pk"))
    entities.filter(~Exists(mentions)).delete()
    for entity in entities.filter(~Exists(mentions.filter(name=OuterRef("name")))):
        entity.name = Mention.objects.filter(entity=entity).order_by("pk").values_list("name", flat=True)[0]
        entity.save(update_fields=["name"])


def _known_entities(workspace_id: int, names: Collection[str]) -> dict[str, int]:
    """Return the entities of names: one that goes by another name now is found by its mentions."""
    mentioned = Mention.objects.for_workspace(workspace_id).filter(name__in=names)
    begun = Entity.objects.for_workspace(workspace_id).filter(name__in=names)
    found = dict(begun.values_list("name", "pk"))
    return found | dict(mentioned.order_by().values_list("name", "entity_id").distinct())


def _create_entities(workspace_id: int, names: Mapping[str, datetime]) -> None:
    rows = [{"workspace_id": workspace_id, "name": name, "created_at": at} for name, at in names.items()]
    insert_new(model=Entity, rows=rows)


def put_into_boxes(
    *, workspace_id: int, memories: Sequence[LinkableMemory], names: Mapping[str, Sequence[str]], policy: BoxPolicy
) -> None:
    """Give every memory its box, in the order in which they occurred."""
    shelves: dict[BoxScope, _OpenBoxes] = {}
    for memory in sorted(memories, key=lambda one: (one.occurred_at, one.number)):
        scope = (memory.project_id, memory.user)
        if scope not in shelves:
            fillings = _read_open(workspace_id, scope)
            shelves[scope] = _OpenBoxes(workspace_id=workspace_id, scope=scope, fillings=fillings, policy=policy)
        shelves[scope].put(memory, topics_of(names=names[memory.id], text=memory.text, policy=policy))
    _store_boxes([filling for shelf in shelves.values() for filling in shelf.fillings if filling.is_changed], policy)


BoxScope = tuple[int | None, str]  # a project, and a user


@dataclass(slots=True, kw_only=True)
class _BoxInProgress:
    """A box under work: its row, how it stands, and the memories that are put in."""

    box: Box
    state: BoxState
    added: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return not self.box.seal

    @property
    def is_changed(self) -> bool:
        return bool(self.added or self.box.seal)  # sealed ones are not read


class _OpenBoxes:
    """The open boxes of one project and user."""

    def __init__(
        self, *, workspace_id: int, scope: BoxScope, fillings: Iterable[_BoxInProgress], policy: BoxPolicy
    ) -> None:
        self._workspace_id, self._scope, self._policy = workspace_id, scope, policy
        self.fillings = list(fillings)
        self._open = list(self.fillings)

    def put(self, memory: LinkableMemory, topics: Sequence[str]) -> None:
        """Put a memory where it belongs: what its session was about before is over, if that is somewhere else."""
        fillings = self._open_at(memory)
        current = self._current(fillings, memory)
        place = choose_box(
            topics=topics,
            at=memory.occurred_at,
            boxes=[filling.state for filling in fillings],
            current=current,
            policy=self._policy,
        )
        if place is None and current is not None:
            _seal(fillings[current].box, Seal.SHIFTED, at=memory.created_at)
        self._add(self._begin(memory) if place is None else fillings[place], memory, topics)

    def _open_at(self, memory: LinkableMemory) -> list[_BoxInProgress]:
        """Seal the boxes into which nothing was put for too long, and return those that are open."""
        for filling in self._open:
            if is_over(box=filling.state, at=memory.occurred_at, policy=self._policy):
                _seal(filling.box, Seal.IDLE, at=memory.created_at)
        self._open = [filling for filling in self._open if filling.is_open]
        return self._open

    def _current(self, fillings: Sequence[_BoxInProgress], memory: LinkableMemory) -> int | None:
        """Return the place of the box that the memory's session put something into last."""
        places = [place for place, filling in enumerate(fillings) if filling.box.session == memory.session]
        return max(places, key=lambda place: fillings[place].state.last_at, default=None)

    def _begin(self, memory: LinkableMemory) -> _BoxInProgress:
        at, (project_id, user) = memory.occurred_at, self._scope
        box = Box(
            workspace_id=self._workspace_id, project_id=project_id, user=user, session=memory.session, opened_at=at,
            last_at=at,
        )  # fmt: skip
        filling = _BoxInProgress(box=box, state=BoxState(topics=(), memories=0, opened_at=at, last_at=at))
        self.fillings.append(filling)
        self._open.append(filling)
        return filling

    def _add(self, filling: _BoxInProgress, memory: LinkableMemory, topics: Sequence[str]) -> None:
        filling.state = add_to_box(box=filling.state, topics=topics, at=memory.occurred_at, policy=self._policy)
        filling.added.append(memory.id)
        filling.box.session = memory.session
        if filling.state.memories >= self._policy.memories:
            _seal(filling.box, Seal.FULL, at=memory.created_at)


def seal_idle_boxes(*, workspace_id: int, now: datetime, policy: BoxPolicy) -> int:
    """Seal the open boxes into which nothing was put for too long; return how many."""
    idle = now - timedelta(minutes=policy.idle_minutes)
    boxes = list(Box.objects.for_workspace(workspace_id).open().filter(last_at__lt=idle).order_by("last_at", "pk"))
    for box in boxes:
        _seal(box, Seal.IDLE, at=now)
    Box.objects.bulk_update(boxes, ["seal", "sealed_at"])
    _trace(boxes, policy)
    return len(boxes)


def _read_open(workspace_id: int, scope: BoxScope) -> list[_BoxInProgress]:
    project_id, user = scope
    boxes = Box.objects.for_workspace(workspace_id).open().filter(project=project_id, user=user)
    return [
        _BoxInProgress(box=box, state=_box_state(box, box.memories))
        for box in boxes.annotate(memories=Count("members")).order_by("pk")
    ]


def _box_state(box: Box, memories: int = 0) -> BoxState:
    return BoxState(topics=tuple(box.topics), memories=memories, opened_at=box.opened_at, last_at=box.last_at)


def _seal(box: Box, seal: Seal, *, at: datetime) -> None:
    box.seal, box.sealed_at = seal, at


def _store_boxes(fillings: Sequence[_BoxInProgress], policy: BoxPolicy) -> None:
    for filling in fillings:
        box, state = filling.box, filling.state
        box.topics, box.opened_at, box.last_at = list(state.topics), state.opened_at, state.last_at
    known = [filling.box for filling in fillings if filling.box.pk is not None]
    Box.objects.bulk_update(known, ["session", "topics", "opened_at", "last_at", "seal", "sealed_at"])
    Box.objects.bulk_create([filling.box for filling in fillings if filling.box.pk is None])
    changed = [filling.box for filling in fillings]
    rows = [
        {"episode_id": key, "workspace_id": filling.box.workspace_id, "box_id": filling.box.pk}
        for filling in fillings
        for key in filling.added
    ]
    insert_new(model=BoxMember, rows=rows)
    _trace([box for box in changed if box.seal], policy)


def _trace(boxes: Sequence[Box], policy: BoxPolicy) -> None:
    """Link boxes that were just sealed with the latest sealed ones that tell of the same."""
    by_scope: defaultdict[BoxScope, list[Box]] = defaultdict(list)
    for box in boxes:
        by_scope[box.project_id, box.user].append(box)
    rows = [
        _trace_row(*pair)
        for (project_id, user), sealed in by_scope.items()
        for pair in _traced(sealed, _sealed_before(sealed, project_id, user, policy), policy)
    ]
    insert_new(model=Trace, rows=rows)


def _sealed_before(boxes: Sequence[Box], project_id: int | None, user: str, policy: BoxPolicy) -> list[Box]:
    """Read the latest boxes of a scope that were sealed before some, in the order of their times."""
    others = Box.objects.for_workspace(boxes[0].workspace_id).filter(
        project=project_id, user=user, sealed_at__isnull=False, last_at__lte=max(box.last_at for box in boxes)
    )  # fmt: skip
    latest = others.exclude(pk__in=[box.pk for box in boxes]).order_by("-last_at", "-pk")
    return list(reversed(latest[: policy.trace_reach]))


def _traced(boxes: Sequence[Box], before: Sequence[Box], policy: BoxPolicy) -> Iterator[tuple[Box, Box, float]]:
    """Yield pairs of which the first goes on with the second, with the overlap of their topics."""
    ordered = list(before)
    for box in sorted(boxes, key=lambda one: (one.last_at, one.pk)):
        others = ordered[-policy.trace_reach :]
        found = trace_boxes(box=_box_state(box), others=[_box_state(other) for other in others], policy=policy)
        yield from ((box, others[traced.place], traced.overlap) for traced in found)
        ordered.append(box)


def _trace_row(box: Box, other: Box, overlap: float) -> dict[str, object]:
    earlier, later = sorted((box, other), key=lambda one: (one.opened_at, one.pk))
    return {
        "workspace_id": box.workspace_id, "earlier_id": earlier.pk, "later_id": later.pk, "overlap": overlap,
    }  # fmt: skip


def boxes_of(*, episodes: QuerySet[Episode]) -> list[int]:
    """Name the boxes that some episodes are in."""
    members = BoxMember.objects.filter(episode__in=episodes.order_by().values("pk"))
    return list(members.order_by("box").values_list("box", flat=True).distinct())


def drop_orphaned_names(*, workspace_id: int, boxes: Collection[int]) -> None:
    """Drop, once episodes are gone, what only they named: entities, and topics of the boxes they were in."""
    drop_unmentioned_entities(workspace_id=workspace_id)
    Box.objects.filter(pk__in=boxes, members=None).delete()
    for box in Box.objects.filter(pk__in=boxes):
        box.topics = _topics_left(box)
        box.save(update_fields=["topics"])


def _topics_left(box: Box) -> list[str]:
    """Gather a box's topics from the memories that are left in it, the latest first."""
    policy = settings.POLICY.box
    left = Episode.objects.filter(boxed__box=box).order_by("-occurred_at", "-number").values_list("pk", "text")
    topics: dict[str, None] = {}
    for key, text in left:
        names = list(Mention.objects.filter(episode=key).order_by("pk").values_list("name", flat=True))
        topics |= dict.fromkeys(topics_of(names=names, text=text, policy=policy))
    return list(topics)[: policy.topics]
