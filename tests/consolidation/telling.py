"""A workspace of one person who tells things, and a reader that knows what her sentences do: no server anywhere."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from memory.facts.remember import Remembered, remember, run_remember_job
from memory.ingest.schemas import IngestContext
from memory.llm.replies import Reading
from memory.llm.requests import Message, ReadingRequest
from memory.models import Belief, Cycle, Episode, Evidence, RememberJob, Workspace
from memory.text.sentences import split_sentences
from tests import factories
from tests.consolidation.inline import run_cycle

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a sentence does: what it states or bears out, what is over by it, and what it says was never so."""

    states: str = ""
    ends: str = ""  # what the statement takes the place of
    denies: str = ""
    since: str = ""


DANA, RAVI, TOM = (f"{{who}}'s manager is {name}." for name in ("Dana", "Ravi", "Tom"))
MEAT_FREE, MEAT = "{who} is vegetarian.", "{who} eats meat."
TUESDAYS, FRIDAYS = "{who} deploys on Tuesdays.", "{who} deploys on Fridays."
TEA, OAT = "{who} drinks tea.", "{who} always drinks oat milk in their coffee."
LINZ, RENT, NEW_RENT = "{who} lives in Linz.", "{who}'s rent is 800 euros.", "{who}'s rent is 900 euros."

# By the sentence, "{who}" being who says it. What stands here no longer asserts nothing, as a question does.
SENTENCES: dict[str, Said] = {
    "My manager is Dana.": Said(states=DANA),
    "Dana is my manager.": Said(states=DANA),
    "My manager is Dana, of course.": Said(states=DANA),
    "So my boss is Dana.": Said(states=DANA),
    "My manager is Ravi.": Said(states=RAVI, ends=DANA),
    "Ravi is my manager.": Said(states=RAVI, ends=DANA),
    "Dana was never my manager.": Said(denies=DANA),
    "My manager is no longer Dana, it is Ravi now.": Said(states=RAVI, ends=DANA),
    "My manager is no longer Ravi, it is Dana now.": Said(states=DANA, ends=RAVI),
    "My manager is no longer Dana, it is Tom now.": Said(states=TOM, ends=DANA),
    "From April 1st my manager will be Ravi instead of Dana.": Said(states=RAVI, ends=DANA, since="2026-04-01"),
    "From May 1st my manager will be Ravi instead of Dana.": Said(states=RAVI, ends=DANA, since="2026-05-01"),
    "I am vegetarian.": Said(states=MEAT_FREE),
    "I no longer eat vegetarian, I eat meat again.": Said(states=MEAT, ends=MEAT_FREE),
    "We deploy on Tuesdays.": Said(states=TUESDAYS),
    "We deploy on Fridays.": Said(states=FRIDAYS, denies=TUESDAYS),
    "We moved deployments from Tuesdays to Fridays.": Said(states=FRIDAYS, ends=TUESDAYS),
    "I drink tea.": Said(states=TEA),
    "I do not drink tea.": Said(denies=TEA),
    "I always drink oat milk in my coffee.": Said(states=OAT),
    "I stopped drinking oat milk.": Said(ends=OAT),
    "I moved to Lisbon in March.": Said(states="{who} lives in Lisbon.", since="2026-03-01"),
    "I live in Porto.": Said(states="{who} lives in Porto."),
    "From April 1st I live in Linz.": Said(states=LINZ, since="2026-04-01"),
    "I do not live in Linz.": Said(denies=LINZ),
    "My rent is 800 euros.": Said(states=RENT),
    "My rent goes up to 900 euros in July.": Said(states=NEW_RENT, ends=RENT, since="2026-07-01"),
}


def read_as_told(request: ReadingRequest, *, sentences: Mapping[str, Said] = SENTENCES) -> Reading:
    """Answer a reading by what is laid down of each sentence; what is believed already is borne out."""
    reply: dict[str, list[dict[str, Any]]] = {"new": [], "about": []}
    known = {shown.statement: (str(number), shown.until) for number, shown in enumerate(request.beliefs, start=1)}
    for number, message in enumerate(request.read, start=1):
        for sentence in split_sentences(message.text):
            said = sentences.get(sentence)
            if said is not None and message.role == "user":
                _add(reply, known, number, message, said, message.speaker or request.person)
    return Reading.model_validate(reply)


