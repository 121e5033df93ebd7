"""What tells a forgotten episode again goes with it: summaries of its turns, exact words beside other facts (B19)."""

from collections.abc import Collection
from datetime import datetime

from memory.consolidation.status import change_episode_status
from memory.domain.actor import Actor
from memory.domain.lifecycle import EpisodeStatus
from memory.models import Episode, Turn


def forget_retelling(*, episode_id: str, held: Collection[str], actor: Actor, now: datetime) -> list[str]:
    """Forget the summaries among what is held, and let go of exact words of the turns; return the summaries' ids.

    The caller holds the conversations, so that nobody sums up what is being forgotten.
    """
    turns = Turn.objects.filter(episodes=episode_id).values("pk")
    beside = Episode.objects.filter(turns__in=turns).exclude(pk=episode_id)
    beside.exclude(verbatim="").update(verbatim="")
    summaries = set(held) - {episode_id}
    reason = f"it tells of {episode_id}, which was forgotten"
    return change_episode_status(ids=summaries, new=EpisodeStatus.FORGOTTEN, reason=reason, actor=actor, now=now)
