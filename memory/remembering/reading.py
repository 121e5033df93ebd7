"""What a text to be remembered says: its facts by a model or rules, and their vectors, asked for side by side (R1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TypeVar

import structlog
from django.conf import settings

from memory.claims import (
    is_speech,
    plan_claim_requests,
    read_episodes_into_claims,
    reader_of,
    store_model_claims,
    store_own_words,
)
from memory.consolidation.cycle import budget_policy
from memory.domain.matter import matter_of
from memory.domain.noting import hear_note
from memory.domain.policy_remembering import RememberPolicy
from memory.domain.remembering import OWNER, Fact, clamp_fact, distinct_facts, whole_text
from memory.domain.user_names import name_of_user
from memory.llm.budget import CallBudget, DailyCapReached
from memory.llm.calls import Answer, Ask, answer_asks
from memory.llm.embedding_calls import EmbeddingMeanwhile, embed_in_ledger
from memory.llm.ledger import CallScope
from memory.llm.model import CallFailed, FailureKind, language_model
from memory.llm.replies import ClaimsReply, Reply, StatedFacts
from memory.llm.requests import EpisodeText, RememberRequest, Request
from memory.llm.workspace_model import embedder_of
from memory.models import Claim, Episode, FactType
from memory.remembering.holds import Hold
from memory.search.vectors import Vectors, read_episode_vectors, store_episode_vectors

log = structlog.get_logger(__name__)

Kind = TypeVar("Kind", bound=Reply)

_SUBJECT_LENGTH = 200
_UNREADABLE = (FailureKind.MALFORMED, FailureKind.BAD_REQUEST, FailureKind.OWN_ERROR)


class Unanswered(Exception):
    """No model answered; asked again later one may. `is_slow`: it had all the time that a call may take."""

    def __init__(self, message: str, *, is_slow: bool = False) -> None:
        super().__init__(message)
        self.is_slow = is_slow


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFact:
    """A fact, its vector (768) if one could be had, and the call it came of; none for the text as it stands."""

    fact: Fact
    vector: Vectors | None
    call_id: int | None
    claim: Claim | None = None  # that it was read as


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The facts of a text, and the model that their vectors are of."""

    facts: Sequence[ReadFact]
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A reply and its call; no reply where a model gave none that could be read."""

    reply: Reply | None
    call_id: int | None


def read_text(*, hold: Hold, budget: CallBudget) -> Reading:
    """Read an episode's facts and embed them; what cannot be embedded is compared later.

    Raises Unanswered, or what stops calls: MustWait, OutOfBudget, LeaseLost.
    """
    episode = hold.remembrance.episode
    matter = matter_of(episode.text, episode.speaker)
    model = embedder_of(episode.workspace_id)
    if not matter:
        return Reading(facts=(), model=model.name)
    own = own_vector(episode=episode, matter=matter)
    claims: list[Claim] = []
    try:
        is_read, call_id = _read_speech(hold, budget) if is_speech(episode) else (False, None)
        if is_read:
            claims = _claims_of(episode, matter, hold.remembrance.created_at)
            facts = [_fact_of(claim) for claim in claims]
        else:
            facts, call_id = _extract(hold, budget, matter)
    finally:
        vector = own.collect()
    known = {} if vector is None else {_flat(matter): vector}
    others = [fact.text for fact in facts if _flat(fact.text) not in known]
    found = known | embed_texts(texts=others, episode=episode)
    read = [
        ReadFact(fact=fact, vector=found.get(_flat(fact.text)), call_id=call_id, claim=claim)
        for fact, claim in zip_longest(facts, claims)
    ]
    return Reading(facts=read, model=model.name)


_KINDS = {"preference": FactType.PREFERENCE}


def _read_speech(hold: Hold, budget: CallBudget) -> tuple[bool, int | None]:
    """Have an episode read into claims once, by rules or a model (E1); tell whether it is, and by which call."""
    episode, now = hold.remembrance.episode, hold.remembrance.created_at
    model = language_model()
    if model.is_offline:
        read_episodes_into_claims(episodes=[episode.pk], now=now)
        return True, None
    unread = Episode.objects.filter(pk=episode.pk, read_at=None)
    requests = plan_claim_requests(workspace_id=episode.workspace_id, episodes=unread, now=now, alone={episode.pk})
    if not requests:
        return True, None
    heard = ask(hold=hold, budget=budget, request=requests[0])
    if isinstance(heard.reply, ClaimsReply):
        reader = reader_of(model_for=model.model_for)
        store_model_claims(request=requests[0], reply=heard.reply, reader=reader, now=now)
    return isinstance(heard.reply, ClaimsReply), heard.call_id


def _claims_of(episode: Episode, matter: str, now: datetime) -> list[Claim]:
    """Return what an episode claims of its speaker's life; what was to be remembered is never lost."""
    claims = list(Claim.objects.filter(episode=episode).evidence())
    if not claims and (wished := hear_note(matter)):
        return [store_own_words(episode=episode, words=wished, now=now)]
    return claims


