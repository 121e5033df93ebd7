"""Questions whose answer is a belief, in other words than the belief's own, over the sample history."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from memory.models import Belief, Workspace
from memory.recall.query import MemoryType, Recalled
from memory.search.words import count_words
from tests.recall.memories import ask
from tests.test_sample_lived_through import cycles_in_process, live_through, read_history

__all__ = ["cycles_in_process"]  # a fixture

AFTERWARDS = datetime(2026, 6, 10, tzinfo=UTC)

# What a belief of the sample says in any wording of it, and two questions about it.
PROBES = {
    "stored in UTC": (
        "in which time zone do we keep the times of high and low water?",
        "timezone of the tide table in the database",
    ),
    "timetable as a PDF": (
        "by when does the harbour office need its schedule, and in which format?",
        "what does Kolja expect from us every week",
    ),
    "gesiezt": ("Wie sollen wir Frau Hollmann ansprechen, du oder Sie?", "Anrede der Bäckerin in unseren Texten"),
    "nach 18 Uhr": ("Wann wird geliefert, wenn jemand spät am Abend bestellt?", "Bestellschluss und Liefertag"),
    "Nachkommastellen": ("Wie schreiben wir Preise im Shop?", "Nachkommastellen bei Beträgen"),
    "Otis the dog": ("when does the dog need to go out?", "what time is Otis taken for a walk"),
    "within two minutes": ("how long may the importer's test suite take?", "time limit for running the tests"),
    "forty lengths": ("which sport does Mia do in the middle of the week?", "is Mia free on Wednesday night?"),
    "small commits": ("how should I commit my changes?", "what belongs into a commit message for Mia"),
    "backed up every night": ("when do we make backups of the bakery's data?", "nightly backup schedule brotzeit"),
    "short answers": ("how long should my replies to Mia be?", "style of answers that Mia likes"),
    "first working day": ("when do we bill our customers?", "on which day are the invoices sent"),
    "music while coding": (
        "does Mia have music on when she programs?",
        "sound or silence while Mia is working on code",
    ),
    "no coffee": ("may I offer Mia an espresso at four?", "Mia's habits with coffee"),
    "not deployed on Friday": ("can we ship tidewatch right before the weekend?", "deploying on Fridays"),
    "no notifications": ("can I ping Mia late in the day?", "quiet hours for alerts on Mia's phone"),
    "train over the car": ("how does Mia like to travel?", "should I book a rental car for Mia's trip?"),
    "on Tuesday morning": ("when do releases of tidewatch go out?", "which day do we roll out new versions"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A question, the belief that answers it, and what was recalled."""

    question: str
    belief: str
    recalled: Recalled

    @property
    def rank(self) -> int:
        """Return the belief's place among the results, 1 for the first; one far behind if it is not there."""
        ids = [result.id for result in self.recalled.results]
        return ids.index(self.belief) + 1 if self.belief in ids else 1_000

    @property
    def rank_among_beliefs(self) -> int:
        """Return the belief's place among the beliefs of the results."""
        ids = [result.id for result in self.recalled.results if result.type == MemoryType.BELIEF]
        return ids.index(self.belief) + 1 if self.belief in ids else 1_000

    def rank_by(self, channel: str) -> int:
        """Return the belief's place among the beliefs found by one channel alone."""
        told = [*self.recalled.results, *(missed.memory for missed in self.recalled.near_misses)]
        [explained] = [memory.explain for memory in told if memory.id == self.belief] or [None]
        heard = explained.channels.get(channel) if explained else None
        return heard.rank if heard else 1_000


def answer_probes(workspace: Workspace, **asked: Any) -> list[Probe]:
    """Ask about each belief that came of the sample."""
    beliefs = list(Belief.objects.for_workspace(workspace).active().values_list("pk", "statement"))
    return [
        Probe(question=question, belief=key, recalled=ask(question, workspace=workspace, now=AFTERWARDS, **asked))
        for said, questions in PROBES.items()
        for key, statement in beliefs
        if said in statement
        for question in questions
    ]


def found_early(ranks: list[int], *, within: int) -> float:
    """Return the share of ranks within the first places."""
    return sum(rank <= within for rank in ranks) / len(ranks)


@pytest.mark.xfail(
    strict=True,
    reason="24 probes have a belief since an AI's words found none (E2): 20 in the first three, 17 once used",
)
@pytest.mark.slow
@pytest.mark.django_db
def test_a_question_whose_answer_is_a_belief_finds_it_in_the_top_three() -> None:
    """B17: 31 of 36, among ten results of both kinds, however long ago the belief was formed.

    The others share neither words nor, for the small static model, much direction with the answer.
    """
    workspace = live_through(read_history())
    count_words(workspace_id=workspace.pk)
    probes = answer_probes(workspace, is_explained=True)  # so that none of them makes a belief stronger for the next
    assert len(probes) >= 30
    assert sum(probe.rank <= 3 for probe in probes) >= 31

    explained = answer_probes(workspace, is_explained=True, limit=500)  # with room for all
    blend, vector, text = (
        sum(1 / rank for rank in ranks) / len(explained)
        for ranks in (
            [probe.rank_among_beliefs for probe in explained],
            [probe.rank_by("vector") for probe in explained],
            [probe.rank_by("text") for probe in explained],
        )
    )
    assert blend > text
    assert blend > vector - 0.01  # this model's vectors leave words little to add on so few beliefs

    used = answer_probes(workspace)  # what was recalled stands out for a while, and makes it a little harder
    assert found_early([probe.rank for probe in used], within=3) >= 0.75
