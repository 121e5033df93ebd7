"""Keep the weightiest memories in a file, and what it has no room for in an archive beside it (P8, P12).

`update_graduates` decides which episodes a file keeps, `render_graduates` says how they stand there and in the archive.
`keep_in_file` is for what a person wants in the file now.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby

from django.conf import settings
from django.db.models import Q, QuerySet

from memory.domain.lifecycle import HIDDEN_STATES, EpisodeStatus, Verification
from memory.models import Episode, GraduatedEpisode, MemoryFile, Source
from memory.publishing.section import GraduatedMemory, render_memories

_STANDING = (EpisodeStatus.ACTIVE, EpisodeStatus.MERGED)  # what was merged is still what somebody said
_LINES_AROUND_A_DAY = 3  # its heading, and an empty line on both sides
_MARKERS = 2
_SHOWN = ("graduated_at", "episode__text", "episode__occurred_at")


def update_graduates(*, file: MemoryFile, now: datetime, may_add: bool) -> int:
    """Let go what no longer holds, keep what is due, and archive the oldest that have no room; return how many came."""
    added = list(_find_due(file, now)) if may_add and file.project_id is None else []
    for episode in added:
        keep_in_file(file=file, episode=episode, now=now)
    file.graduates.exclude(_holds_at(now)).delete()
    _archive_oldest(file, now)
    return len(added)


def keep_in_file(*, file: MemoryFile, episode: Episode, now: datetime) -> None:
    """Have a file keep an episode from now on, whatever it weighs (P12); one that is in the archive comes back."""
    GraduatedEpisode.objects.update_or_create(
        file=file, episode=episode, workspace_id=file.workspace_id, defaults={"graduated_at": now, "archived_at": None}
    )


def render_graduates(*, file: MemoryFile) -> tuple[str, str]:
    """Return the section of a file's memories, and that of its archive."""
    rows = file.graduates.select_related("episode").only(*_SHOWN).order_by("-graduated_at", "-pk")
    kept = rows.filter(archived_at=None)
    archived = rows.exclude(archived_at=None)[: settings.POLICY.publishing.archived_memories]
    here, beside = ([_as_memory(row) for row in reversed(chosen)] for chosen in (kept, archived))
    return render_memories(memories=here), render_memories(memories=beside)


def _holds_at(now: datetime) -> Q:
    return Q(episode__status__in=_STANDING) & (Q(episode__valid_until=None) | Q(episode__valid_until__gt=now))


def _find_due(file: MemoryFile, now: datetime) -> QuerySet[Episode]:
    """P8: find the episodes of a person that matter, and that proved it by being recalled or by lasting."""
    policy = settings.POLICY.publishing
    lasted = Q(created_at__lte=now - timedelta(days=policy.memory_days))
    due = (
        Episode.objects.for_workspace(file.workspace_id)
        .active()
        .filter(source=Source.HUMAN, is_derived=False, project=None, user__in={"", file.user})
        .filter(lasted | Q(access__access_count__gte=policy.memory_accesses))
        .filter(importance__gte=policy.memory_importance, feedback__gte=0)
        .filter(Q(valid_until=None) | Q(valid_until__gt=now))
        .exclude(lifecycle_state__in=HIDDEN_STATES)
        .exclude(verification=Verification.DISPUTED)
        .exclude(graduations__file=file)
    )
    return due.order_by("-importance", "created_at", "pk")[: policy.memories_per_pass]


def _archive_oldest(file: MemoryFile, now: datetime) -> None:
    rows = list(file.graduates.filter(archived_at=None).order_by("graduated_at", "pk"))
    over = count_without_room(dates=[row.graduated_at for row in rows], lines=settings.POLICY.publishing.memory_lines)
    file.graduates.filter(pk__in=[row.pk for row in rows[:over]]).update(archived_at=now)


def count_without_room(*, dates: Sequence[datetime], lines: int) -> int:
    """Return how many of the memories that came on these dates, the oldest first, do not fit into so many lines."""
    taken, kept = _MARKERS, 0
    for _, day in groupby(reversed(dates), key=datetime.date):
        taken += _LINES_AROUND_A_DAY
        for _ in day:
            taken += 1
            if taken > lines:
                return len(dates) - kept
            kept += 1
    return 0


def _as_memory(row: GraduatedEpisode) -> GraduatedMemory:
    return GraduatedMemory(
        text=row.episode.text, occurred_on=row.episode.occurred_at.date(), graduated_on=row.graduated_at.date()
    )
