"""Anything that may be done to a workspace, in any order, offline: what a stateful test draws from.

What Mara says is read as `tests.consolidation.telling` lays it down.
"""

import io
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Q
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memory.access import Viewer
from memory.consolidation.curation import (
    BeliefText,
    DifferentScopes,
    DuplicateBelief,
    InvalidEvidence,
    InvalidStatement,
    SplitPart,
    embed_statements,
    merge_beliefs,
    split_belief,
    state_belief,
)
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import CannotBeUndone, undo_cycle
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.domain.evidence import Verdict
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import LIVE, BeliefStatus, IllegalTransitionError, Reason
from memory.erasure.erase import erase_memories, erase_workspace
from memory.export.exporter import export_workspace
from memory.export.importer import import_workspace
from memory.facts.remember import Remembered, remember, run_remember_job
from memory.forgetting import forget_episode
from memory.ingest.buffer import buffer_raw_turns
from memory.ingest.corrections import WasForgotten, correct_belief
from memory.ingest.extract import extract_conversation
from memory.ingest.schemas import IngestContext, read_extracted_line
from memory.ingest.store import store_episodes, store_raw_episodes
from memory.ledger.confidence import compute_numbers
from memory.ledger.transactions import Author
from memory.models import (
    Belief,
    Claim,
    Conversation,
    Cycle,
    Episode,
    Evidence,
    EvidenceKind,
    GateDecision,
    RememberJob,
    ShownMemory,
)
from tests import factories
from tests.consolidation.inline import run_cycle

LENA = Actor(kind=ActorKind.PERSON, name="lena")
BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)

KILN = "The kiln of the pottery burns 5 hours."
BOTH = "I drink tea. I do not drink tea."
SAID = (
    "My manager is Dana.",
    "Dana is my manager.",
    "My manager is Ravi.",
    "Ravi is my manager.",
    "Dana was never my manager.",
    "My manager is no longer Dana, it is Ravi now.",
    "My manager is no longer Ravi, it is Dana now.",
    "From April 1st my manager will be Ravi instead of Dana.",
    "From May 1st my manager will be Ravi instead of Dana.",
    "I am vegetarian.",
    "I no longer eat vegetarian, I eat meat again.",
    "We deploy on Tuesdays.",
    "We deploy on Fridays.",
    "We moved deployments from Tuesdays to Fridays.",
    "I drink tea.",
    BOTH,
    KILN,
    "The kiln of the pottery burns 5 hours!",
    "The kiln of the pottery burns 6 hours.",
)
STATED = ("Mara's manager is Ravi.", "Mara deploys on Fridays.", "The kiln of the pottery burns 6 hours.")
texts, sessions, places = st.sampled_from(SAID), st.sampled_from("abcdef"), st.integers(0, 30)
days = st.sampled_from([0, 1, 2, 9, 40, 95])


