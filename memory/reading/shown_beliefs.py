"""The beliefs that a reading sees (F1): all of a person's if they are few, else those nearest to what is said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from django.conf import settings
from django.db.models import Min

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE
from memory.llm.embeddings import embedder_of
from memory.llm.requests import ShownBelief
from memory.models import Belief, Episode, Evidence
from memory.models.beliefs import BeliefQuerySet
from memory.search.vectors import read_belief_vectors, read_episode_vectors

_CLOSED_DAYS = 90  # F1: what ended longer ago is not shown
_WORD = re.compile(r"\w{3,}")
_RARE_SHARE = 0.1  # share of the beliefs in which a word stands at most to tell them apart


def read_shown_beliefs(*, messages: Sequence[Episode], now: datetime, with_global: bool = True) -> list[ShownBelief]:
    """Return what a reading of messages of one stream and project sees, the oldest first.

    Seen are the project's beliefs and, `with_global`, global ones, the user's and nobody's (B21): live ones, and of
    those that ended lately no more than the nearest.
    """
    first = messages[0]
    seen = Belief.objects.for_workspace(first.workspace_id).visible_in(first.project_id)
    seen = seen.filter(user__in=("", first.user)).defer("search")
    if not with_global:
        seen = seen.filter(project__isnull=False)
    since = min(now, *(row.occurred_at for row in messages)) - timedelta(days=_CLOSED_DAYS)
    policy = settings.POLICY.reading
    live = _nearest_of(seen.filter(status__in=LIVE), messages, most=policy.all_beliefs)
    ended = _nearest_of(seen.closed().filter(valid_until__gte=since), messages, most=policy.nearest_beliefs)
    rows = sorted([*live, *ended], key=lambda row: (row.created_at, row.pk))
    told = Evidence.objects.filter(belief__in=[row.pk for row in rows], verdict=Verdict.SUPPORTS).order_by()
    first_said = dict(told.values_list("belief").annotate(Min("episode__occurred_at")))
    return [_as_shown(row, first_said.get(row.pk)) for row in rows]


def _as_shown(row: Belief, first_said: datetime | None) -> ShownBelief:
    since = row.valid_from or first_said or row.created_at
    last_day = row.valid_until - timedelta(days=1) if row.valid_until else None
    return ShownBelief(
        id=row.pk,
        statement=row.statement,
        since=since.date().isoformat(),
        until=last_day.date().isoformat() if last_day else "",
    )


def _nearest_of(beliefs: BeliefQuerySet, messages: Sequence[Episode], *, most: int) -> list[Belief]:
    """Return beliefs, all if they are few; else the most like any message, by vector, rare words and names."""
    rows = list(beliefs)
    if len(rows) <= most:
        return rows
    likeness, message_words = _Likeness.of(rows), [_words(message.text) for message in messages]
    by_vector = _vector_scores(rows, messages)
    scores = {row.pk: by_vector.get(row.pk, 0.0) + likeness.of_words(row, message_words) for row in rows}
    kept = sorted(scores, key=lambda key: (-scores[key], key))[: settings.POLICY.reading.nearest_beliefs]
    return [row for row in rows if row.pk in kept]


def _vector_scores(rows: Sequence[Belief], messages: Sequence[Episode]) -> dict[str, float]:
    """Return the greatest cosine of each belief to a message, where both have a vector of the workspace's model."""
    model = embedder_of(messages[0].workspace_id).name
    _, said = read_episode_vectors(model=model, ids=[row.pk for row in messages])
    ids, known = read_belief_vectors(model=model, ids=[row.pk for row in rows])
    if not len(said) or not len(known):
        return {}
    return dict(zip(ids, map(float, np.max(known @ said.T, axis=1)), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Likeness:
    """How alike beliefs and messages are by the words that few beliefs have; 1 for each two such words."""

    words: dict[str, frozenset[str]]
    rare: frozenset[str]

    @classmethod
    def of(cls, rows: Sequence[Belief]) -> _Likeness:
        words = {row.pk: _words(f"{row.statement} {row.subject}") for row in rows}
        counts = Counter(word for own in words.values() for word in own)
        rare = frozenset(word for word, count in counts.items() if count <= max(2, _RARE_SHARE * len(rows)))
        return cls(words=words, rare=rare)

    def of_words(self, row: Belief, message_words: Sequence[frozenset[str]]) -> float:
        own = self.words[row.pk] & self.rare
        return max((len(own & words) for words in message_words), default=0) / 2


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))
