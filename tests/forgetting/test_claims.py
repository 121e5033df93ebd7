"""E1, B19: claims go with their episode, and with those that they could not be read without."""

import pytest

from memory.consolidation.rebuild import rebuild_beliefs
from memory.erasure.erase import Erasure, erase_memories, erase_workspace
from memory.forgetting import Forgotten, forget_episode
from memory.ledger.confidence import find_drift
from memory.llm.replies import BeliefWord, NewStatement, Reading
from memory.llm.requests import ReadingRequest
from memory.models import Belief, Claim, ClaimEmbedding, ClusterJob, Episode, Evidence, JobVerdict, ModelCall
from tests import factories
from tests.consolidation.telling import Teller, read_as_told
from tests.forgetting.forgetful import LENA

pytestmark = pytest.mark.django_db

ASKED = "Is it Dana who leads you?"
ANSWER = "My manager is Dana."
TIRED = "My boss is tired."
OTHER = "I always drink oat milk in my coffee."


@pytest.fixture
def mara() -> Teller:
    """Return a workspace in which Mara tells things."""
    return Teller(workspace=factories.workspace())


def said(text: str) -> Episode:
    return Episode.objects.get(text=text)


def draw(claim_of: str, *, on: str) -> None:
    """Let the claims of one episode be read with another's help."""
    Claim.objects.filter(episode=said(claim_of)).update(drew_on=[said(on).pk])


def forget(mara: Teller, text: str) -> Forgotten:
    told = forget_episode(episode=said(text), actor=LENA, now=mara.now)
    assert find_drift(workspace=mara.workspace)[1] == []
    return told


def erase(mara: Teller, text: str) -> Erasure:
    """Erase an episode; no belief may drift, and a rebuilding may find nothing to do."""
    episodes = Episode.objects.filter(text=text)
    erasure = erase_memories(workspace=mara.workspace, episodes=episodes, actor=LENA, now=mara.now)
    assert find_drift(workspace=mara.workspace)[1] == []
    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now, is_dry_run=True).differences == []
    return erasure


def test_claims_are_erased_with_their_episode(mara: Teller) -> None:
    """B19: and their vectors, and the belief that they founded."""
    mara.cycle(ANSWER, OTHER)

    erase(mara, ANSWER)

    assert set(Claim.objects.values_list("episode__text", flat=True)) == {OTHER}
    assert ClaimEmbedding.objects.count() == 1
    assert [belief.statement for belief in Belief.objects.all()] == ["Mara always drinks oat milk in their coffee."]
    assert not any("Dana" in str(job.candidate) for job in ClusterJob.objects.all())


def test_what_was_forgotten_asserts_nothing(mara: Teller) -> None:
    """B19: its claims stay with it, and bear out nothing."""
    mara.cycle(ANSWER)

    forget(mara, ANSWER)

    assert mara.belief("Dana").status == "archived"
    assert not Claim.objects.filter(episode__status="active").exists()
    mara.cycle("My manager is Dana, of course.")
    assert not Evidence.objects.filter(episode__status="forgotten", created_at=mara.now).exists()


def test_a_claim_that_drew_on_a_forgotten_episode_falls_and_is_read_again(mara: Teller) -> None:
    """E1: what it alone bore out is archived until its episode is read once more."""
    mara.cycle(ASKED, ANSWER)
    draw(ANSWER, on=ASKED)

    told = forget(mara, ASKED)

    assert told.bereft.archived == {mara.belief("Dana").pk}
    assert (said(ANSWER).read_at, said(ANSWER).state) == (None, "new")
    assert not Claim.objects.filter(episode=said(ANSWER)).exists()
    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now, is_dry_run=True).differences == []
    mara.cycle()
    [again] = Claim.objects.filter(episode=said(ANSWER))
    assert (again.drew_on, again.sentence, said(ANSWER).read_at) == ([], "Mara's manager is Dana.", mara.now)


def test_a_claim_that_drew_on_an_erased_episode_goes_with_what_it_founded(mara: Teller) -> None:
    """E1, B19: the belief may quote it; its own episode founds another, read without it."""
    mara.cycle(ASKED, ANSWER, OTHER)
    draw(ANSWER, on=ASKED)
    before = mara.belief("Dana").pk

    erasure = erase(mara, ASKED)

    assert erasure.ids.erased == {before}
    assert not JobVerdict.objects.filter(episode=said(ANSWER)).exists()
    assert not any("Dana" in str(job.candidate) for job in ClusterJob.objects.all())
    assert (said(ANSWER).read_at, said(ANSWER).state) == (None, "new")
    mara.cycle()
    assert mara.belief("Dana").pk != before


def state_again(request: ReadingRequest) -> Reading:
    """Read as a weak model does, which states anew what it was shown."""
    told = read_as_told(request)
    stated = [
        NewStatement(m=line.m, statement=request.beliefs[int(line.b) - 1].statement)
        for line in told.about
        if line is not None and line.verdict == BeliefWord.SUPPORTS and line.b.isdigit()
    ]
    return Reading(new=[*told.new, *stated], about=[])


