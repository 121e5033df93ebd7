"""What links leave no trace of memories that are erased (B19)."""

from collections.abc import Collection

from django.conf import settings
from django.db.models import QuerySet

from memory.domain.boxes import topics_of
from memory.linking.mentions import drop_unnamed
from memory.models import Box, BoxMember, Episode, Mention


def boxes_of(*, episodes: QuerySet[Episode]) -> list[int]:
    """Name the boxes that some episodes are in."""
    members = BoxMember.objects.filter(episode__in=episodes.order_by().values("pk"))
    return list(members.order_by("box").values_list("box", flat=True).distinct())


def forget_names(*, workspace_id: int, boxes: Collection[int]) -> None:
    """Drop, once episodes are gone, what only they named: entities, and topics of the boxes they were in."""
    drop_unnamed(workspace_id=workspace_id)
    Box.objects.filter(pk__in=boxes, members=None).delete()
    for box in Box.objects.filter(pk__in=boxes):
        box.topics = _topics(box)
        box.save(update_fields=["topics"])


def _topics(box: Box) -> list[str]:
    """Gather a box's topics from the memories that are left in it, the latest first."""
    policy = settings.POLICY.box
    left = Episode.objects.filter(boxed__box=box).order_by("-occurred_at", "-number").values_list("pk", "text")
    topics: dict[str, None] = {}
    for key, text in left:
        names = list(Mention.objects.filter(episode=key).order_by("pk").values_list("name", flat=True))
        topics |= dict.fromkeys(topics_of(names=names, text=text, policy=policy))
    return list(topics)[: policy.topics]
