"""Put memories into boxes by topic, seal what is done with, and trace what goes on (L7)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count

from memory.domain.boxes import BoxState, Seal, add_to_box, choose_box, is_over, topics_of, trace_boxes
from memory.domain.policy_graph import BoxPolicy
from memory.linking.unlinked import Unlinked
from memory.models import Box, BoxMember, Trace
from memory.models.fields import insert_new

Scope = tuple[int | None, str]  # a project, and a user


@dataclass(slots=True, kw_only=True)
class _Filling:
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


class _Shelf:
    """The open boxes of one project and user."""

    def __init__(self, *, workspace_id: int, scope: Scope, fillings: Iterable[_Filling], policy: BoxPolicy) -> None:
        self._workspace_id, self._scope, self._policy = workspace_id, scope, policy
        self.fillings = list(fillings)
        self._open = list(self.fillings)

    def put(self, memory: Unlinked, topics: Sequence[str]) -> None:
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

    def _open_at(self, memory: Unlinked) -> list[_Filling]:
        """Seal the boxes into which nothing was put for too long, and return those that are open."""
        for filling in self._open:
            if is_over(box=filling.state, at=memory.occurred_at, policy=self._policy):
                _seal(filling.box, Seal.IDLE, at=memory.created_at)
        self._open = [filling for filling in self._open if filling.is_open]
        return self._open

    def _current(self, fillings: Sequence[_Filling], memory: Unlinked) -> int | None:
        """Return the place of the box that the memory's session put something into last."""
        places = [place for place, filling in enumerate(fillings) if filling.box.session == memory.session]
        return max(places, key=lambda place: fillings[place].state.last_at, default=None)

    def _begin(self, memory: Unlinked) -> _Filling:
        at, (project_id, user) = memory.occurred_at, self._scope
        box = Box(
            workspace_id=self._workspace_id, project_id=project_id, user=user, session=memory.session, opened_at=at,
            last_at=at,
        )  # fmt: skip
        filling = _Filling(box=box, state=BoxState(topics=(), memories=0, opened_at=at, last_at=at))
        self.fillings.append(filling)
        self._open.append(filling)
        return filling

    def _add(self, filling: _Filling, memory: Unlinked, topics: Sequence[str]) -> None:
        filling.state = add_to_box(box=filling.state, topics=topics, at=memory.occurred_at, policy=self._policy)
        filling.added.append(memory.id)
        filling.box.session = memory.session
        if filling.state.memories >= self._policy.memories:
            _seal(filling.box, Seal.FULL, at=memory.created_at)


def put_into_boxes(
    *, workspace_id: int, memories: Sequence[Unlinked], names: Mapping[str, Sequence[str]], policy: BoxPolicy
) -> None:
    """Give every memory its box, in the order in which they occurred."""
    shelves: dict[Scope, _Shelf] = {}
    for memory in sorted(memories, key=lambda one: (one.occurred_at, one.number)):
        scope = (memory.project_id, memory.user)
        if scope not in shelves:
            fillings = _read_open(workspace_id, scope)
            shelves[scope] = _Shelf(workspace_id=workspace_id, scope=scope, fillings=fillings, policy=policy)
        shelves[scope].put(memory, topics_of(names=names[memory.id], text=memory.text, policy=policy))
    _store([filling for shelf in shelves.values() for filling in shelf.fillings if filling.is_changed], policy)


def seal_idle_boxes(*, workspace_id: int, now: datetime, policy: BoxPolicy) -> int:
    """Seal the open boxes into which nothing was put for too long; return how many."""
    idle = now - timedelta(minutes=policy.idle_minutes)
    boxes = list(Box.objects.for_workspace(workspace_id).open().filter(last_at__lt=idle).order_by("last_at", "pk"))
    for box in boxes:
        _seal(box, Seal.IDLE, at=now)
    Box.objects.bulk_update(boxes, ["seal", "sealed_at"])
    _trace(boxes, policy)
    return len(boxes)


def _read_open(workspace_id: int, scope: Scope) -> list[_Filling]:
    project_id, user = scope
    boxes = Box.objects.for_workspace(workspace_id).open().filter(project=project_id, user=user)
    return [
        _Filling(box=box, state=_state(box, box.memories))
        for box in boxes.annotate(memories=Count("members")).order_by("pk")
    ]


def _state(box: Box, memories: int = 0) -> BoxState:
    return BoxState(topics=tuple(box.topics), memories=memories, opened_at=box.opened_at, last_at=box.last_at)


def _seal(box: Box, seal: Seal, *, at: datetime) -> None:
    box.seal, box.sealed_at = seal, at


def _store(fillings: Sequence[_Filling], policy: BoxPolicy) -> None:
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
    by_scope: defaultdict[Scope, list[Box]] = defaultdict(list)
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
        found = trace_boxes(box=_state(box), others=[_state(other) for other in others], policy=policy)
        yield from ((box, others[traced.place], traced.overlap) for traced in found)
        ordered.append(box)


def _trace_row(box: Box, other: Box, overlap: float) -> dict[str, object]:
    earlier, later = sorted((box, other), key=lambda one: (one.opened_at, one.pk))
    return {
        "workspace_id": box.workspace_id, "earlier_id": earlier.pk, "later_id": later.pk, "overlap": overlap,
    }  # fmt: skip