class Anything(RuleBasedStateMachine):
    """One workspace of Mara's, with a clock; after each act its beliefs are held against their evidence."""

    @initialize()
    def begin(self) -> None:
        """Make a workspace in which some things are believed."""
        self.workspace = factories.workspace()
        self.now, self.count = BEGIN, 0
        self.known: dict[str, tuple[str, str, str]] = {}  # whose and what the beliefs are that were active then
        self.seen: dict[str, tuple[float, float]] = {}  # α and β when gates last looked
        self.ingest(said=[("My manager is Ravi.", "a"), ("I drink tea.", "b"), *[(KILN, one) for one in "def"]], ago=0)
        self.cycle(after=1)

    def arrival(self) -> IngestContext:
        """Come a minute later."""
        self.now += timedelta(minutes=1)
        return IngestContext(workspace=self.workspace, now=self.now, actor=LENA, is_replay=True)

    def author(self) -> Author:
        self.now += timedelta(minutes=1)
        return Author(actor=LENA, reason="as drawn", now=self.now)

    def belief(self, place: int, *, live: bool = False) -> Belief | None:
        """Choose a belief, a live one if that is wanted."""
        found = Belief.objects.for_workspace(self.workspace.pk).order_by("created_at", "statement", "pk")
        chosen = list(found.filter(status__in=LIVE) if live else found)
        return chosen[place % len(chosen)] if chosen else None

    def episode(self, place: int) -> Episode | None:
        chosen = list(Episode.objects.for_workspace(self.workspace.pk).order_by("number"))
        return chosen[place % len(chosen)] if chosen else None

    def end_arrival(self) -> None:
        """Run the cycle that is queued where enough has come."""
        if Cycle.objects.for_workspace(self.workspace.pk).open().exists():
            self.consolidate()

    def line(self, text: str, session: str, ago: int = 0) -> dict[str, object]:
        self.count += 1
        occurred_at = self.now - timedelta(days=ago)
        return {
            "text": text, "session": f"{session} {self.count // 4}", "user": "" if "kiln" in text else "mara",
            "source": "ingest" if "kiln" in text else "human", "language": "en", "occurred_at": occurred_at.isoformat(),
        }  # fmt: skip

    @rule(said=st.lists(st.tuples(texts, sessions), min_size=1, max_size=4), ago=st.sampled_from([0, 0, 0, 300]))
    def ingest(self, said: list[tuple[str, str]], ago: int) -> None:
        """Store episodes, of now or of long ago."""
        arrival = self.arrival()
        store_raw_episodes(raw_lines=[self.line(text, session, ago) for text, session in said], arrival=arrival)
        self.end_arrival()

    @rule(session=sessions, is_remembered=st.booleans())
    def parrot(self, session: str, is_remembered: bool) -> None:
        """Let an AI repeat what its session was shown, to be consolidated or to be remembered at once."""
        if belief := self.belief(self.count):
            ShownMemory.objects.get_or_create(
                workspace=self.workspace, session=session, belief=belief, defaults={"surfaced_at": self.now}
            )
            line = self.line(belief.statement, session) | {"source": "ai", "session": session}
            if is_remembered:
                self.have_remembered(line)
            else:
                store_raw_episodes(raw_lines=[line], arrival=self.arrival())
                self.end_arrival()

    @rule(after=days)
    def cycle(self, after: int) -> None:
        """Let time pass, and consolidate: gates look at every belief whose counted evidence has changed (C3)."""
        self.now += timedelta(days=after, minutes=1)
        self.consolidate()

    def consolidate(self) -> None:
        """Run a cycle to its end, and see that nothing was left out."""
        changed = [key for key, counted in self.counted().items() if counted != self.seen.get(key)]
        cycle = run_cycle(self.workspace, self.now)
        decided = set(GateDecision.objects.filter(cycle=cycle).values_list("belief_id", flat=True))
        self.seen = self.counted()
        assert {key for key in changed if key in self.seen} <= decided

    def counted(self) -> dict[str, tuple[float, float]]:
        """Read α and β of what is believed."""
        live = Belief.objects.for_workspace(self.workspace.pk).filter(status__in=LIVE)
        return {belief.pk: (belief.alpha, belief.beta) for belief in live}

    @rule(text=texts, session=sessions, source=st.sampled_from(["human", "human", "ai"]))
    def remember(self, text: str, session: str, source: str) -> None:
        """Have a text remembered at once; nobody's text is a document."""
        line = self.line(text, session)
        self.have_remembered(line if source == "human" else line | {"source": source})

    @rule(place=places)
    def remember_again(self, place: int) -> None:
        """Have the words of an episode remembered, in its own session or in another."""
        if episode := self.episode(place):
            line = self.line(episode.text, "a")
            same = {"session": episode.session, "source": episode.source, "user": episode.user}
            self.have_remembered(line | same if place % 2 else line)

    def have_remembered(self, line: dict[str, object]) -> None:
        """Remember a line to the end."""
        answer = remember(line=line, arrival=self.arrival())
        for one in RememberJob.objects.for_workspace(self.workspace.pk).queued():
            run_remember_job(remembrance_id=one.pk, now=self.now)
        if isinstance(answer, Remembered):  # rejected are words that were erased
            job = RememberJob.objects.filter(episode=answer.episode_id).queued().first()
            assert job is None, job.state_reason
        self.end_arrival()

    @rule(session=sessions, text=texts)
    def sum_up(self, session: str, text: str) -> None:
        """Store a summary, as of a conversation."""
        line = self.line(text, session) | {"source": "interaction", "is_derived": True}
        arrival = self.arrival()
        store_episodes(lines=[read_extracted_line(raw=line, now=arrival.now)], arrival=arrival)
        self.end_arrival()

    @rule(said=st.lists(texts, min_size=1, max_size=3), session=sessions)
    def talk(self, said: list[str], session: str) -> None:
        """Say something in a conversation, and have it read."""
        lines = [{"session": f"talk {session}", "role": "user", "content": text, "user": "mara"} for text in said]
        buffer_raw_turns(raw_lines=lines, arrival=self.arrival())
        for conversation in Conversation.objects.for_workspace(self.workspace.pk):
            extract_conversation(conversation_id=conversation.pk, now=self.now)
        self.end_arrival()

    @rule(place=places, statement=st.none() | st.sampled_from(STATED))
    def correct(self, place: int, statement: str | None) -> None:
        """Correct a live belief, with or without what is right instead."""
        if belief := self.belief(place, live=True):
            try:
                correct_belief(
                    belief=belief, wording=BeliefText(statement=statement) if statement else None, author=self.author()
                )
            except (InvalidStatement, WasForgotten, IllegalTransitionError):
                return

    @rule(
        place=places,
        act=st.sampled_from(
            [
                CuratorAction.ARCHIVE,
                CuratorAction.RESTORE,
                CuratorAction.CHALLENGE,
                CuratorAction.PIN,
                CuratorAction.UNPIN,
                CuratorAction.FORGET,
            ]
        ),
    )
    def curate(self, place: int, act: CuratorAction) -> None:
        """Do something to a belief by hand."""
        if belief := self.belief(place):
            author = self.author()
            try:
                curate_belief(belief_id=belief.pk, act=act, reason="as drawn", actor=LENA, now=author.now)
            except IllegalTransitionError:
                return

    @rule(place=places, other=places)
    def merge(self, place: int, other: int) -> None:
        """Merge two live beliefs."""
        one, two = self.belief(place, live=True), self.belief(other, live=True)
        if one is None or two is None or one.pk == two.pk:
            return
        [vector] = embed_statements(workspace_id=self.workspace.pk, statements=[one.statement])
        try:
            wording = BeliefText(statement=one.statement)
            merge_beliefs(ids=(one.pk, two.pk), wording=wording, vector=vector, author=self.author())
        except (DifferentScopes, InvalidEvidence):
            return

    @rule(place=places)
    def split(self, place: int) -> None:
        """Split a live belief of two episodes or more."""
        belief = self.belief(place, live=True)
        rows = Evidence.objects.filter(belief=belief, base_weight__gt=0, episode__status="active") if belief else None
        keys = list(rows.values_list("episode_id", flat=True)) if rows is not None else []
        if belief is None or len(keys) < 2:
            return
        statements = [f"{belief.statement.rstrip('.')} {where}." for where in ("at home", "at work")]
        vectors = embed_statements(workspace_id=self.workspace.pk, statements=statements)
        parts = [
            SplitPart(
                wording=BeliefText(statement=words), vector=vector, verdicts=dict.fromkeys(half, Verdict.SUPPORTS)
            )
            for words, vector, half in zip(statements, vectors, (keys[::2], keys[1::2]), strict=True)
        ]
        try:
            split_belief(belief_id=belief.pk, parts=parts, author=self.author())
        except InvalidEvidence:
            return

    @rule(place=places, statement=st.sampled_from(STATED))
    def found(self, place: int, statement: str) -> None:
        """State a belief by hand on an episode."""
        episode = self.episode(place)
        if episode is None or episode.is_derived or episode.status in ("forgotten", "invalidated"):
            return
        [vector] = embed_statements(workspace_id=self.workspace.pk, statements=[statement])
        viewer = Viewer(workspace=self.workspace)
        try:
            state_belief(
                wording=BeliefText(statement=statement), vector=vector, verdicts={episode.pk: Verdict.SUPPORTS},
                viewer=viewer, author=self.author(),
            )  # fmt: skip
        except (DuplicateBelief, InvalidEvidence):
            return

    @rule(place=places)
    def forget(self, place: int) -> None:
        """Forget an episode."""
        if episode := self.episode(place):
            forget_episode(episode=episode, actor=LENA, now=self.author().now)

    @rule(place=places)
    def erase(self, place: int) -> None:
        """Erase an episode."""
        if episode := self.episode(place):
            erase_memories(
                workspace=self.workspace, episodes=Episode.objects.filter(pk=episode.pk), actor=LENA,
                now=self.author().now,
            )  # fmt: skip

    @rule(place=st.sampled_from([0, 0, 0, 1, 2]))
    def undo(self, place: int) -> None:
        """Undo one of the newest cycles, where nothing was built on it."""
        cycles = Cycle.objects.for_workspace(self.workspace.pk).filter(undone_at=None).order_by("-opened_at")
        if chosen := list(cycles[place : place + 1]):
            try:
                undo_cycle(cycle_id=chosen[0].pk, actor=LENA, now=self.author().now)
            except CannotBeUndone:
                assert place > 0, "nothing was built on the newest"

    @rule(after=days, since=st.none() | st.tuples(texts, sessions))
    def take_back(self, after: int, since: tuple[str, str] | None) -> None:
        """Consolidate and undo that at once, or after one more word."""
        self.cycle(after=after)
        if since:
            self.remember(text=since[0], session=since[1], source="human")
        self.undo(place=0)

    @rule()
    def release(self) -> None:
        """Release what undone cycles hold."""
        for cycle in Cycle.objects.for_workspace(self.workspace.pk).exclude(undone_at=None):
            release_quarantined(episodes=select_quarantined(cycle=cycle))

    @rule()
    def rebuild(self) -> None:
        """Make the beliefs again."""
        rebuild_beliefs(workspace=self.workspace, now=self.author().now)

    @rule()
    def move(self) -> None:
        """Export the workspace, empty it, and import what was exported."""
        written = b"".join(block.data for block in export_workspace(workspace=self.workspace))
        erase_workspace(workspace=self.workspace, actor=LENA)
        imported = import_workspace(
            workspace=self.workspace, stream=io.BytesIO(written), actor=LENA, now=self.author().now
        )
        assert imported.recomputed == 0

    @invariant()
    def numbers_are_those_of_the_evidence(self) -> None:
        """B4: every number that evidence gives, α and β, strength, reinforcement and peak among them."""
        beliefs = list(Belief.objects.for_workspace(self.workspace.pk).select_related("workspace"))
        for key, numbers in compute_numbers(beliefs=beliefs).items():
            [belief] = [one for one in beliefs if one.pk == key]
            stored = {name: getattr(belief, name) for name in numbers}
            assert stored == numbers, (belief.statement, belief.status)

    def holds(self) -> Q:
        """Match what holds today: the day of another may have come before any cycle saw it."""
        return Q(valid_until=None) | Q(valid_until__gt=self.now)

    @invariant()
    def nothing_is_believed_twice(self) -> None:
        """B8: what is made says nothing that is believed already."""
        rows = Belief.objects.for_workspace(self.workspace.pk).active().filter(self.holds())
        active = {belief.pk: (belief.user, belief.language, belief.statement) for belief in rows}
        stayed = {said for key, said in active.items() if key in self.known}
        made = {belief.pk for belief in rows if belief.created_at == self.now and belief.pk not in self.known}
        assert not {active[key] for key in made} & stayed
        self.known = active

    @invariant()
    def what_is_derived_bears_nothing_out(self) -> None:
        """E3: a summary is no evidence, whoever repeats it."""
        assert not Evidence.objects.for_workspace(self.workspace.pk).filter(episode__is_derived=True).exists()

    @invariant()
    def the_last_word_of_a_text_counts(self) -> None:
        """F1: a text that bears a belief out and then denies it denies it; who splits a belief says what counts."""
        rows = Evidence.objects.for_workspace(self.workspace.pk).filter(
            episode__text=BOTH, episode__source="human", belief__statement__contains="drink", base_weight__gt=0,
            is_founding=False, kind=EvidenceKind.ORDINARY,
        ).exclude(belief__parents_lineage__kind__in=("split", "merge"))  # fmt: skip
        assert set(rows.values_list("verdict", flat=True)) <= {Verdict.CONTRADICTS}

    @invariant()
    def what_is_read_is_read_once(self) -> None:
        """F2: by whatever road a message came, it has each claim once."""
        claims = Claim.objects.for_workspace(self.workspace.pk)
        twice = claims.values("episode", "sentence").annotate(times=Count("pk")).filter(times__gt=1)
        assert not twice.exists(), list(twice)

    @invariant()
    def what_was_closed_has_its_day(self) -> None:
        """C2: and holds no longer than until now."""
        closed = Belief.objects.for_workspace(self.workspace.pk).filter(
            status=BeliefStatus.INVALIDATED, status_reason=Reason.CHANGED
        )
        assert not closed.filter(Q(valid_until=None) | Q(valid_until__gt=self.now)).exists()

    @invariant()
    def no_belief_is_without_evidence(self) -> None:
        """C3: what is believed rests on something that was said."""
        live = Belief.objects.for_workspace(self.workspace.pk).filter(status__in=LIVE, is_pinned=False)
        bare = live.exclude(pk__in=Evidence.objects.for_workspace(self.workspace.pk).values("belief"))
        assert not bare.exists(), bare.values_list("statement", "status", "status_reason")

    @invariant()
    def rebuilding_agrees(self) -> None:
        """B22: what was recorded makes the same beliefs again."""
        rebuilt = rebuild_beliefs(workspace=self.workspace, now=self.now, is_dry_run=True)
        told = [(one.statement, one.is_lost, one.columns, one.evidence, one.lineage) for one in rebuilt.differences]
        assert not told
