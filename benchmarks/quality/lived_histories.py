"""Live simulated histories through the real pipeline, and read its beliefs at sampled times.

Episodes go through the ingest, cycles through every step of consolidation with the database beneath; only the model
behind the client is scripted: a verdict is what the episode says of the statement, a new statement is what most of the
episodes shown support, a division what they say of each context. Vectors are dictated, too: texts about one habit are
alike, those of one context more so. Where changes are announced, the first true word after each is somebody's speech,
which the model reads against what is believed: what it contradicts has ended since the change's day.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import Any

from django.conf import settings

from benchmarks.quality.histories import SPAN_DAYS, STATEMENTS, Claim, History, Kind, Said, Says, judge, state_majority
from benchmarks.quality.reliability import Sample
from memory.domain.lifecycle import LIVE, Reason
from memory.ingest.json_lines import plan_replay
from memory.ingest.schemas import IngestContext, Stored
from memory.ingest.store import store_raw_episodes
from memory.models import Belief, Transition, Workspace
from tests.consolidation.inline import run_cycle
from tests.consolidation.world import Directions
from tests.model_server import ModelServer
from tests.model_server_acts import Asked, about, judged, new

BEGIN = datetime(2026, 1, 1, 8, tzinfo=UTC)
SAMPLED_DAYS = 20

# Cosines to the habit and to a context. Two texts of one context have .97, of two contexts .77, and one that names its
# context has .85 to one that names none; what says yes is as near to what says no, as with every small model.
_OF_HABIT, _OF_HABIT_IN_CONTEXT, _OF_CONTEXT, _OF_BOTH = 0.97, 0.88, 0.44, 0.31
_BLANK = dict.fromkeys(("statement", "subject", "predicate"), "") | {"context": "general", "timeframe": "current"}
_CLAIMS = (*STATEMENTS, *(Claim(does=does, context=one, elsewhere=True) for does in (True, False) for one in (0, 1)))


class ScriptedModel:
    """Answers about the histories of one workspace as a model would that reads their texts without error."""

    def __init__(self, *, histories: Sequence[History]) -> None:
        self.directions = Directions()
        self.meanings = {history.word(claim): (history, claim) for history in histories for claim in _CLAIMS}
        for text, (history, claim) in self.meanings.items():
            self.directions.place(text, _matters(history, claim))

    def serve_through(self, server: ModelServer) -> None:
        """Let a server answer for this model from now on."""
        server.embed, server.script = self.directions, self.answer

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        """Answer one request; the server's own good sense answers for purposes that are not known here."""
        beliefs = [item["belief"] for item in asked.items if "belief" in item]
        match asked.purpose:
            case "synthesize":
                return self._state(asked.episodes, among=STATEMENTS)
            case "classify":
                return judged(asked, lambda belief, episode: self._judge(belief["belief"], episode["text"]))
            case "revise":
                held = self.meanings[beliefs[0]][1]
                return self._state(asked.episodes, among=[claim for claim in STATEMENTS if claim != held])
            case "split":
                return {"parts": self._divide(asked.episodes)}
            case "read":
                return self._read(asked)
            case "merge":
                return {"same": len(set(beliefs)) == 1, **_BLANK}
        return None

    def _divide(self, episodes: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        """State what holds in each context, if the episodes name both."""
        named = {self.meanings[episode["text"]][1].context for episode in episodes} - {None}
        if len(named) < 2:
            return []
        return [
            self._state(episodes, among=[claim for claim in STATEMENTS if claim.context == context])
            for context in (0, 1)
        ]

    def _read(self, asked: Asked) -> dict[str, Any]:
        """Say that what a message contradicts has ended, and since when; state what no belief says yet."""
        reply: dict[str, Any] = {"new": [], "about": []}
        for message in asked.messages:
            history, said = self.meanings[message["text"]]
            words = {
                number: judge(said=said, statement=self.meanings[statement][1])
                for statement, number in asked.held.items()
                if self.meanings[statement][0] is history
            }
            since = {"from": _time(history.changes_on).date().isoformat()}
            ended = [number for number, word in words.items() if word is Says.CONTRADICTS]
            borne_out = [number for number, word in words.items() if word is Says.SUPPORTS]
            reply["about"] += [about(message["m"], number, "ENDED", **since) for number in ended]
            reply["about"] += [about(message["m"], number, "SUPPORTS") for number in borne_out]
            if not borne_out:
                ties = {"replaces": str(ended[0])} if ended else {}
                told = {"subject": history.habit.person, **since, **ties}
                reply["new"].append(new(message["m"], message["text"], **told))
        return reply

    def _judge(self, statement: str, text: str) -> tuple[str, str]:
        verdict = judge(said=self.meanings[text][1], statement=self.meanings[statement][1])
        return verdict.value, "as scripted"

    def _state(self, episodes: Sequence[dict[str, str]], *, among: Sequence[Claim]) -> dict[str, str]:
        history = self.meanings[episodes[0]["text"]][0]
        claim = state_majority((self.meanings[episode["text"]][1] for episode in episodes), among=among)
        return {
            "statement": history.word(claim),
            "subject": history.habit.person,
            "predicate": history.habit.does if claim.does else history.habit.does_not,
            "context": "general" if claim.context is None else history.habit.contexts[claim.context],
            "timeframe": "current",
        }


def _matters(history: History, claim: Claim) -> dict[str, float]:
    habit, *contexts = (f"{history.number} {part}" for part in ("habit", 0, 1))
    if claim.context is None:
        return {habit: _OF_HABIT}
    if claim.elsewhere:
        return {habit: _OF_HABIT_IN_CONTEXT} | dict.fromkeys(contexts, _OF_BOTH)
    return {habit: _OF_HABIT_IN_CONTEXT, contexts[claim.context]: _OF_CONTEXT}


class Cadence(StrEnum):
    """When cycles run."""

    SCHEDULE = "schedule"  # as in a running stack: at every beat since which an episode came
    REPLAY = "replay"  # as an import replays a history: after 20 episodes, before a longer pause, at the end


def live_through(
    *,
    histories: Sequence[History],
    server: ModelServer,
    workspace: Workspace,
    seed: int,
    cadence: Cadence = Cadence.SCHEDULE,
    is_announced: bool = False,
) -> Iterator[Sample]:
    """Live histories side by side in an empty workspace; yield its live beliefs at random times of each history.

    With `is_announced` the first true word after each change announces it. The times are uniform over the whole span;
    at those before the first belief there is nothing to score.
    """
    model = ScriptedModel(histories=histories)
    model.serve_through(server)
    days = {history.number: _draw_days(history, seed) for history in histories}
    told = sorted(((one, history) for history in histories for one in history.said), key=lambda pair: pair[0].day)
    cycles = list((_by_schedule if cadence is Cadence.SCHEDULE else _by_replay)([one.day for one, _ in told]))
    ends = [end for _, end in cycles] + [SPAN_DAYS]
    announcements = {_first_word_of_change(history) for history in histories} if is_announced else set()
    for (batch, end), following in zip(cycles, ends[1:], strict=True):
        _store([told[place] for place in batch], workspace=workspace, announcements=announcements)
        run_cycle(workspace, _time(end))
        yield from _read(model, workspace, {number: _between(days[number], end, following) for number in days})


def _draw_days(history: History, seed: int) -> list[float]:
    rng = random.Random(f"{seed}/{history.number}/times")
    return sorted(rng.uniform(0, SPAN_DAYS) for _ in range(SAMPLED_DAYS))


def _between(days: Sequence[float], begin: float, end: float) -> Sequence[float]:
    return days[bisect_right(days, begin) : bisect_right(days, end)]


def _time(day: float) -> datetime:
    return BEGIN + timedelta(days=day)


def _by_schedule(days: Sequence[float]) -> Iterator[tuple[range, float]]:
    """Yield for every beat since which something was said the places of what was said, and the beat's day (B7)."""
    beats_a_day = 24.0 / settings.POLICY.consolidation.every_hours
    place = 0
    for beat, said in groupby(days, key=lambda day: math.ceil(day * beats_a_day)):
        count = len(list(said))
        yield range(place, place + count), beat / beats_a_day
        place += count


def _by_replay(days: Sequence[float]) -> Iterator[tuple[range, float]]:
    """Yield the batches of a replay, and the day of each one's last word."""
    gap = timedelta(days=settings.POLICY.ingest.replay_gap_days)
    every = settings.POLICY.consolidation.trigger_episodes
    for batch in plan_replay(times=[_time(day) for day in days], every=every, gap=gap):
        yield batch, days[batch[-1]]


def _read(model: ScriptedModel, workspace: Workspace, days: dict[int, Sequence[float]]) -> Iterator[Sample]:
    """Yield what is believed now as samples of each history's days."""
    beliefs = Belief.objects.for_workspace(workspace.pk).filter(status__in=LIVE).order_by("pk")
    for statement, confidence in beliefs.values_list("statement", "confidence"):
        history, claim = model.meanings[statement]
        for day in days[history.number]:
            yield Sample(
                history=history.number,
                phase=history.phase(day=day),
                confidence=confidence,
                is_true=history.is_true(claim, day=day),
            )


def false_closes(*, histories: Sequence[History], workspace: Workspace) -> Iterator[Kind]:
    """Yield the kind of history of each belief that was closed as changed on a day on which it was true."""
    model = ScriptedModel(histories=histories)
    closed = Transition.objects.for_workspace(workspace.pk).filter(new="invalidated", reason=Reason.CHANGED)
    for statement, at in closed.values_list("belief__statement", "at"):
        history, claim = model.meanings[statement]
        if history.is_true(claim, day=(at - BEGIN) / timedelta(days=1)):
            yield history.kind


def _first_word_of_change(history: History) -> Said | None:
    since = (one for one in history.said if one.day >= history.changes_on)
    return next((one for one in since if history.is_true(one.claim, day=one.day)), None)


def _store(
    told: Sequence[tuple[Said, History]], *, workspace: Workspace, announcements: Container[Said | None]
) -> None:  # fmt: skip
    """Store episodes as if each had come when it occurred, from a session of its own; announcements as speech."""
    lines = [
        {
            "text": history.word(one.claim),
            "occurred_at": _time(one.day).isoformat(),
            "session": f"{history.number} on day {one.day:.6f}",
            "language": "en",
            **({"source": "human"} if one in announcements else {}),
        }
        for one, history in told
    ]
    arrival = IngestContext(workspace=workspace, now=_time(told[-1][0].day), is_replay=True)
    outcomes = store_raw_episodes(raw_lines=lines, arrival=arrival)
    assert all(isinstance(outcome, Stored) and not outcome.is_duplicate for outcome in outcomes), outcomes
