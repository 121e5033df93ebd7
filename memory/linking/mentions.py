"""Whom and what memories name: entities, each known by every name that a mention has for it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef

from memory.linking.unlinked import Unlinked
from memory.models import Entity, Mention
from memory.models.fields import insert_new


def note_mentions(*, workspace_id: int, memories: Sequence[Unlinked], names: Mapping[str, Sequence[str]]) -> None:
    """Store whom and what new memories name, by their ids; who was never named before becomes an entity."""
    first: dict[str, datetime] = {}
    for memory in memories:
        for name in names[memory.id]:
            first.setdefault(name, memory.created_at)
    known = _known(workspace_id, first)
    _begin(workspace_id, {name: at for name, at in first.items() if name not in known})
    known |= _known(workspace_id, first.keys() - known.keys())
    rows = [
        {"workspace_id": workspace_id, "entity_id": known[name], "episode_id": memory.id, "name": name}
        for memory in memories
        for name in names[memory.id]
    ]
    insert_new(model=Mention, rows=rows)


def drop_unnamed(*, workspace_id: int) -> None:
    """Delete entities that no memory names any more, and let no entity keep a name that none has for it any more."""
    entities = Entity.objects.for_workspace(workspace_id)
    mentions = Mention.objects.filter(entity=OuterRef("pk"))
    entities.filter(~Exists(mentions)).delete()
    for entity in entities.filter(~Exists(mentions.filter(name=OuterRef("name")))):
        entity.name = Mention.objects.filter(entity=entity).order_by("pk").values_list("name", flat=True)[0]
        entity.save(update_fields=["name"])


def _known(workspace_id: int, names: Collection[str]) -> dict[str, int]:
    """Return the entities of names: one that goes by another name now is found by its mentions."""
    mentioned = Mention.objects.for_workspace(workspace_id).filter(name__in=names)
    begun = Entity.objects.for_workspace(workspace_id).filter(name__in=names)
    found = dict(begun.values_list("name", "pk"))
    return found | dict(mentioned.order_by().values_list("name", "entity_id").distinct())


def _begin(workspace_id: int, names: Mapping[str, datetime]) -> None:
    rows = [{"workspace_id": workspace_id, "name": name, "created_at": at} for name, at in names.items()]
    insert_new(model=Entity, rows=rows)
