"""What tells a forgotten episode again goes with it: what was merged into it, summaries, exact words (B19)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.domain.actor import Actor
from memory.domain.lifecycle import EpisodeStatus
from memory.forgetting.holding import DoomedEpisode
from memory.ledger.transactions import change_episode_status
from memory.models import Episode, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Retellings:
    """The episodes that went with one, by their ids."""

    merged: Sequence[str] = ()
    summaries: Sequence[str] = ()

    @property
    def all(self) -> list[str]:
        """Return both."""
        return [*self.merged, *self.summaries]


def forget_retellings(*, episode: Episode, held: Collection[DoomedEpisode], actor: Actor, now: datetime) -> Retellings:
    """Forget what tells an episode among what is held, and let go of exact words of its turns.

    The caller holds the conversations, so that nobody sums up what is being forgotten. A summary is forgotten for
    itself: what it sums up, and other summaries of that, stay.
    """
    if episode.is_derived:
        return Retellings()
    others = [one for one in held if one.id != episode.pk]
    told = {episode.pk} | {one.id for one in others if not one.is_derived}
    turns = Turn.objects.filter(episodes__in=told).values("pk")
    Episode.objects.filter(turns__in=turns).exclude(pk__in=told).exclude(verbatim="").update(verbatim="")
    reason = f"it tells of {episode.pk}, which was forgotten"
    changed = set(
        change_episode_status(
            ids=[one.id for one in others], new=EpisodeStatus.FORGOTTEN, reason=reason, actor=actor, now=now
        )
    )
    return Retellings(
        merged=sorted(changed & told),
        summaries=sorted(changed - told),
    )