def _add(
    reply: dict[str, list[dict[str, Any]]],
    known: dict[str, tuple[str, str]],
    number: int,
    message: Message,
    said: Said,
    who: str,
) -> None:
    """Write down what one sentence does, and let later ones know what it stated and ended."""
    states, ends, denies = (text.format(who=who) for text in (said.states, said.ends, said.denies))
    since = {"from": said.since} if said.since else {}

    def label_of(statement: str, *, even_over: bool = False) -> str:
        label, until = known.get(statement, ("", ""))
        return label if even_over or not until or until >= (message.occurred_on or "") else ""

    for statement, verdict in ((ends, "ENDED"), (denies, "CONTRADICTS")):
        if label := label_of(statement):
            day = since if verdict == "ENDED" else {}
            reply["about"].append({"m": number, "b": label, "verdict": verdict, **day})
    if not states:
        return
    if label := label_of(states, even_over=True):
        reply["about"].append({"m": number, "b": label, "verdict": "SUPPORTS", **since})
        return
    replaces = {"replaces": label} if (label := label_of(ends)) else {}
    reply["new"].append({"m": number, "statement": states, "subject": who, "kind": "lasting", **replaces, **since})
    known[states] = f"n{len(reply['new'])}", ""


@contextmanager
def reading_as_told() -> Iterator[None]:
    """Let this machine's reader answer by what is laid down here."""
    with patch("memory.llm.offline.read_offline", read_as_told):
        yield


@dataclass(slots=True, kw_only=True)
class Teller:
    """Mara, and a clock that goes on with every cycle."""

    workspace: Workspace
    now: datetime = factories.NOW

    def tell(self, *texts: str, **given: Any) -> list[Episode]:
        """Store what Mara says, each from an origin of its own."""
        fields: dict[str, Any] = {
            "source": "human", "user": "mara", "language": "en", "created_at": self.now, "occurred_at": self.now,
        }  # fmt: skip
        return [factories.episode(workspace=self.workspace, text=text, **fields | given) for text in texts]

    def cycle(self, *texts: str, after: timedelta = DAY, before_gate: Callable[[], object] = lambda: None) -> Cycle:
        """Let time pass, tell something, and run a cycle; something else may happen before its gate."""
        self.now += after
        self.tell(*texts)
        with reading_as_told():
            return run_cycle(self.workspace, self.now, before_gate=before_gate)

    def remember(self, text: str, *, session: str, at: datetime | None = None) -> Remembered:
        """Have a text remembered the next day, which was said then, or at another time."""
        self.now += DAY
        line = {"text": text, "user": "mara", "source": "human", "session": session}
        if at:
            line["occurred_at"] = at.isoformat()
        with reading_as_told():
            answer = remember(line=line, arrival=IngestContext(workspace=self.workspace, now=self.now))
            for job in RememberJob.objects.for_workspace(self.workspace.pk).queued():
                run_remember_job(remembrance_id=job.pk, now=self.now)
        assert isinstance(answer, Remembered)
        return answer

    def count_against(self, word: str, *, by: str) -> None:
        """Give the belief with a word what an episode says against it, of no cycle."""
        Evidence.objects.create(
            workspace=self.workspace,
            belief=self.belief(word),
            episode=Episode.objects.get(workspace=self.workspace, text=by),
            verdict="CONTRADICTS",
            basis="model",
            created_at=self.now,
        )

    def belief(self, word: str) -> Belief:
        """Return the one belief whose statement has a word."""
        return Belief.objects.get(workspace=self.workspace, statement__contains=word)

    def stands(self) -> dict[str, Any]:
        """Return what is believed and on which claims, without the keys of rows."""
        columns = (
            "statement", "subject", "predicate", "context", "status", "alpha", "beta", "evidence_count",
            "peak_confidence", "prediction_error", "storage_strength", "last_reinforced_at", "archive_due_at",
            "valid_from", "valid_until",
        )  # fmt: skip
        rows = Evidence.objects.filter(workspace=self.workspace).order_by("belief", "episode")
        return {
            "beliefs": list(Belief.objects.filter(workspace=self.workspace).order_by("pk").values("pk", *columns)),
            "evidence": list(
                rows.values_list("belief", "episode", "verdict", "base_weight", "basis", "claim", "cycle")
            ),
        }