def _fact_of(claim: Claim) -> Fact:
    return Fact(
        text=claim.sentence,
        fact_type=_KINDS.get(claim.kind, FactType.FACTUAL),
        importance=settings.POLICY.remember.importance,
        subject=claim.subject[:_SUBJECT_LENGTH],
    )


def ask(*, hold: Hold, budget: CallBudget, request: Request) -> Heard:
    """Ask one thing; a reply that nobody can read is none. Raises Unanswered where no model answered."""
    answers: list[Answer] = []
    failures = answer_asks(
        asks=[Ask(key="", request=request)],
        scope=CallScope(workspace_id=hold.remembrance.workspace_id),
        budget=budget,
        model=language_model(),
        store=answers.extend,
        fence=hold.renew,
    )
    if answers:
        return Heard(reply=answers[0].reply, call_id=answers[0].call_id)
    if failures[0].kind not in _UNREADABLE:
        kind = failures[0].kind
        raise Unanswered(f"{kind}: {failures[0].message}", is_slow=kind is FailureKind.TIMEOUT)
    log.warning("remembering.reply_unreadable", purpose=request.purpose, kind=failures[0].kind)
    return Heard(reply=None, call_id=None)


def _extract(hold: Hold, budget: CallBudget, matter: str) -> tuple[list[Fact], int | None]:
    """Return the facts of a text; after a reply that nobody can read, the text itself."""
    policy: RememberPolicy = settings.POLICY.remember
    episode = hold.remembrance.episode
    request = RememberRequest(
        episodes=(text_of(episode=episode, matter=matter),), person=name_of_user(user=episode.user)
    )
    heard = ask(hold=hold, budget=budget, request=request)
    if not isinstance(heard.reply, StatedFacts):
        return [whole_text(text=matter, policy=policy)], None
    return distinct_facts(facts=_facts_of(heard.reply, policy)), heard.call_id


def _facts_of(reply: StatedFacts, policy: RememberPolicy) -> list[Fact]:
    """Take the first few facts, each within its limits."""
    return [
        Fact(
            text=clamp_fact(text=said.fact, policy=policy),
            fact_type=said.fact_type,
            importance=said.importance,
            subject=(said.subject.lower() or OWNER)[:_SUBJECT_LENGTH],
        )
        for said in reply.facts
        if said.fact
    ][: policy.facts]


def text_of(*, episode: Episode, matter: str) -> EpisodeText:
    """Return an episode as a model sees it."""
    return EpisodeText(
        id=episode.pk,
        text=matter,
        speaker=episode.speaker,
        language=episode.language,
        occurred_on=episode.occurred_at.date().isoformat(),
    )


class OwnVector:
    """The vector of the text itself, embedded while its facts are read, unless it is stored already."""

    def __init__(self, episode: Episode, matter: str) -> None:
        self._episode, self._matter, self._model = episode, matter, embedder_of(episode.workspace_id)
        _, stored = read_episode_vectors(model=self._model.name, ids=[episode.pk])
        self._stored = stored[0] if len(stored) else None
        self._coming = None if self._stored is not None else self._begin()

    def _begin(self) -> EmbeddingMeanwhile | None:
        try:
            return EmbeddingMeanwhile(
                scope=CallScope(workspace_id=self._episode.workspace_id),
                model=self._model,
                texts=[self._matter],
                timeout=budget_policy().call_seconds,
                episodes=[self._episode.pk],
            )
        except (CallFailed, DailyCapReached) as error:
            _note(error)
            return None

    def collect(self) -> Vectors | None:
        """Return the vector (768), stored by now; None where there is none to be had."""
        if self._coming is None:
            return self._stored
        try:
            vector: Vectors = self._coming.collect()[0]
        except CallFailed as error:
            _note(error)
            return None
        store_episode_vectors(
            workspace_id=self._episode.workspace_id,
            model=self._model.name,
            vectors={self._episode.pk: vector},
            chunked={self._episode.pk} if self._model.is_overlong(self._matter) else (),
        )
        return vector


def own_vector(*, episode: Episode, matter: str) -> OwnVector:
    """Begin to embed a text for itself."""
    return OwnVector(episode, matter)


def embed_texts(*, texts: Sequence[str], episode: Episode) -> dict[str, Vectors]:
    """Embed texts, by their words; none where a server does not answer."""
    if not texts:
        return {}
    try:
        vectors = embed_in_ledger(
            scope=CallScope(workspace_id=episode.workspace_id),
            model=embedder_of(episode.workspace_id),
            texts=texts,
            timeout=budget_policy().call_seconds,
            episodes=[episode.pk],
        )
    except (CallFailed, DailyCapReached) as error:
        _note(error)
        return {}
    return {_flat(text): vector for text, vector in zip(texts, vectors, strict=True)}


def _note(error: Exception) -> None:
    log.warning("remembering.vectors_failed", error=str(error))


def _flat(text: str) -> str:
    return " ".join(text.split())
