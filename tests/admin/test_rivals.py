"""What a person does in the admin about beliefs that may contradict each other."""

from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from memory.models import Belief, ContradictionCandidate, Role, Workspace
from tests.admin.scene import Scene
from tests.admin.test_isolation import list_of, page_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def act(client: Client, action: str, *pairs: ContradictionCandidate) -> None:
    client.post(
        list_of(ContradictionCandidate),
        {"action": action, "_selected_action": [pair.pk for pair in pairs]},
        follow=True,
    )


def test_a_pair_is_shown_with_both_statements_and_the_reason(ours: Scene, sign_in: SignIn) -> None:
    """R11."""
    client = sign_in(ours.workspace, Role.READER)
    for address in (list_of(ContradictionCandidate), page_of(ours.rival)):
        page = client.get(address).content.decode()
        shown = (
            "The statement of ours holds.",
            "The rival of ours holds.",
            "needs a person",
            "A doubt of ours.",
            "0.70",
        )
        assert all(part in page for part in shown)


def test_a_pair_leaves_the_list_with_one_of_its_beliefs(ours: Scene, sign_in: SignIn) -> None:
    """R11: by its status."""
    Belief.objects.filter(pk=ours.rival.first_id).update(status="revised")
    page = sign_in(ours.workspace, Role.READER).get(list_of(ContradictionCandidate))
    assert list(page.context["cl"].result_list) == []


def test_a_curator_dismisses_pairs_of_their_own(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    """R11: and who did is written down."""
    act(sign_in(ours.workspace, Role.CURATOR), "dismiss", ours.rival, theirs.rival)
    states = dict(ContradictionCandidate.objects.values_list("pk", "state"))
    assert states == {ours.rival.pk: "dismissed", theirs.rival.pk: "needs_a_person"}
    assert LogEntry.objects.get(object_id=ours.rival.pk).user.get_username() == "curator"


def test_a_curator_has_a_pair_asked_about_again(ours: Scene, sign_in: SignIn) -> None:
    """R11: without what was said of it before."""
    act(sign_in(ours.workspace, Role.CURATOR), "reopen", ours.rival)
    ours.rival.refresh_from_db()
    assert (ours.rival.state, ours.rival.reason, ours.rival.checked_at) == ("open", "", None)


def test_a_reader_dismisses_nothing(ours: Scene, sign_in: SignIn) -> None:
    """R11."""
    act(sign_in(ours.workspace, Role.READER), "dismiss", ours.rival)
    ours.rival.refresh_from_db()
    assert ours.rival.state == "needs_a_person"
