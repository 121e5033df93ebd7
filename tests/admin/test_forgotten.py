"""B19: what was forgotten is shown to curators of its workspace in the admin, and to nobody below them."""

from collections.abc import Callable

import pytest
from django.db.models import Model
from django.test import Client

from memory.domain.lifecycle import BeliefStatus, EpisodeStatus
from memory.models import Belief, ClusterJob, Episode, Role, Turn, TurnEpisode, Workspace
from tests import factories
from tests.admin.scene import Scene, person
from tests.admin.test_isolation import MODELS, list_of, page_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]

SAID = b"An episode of ours."
STATED = b"The statement of ours holds."


@pytest.fixture
def forgotten(ours: Scene) -> Scene:
    """A scene whose episode and belief were forgotten, with a turn that the episode was read from."""
    Episode.objects.filter(pk=ours.episode.pk).update(status=EpisodeStatus.FORGOTTEN)
    Belief.objects.filter(pk=ours.belief.pk).update(status=BeliefStatus.FORGOTTEN)
    turn = Turn.objects.get(conversation=ours.conversation)
    TurnEpisode.objects.create(workspace=ours.workspace, turn=turn, episode=ours.episode)
    return ours


def _answers(client: Client, scene: Scene) -> bytes:
    """Open every list and every page of a scene's rows."""
    addresses = [list_of(model) for model in MODELS] + [page_of(row) for row in scene.rows()]
    return b"".join(client.get(address, follow=True).content for address in addresses)


def test_a_reader_meets_a_forgotten_text_on_no_page(forgotten: Scene, sign_in: SignIn) -> None:
    """Lists, pages, what stands beside them, and replies of models, which may repeat it."""
    shown = _answers(sign_in(forgotten.workspace, Role.READER), forgotten)
    hidden = (
        SAID, STATED, b"A reason of ours.", b"A verdict of ours.", b"A new verdict of ours.", b"A turn of ours.",
        b"A fact of ours.", b"A reply of ours.", b"friend of ours", b"topic of ours",
    )  # fmt: skip
    assert [words for words in hidden if words in shown] == []


def test_a_curator_sees_it_all(forgotten: Scene, sign_in: SignIn) -> None:
    shown = _answers(sign_in(forgotten.workspace, Role.CURATOR), forgotten)
    seen = (SAID, STATED, b"A turn of ours.", b"A fact of ours.", b"A reply of ours.", b"friend of ours")
    assert [words for words in seen if words not in shown] == []


def test_a_reader_still_sees_what_was_not_forgotten(ours: Scene, sign_in: SignIn) -> None:
    shown = _answers(sign_in(ours.workspace, Role.READER), ours)
    seen = (SAID, STATED, b"A turn of ours.", b"A fact of ours.", b"friend of ours", b"topic of ours")
    assert [words for words in seen if words not in shown] == []


def test_a_reader_meets_nothing_that_repeats_a_forgotten_text(forgotten: Scene, sign_in: SignIn) -> None:
    """A claim on the page of its job, and what was proposed in place of a belief."""
    ClusterJob.objects.filter(pk=forgotten.job.pk).update(claim=forgotten.claim)

    shown = _answers(sign_in(forgotten.workspace, Role.READER), forgotten)

    assert [words for words in (b"A claim of ours.", b"A proposal of ours.") if words in shown] == []


@pytest.mark.parametrize("of", ["episode", "belief"])
def test_no_search_of_a_reader_finds_it(of: str, forgotten: Scene, sign_in: SignIn) -> None:
    """Neither by its words nor by its id."""
    row: Model = getattr(forgotten, of)
    client = sign_in(forgotten.workspace, Role.READER)
    found = [client.get(list_of(type(row)), {"q": words}) for words in (row.pk, "ours")]
    assert not [page for page in found if row in page.context["cl"].result_list]


def test_a_curator_of_one_workspace_is_a_reader_in_another(forgotten: Scene, theirs: Scene, client: Client) -> None:
    user = person("both", workspace=forgotten.workspace, role=Role.READER)
    user.memberships.create(workspace=theirs.workspace, role=Role.CURATOR)
    other = factories.episode(workspace=theirs.workspace, text="A thing gone.", status=EpisodeStatus.FORGOTTEN)
    client.force_login(user)

    page = client.get(list_of(Episode))

    assert other in page.context["cl"].result_list
    assert forgotten.episode not in page.context["cl"].result_list