def test_a_belief_that_a_fallen_claim_only_bore_out_counts_without_it(
    mara: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E1, B19, B22."""
    mara.cycle(ANSWER)
    monkeypatch.setattr("tests.consolidation.telling.read_as_told", state_again)
    mara.cycle("Dana is my manager.", ASKED)
    draw("Dana is my manager.", on=ASKED)
    assert mara.belief("Dana").alpha == 3.0

    erase(mara, ASKED)

    assert (mara.belief("Dana").alpha, mara.belief("Dana").status) == (2.0, "active")
    mara.cycle()
    assert mara.belief("Dana").alpha == 3.0


def test_what_an_erased_episode_lent_another_is_gone(mara: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    """B19, F1: a reading is shown what is believed; a statement, its names and reasons may quote what that told."""

    def by_name(request: ReadingRequest) -> Reading:
        if [message.text for message in request.read] != [TIRED]:
            return read_as_told(request)
        named = {"subject": "Dana", "entities": ["Dana"], "because": "1", "category": "fact"}
        return Reading.model_validate({"new": [{"m": 1, "statement": "Mara's manager Dana is tired.", **named}]})

    monkeypatch.setattr("tests.consolidation.telling.read_as_told", by_name)
    mara.cycle(ANSWER)
    mara.cycle(TIRED)
    [tired] = Claim.objects.filter(episode=said(TIRED))
    assert (tired.drew_on, tired.because) == ([], mara.belief("manager is Dana"))
    assert (said(TIRED).entities, said(TIRED).causes) == (["Dana"], ["Mara's manager is Dana."])

    erase(mara, ANSWER)

    assert not Claim.objects.exists()
    assert not Belief.objects.exists()
    assert (said(TIRED).entities, said(TIRED).causes, said(TIRED).read_at) == ([], [], None)
    assert not any("Dana" in reply for reply in ModelCall.objects.values_list("reply", flat=True))


@pytest.mark.parametrize("of_another", ["My sister lives in Rome.", "Porto is lovely, says Jo, of 44."])
def test_a_claim_that_shares_common_words_with_an_erased_episode_stays(mara: Teller, of_another: str) -> None:
    """B19: that two people live somewhere lent nothing, nor does a name that the claim's own message has."""
    mara.cycle(of_another)
    mara.cycle("I live in Porto.")
    before = mara.belief("Porto").pk

    erasure = erase(mara, of_another)

    assert erasure.ids.erased == frozenset()
    assert mara.belief("Porto").pk == before
    assert Claim.objects.get().sentence == "Mara lives in Porto."


def test_what_another_person_was_never_shown_was_not_lent_to_them(mara: Teller) -> None:
    """B19, B21: a claim of another user names the same person by themselves."""
    mara.cycle(ANSWER)
    [other] = mara.tell("My boss is tired.", user="timo")
    claimed = {"workspace": mara.workspace, "reader": "test", "created_at": mara.now}
    Claim.objects.create(episode=other, number=1, sentence="Timo's manager Dana is tired.", **claimed)

    erase(mara, ANSWER)

    assert Claim.objects.get().episode == other


def test_the_reason_of_a_claim_goes_with_the_erased_belief(mara: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1, B19: the claim stays, since it quotes nothing, and has no reason any more."""

    def with_reason(request: ReadingRequest) -> Reading:
        if [message.text for message in request.read] != [TIRED]:
            return read_as_told(request)
        return Reading.model_validate({"new": [{"m": 1, "statement": "My boss is tired.", "because": "1"}]})

    monkeypatch.setattr("tests.consolidation.telling.read_as_told", with_reason)
    mara.cycle(ANSWER)
    mara.cycle(TIRED)

    erase(mara, ANSWER)

    [claim] = Claim.objects.all()
    assert (claim.episode, claim.because, said(TIRED).causes) == (said(TIRED), None, [])
    assert mara.belief("tired").status == "active"


def test_a_claim_that_waits_in_the_pool_is_read_again(mara: Teller) -> None:
    """E1: no cycle would read it there."""
    mara.cycle("The garden looks a bit dry.", ASKED)
    assert said("The garden looks a bit dry.").state == "pooled"
    Claim.objects.get_or_create(
        episode=said("The garden looks a bit dry."), number=9,
        defaults={
            "workspace": mara.workspace, "sentence": "It is dry.", "reader": "test", "created_at": mara.now,
            "drew_on": [said(ASKED).pk],
        },
    )  # fmt: skip

    forget(mara, ASKED)

    assert (said("The garden looks a bit dry.").state, said("The garden looks a bit dry.").read_at) == ("new", None)


def test_a_workspace_is_erased_with_all_of_its_claims(mara: Teller) -> None:
    """B19: and nobody else's."""
    mara.cycle(ANSWER)
    other = Teller(workspace=factories.workspace())
    other.cycle(OTHER)

    erase_workspace(workspace=mara.workspace, actor=LENA)

    assert set(Claim.objects.values_list("workspace", flat=True)) == {other.workspace.pk}
    assert set(ClaimEmbedding.objects.values_list("workspace", flat=True)) == {other.workspace.pk}
