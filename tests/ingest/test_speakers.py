"""Who is taken for a speaker (B1, Speaker)."""

import pytest

from memory.models import Episode, EpisodeEmbedding, Workspace
from memory.search.vectors import read_episode_vectors
from tests import factories
from tests.ingest.arriving import episode_of, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def speakers() -> dict[str, str]:
    return dict(Episode.objects.values_list("text", "speaker"))


def test_name_that_opens_two_turns_is_a_speaker(workspace: Workspace) -> None:
    """B1: given, else the name that opens at least two turns of the session; the text stays."""
    say("Mara: I like tabs.", "Ben: I do not.", "Mara: Really?", "Note: nothing", workspace=workspace)
    assert speakers() == {
        "Mara: I like tabs.": "Mara", "Ben: I do not.": "", "Mara: Really?": "Mara", "Note: nothing": "",
    }  # fmt: skip


def test_second_turn_names_the_first(workspace: Workspace) -> None:
    """B1: stored turns count, and get the name when the second arrives."""
    (first,) = say("Mara: I like tabs.", workspace=workspace)
    assert first.speaker == ""
    say("Mara: Really?", workspace=workspace)
    assert set(speakers().values()) == {"Mara"}


def test_first_turn_said_again_is_no_second(workspace: Workspace) -> None:
    """B1: two different turns; L4: the same one is a duplicate."""
    say("Mara: I like tabs.", workspace=workspace)
    say("Mara: I like tabs!", workspace=workspace)
    assert speakers() == {"Mara: I like tabs.": ""}


def test_importing_a_session_again_adds_nothing(workspace: Workspace) -> None:
    """L4: earlier turns are named first, so that the constraint finds them."""
    turns = ["Mara: I like tabs.", "Mara: Really?"]
    for turn in turns * 2:
        say(turn, workspace=workspace)
    say(*turns, workspace=workspace)
    assert speakers() == dict.fromkeys(turns, "Mara")


def test_turns_of_other_sessions_do_not_count(workspace: Workspace) -> None:
    """B1: of the session."""
    say("Mara: I like tabs.", workspace=workspace, session="one")
    say("Mara: Really?", workspace=workspace, session="two")
    take("Mara: no session.", "Mara: none either.", workspace=workspace)
    assert set(speakers().values()) == {""}


def test_turns_of_other_workspaces_do_not_count(workspace: Workspace) -> None:
    """Tenancy."""
    say("Mara: I like tabs.", workspace=workspace)
    say("Mara: Really?", workspace=factories.workspace())
    assert set(speakers().values()) == {""}


def test_given_speaker_stays(workspace: Workspace) -> None:
    """B1: given comes first."""
    take(
        {"text": "Mara: one", "session": "s", "speaker": "M."}, {"text": "Mara: two", "session": "s"},
        workspace=workspace,
    )  # fmt: skip
    assert speakers() == {"Mara: one": "M.", "Mara: two": "Mara"}


def test_turn_with_a_twin_stays_as_it_is(workspace: Workspace) -> None:
    """L4: naming a turn never makes two episodes one."""
    say("Mara: one", workspace=workspace)
    take({"text": "Mara: one", "session": "s", "speaker": "Mara"}, workspace=workspace)
    say("Mara: two", workspace=workspace)
    assert sorted(Episode.objects.values_list("text", "speaker")) == [
        ("Mara: one", ""), ("Mara: one", "Mara"), ("Mara: two", "Mara"),
    ]  # fmt: skip


def test_named_turn_is_embedded_anew(workspace: Workspace) -> None:
    """B1: the prefix is left out of what is embedded, also when the name is known only later."""
    (first,) = say("Mara: I like tabs.", workspace=workspace)
    say("Mara: Really?", workspace=workspace)
    plain = episode_of(take("I like tabs.", workspace=workspace)[0])
    _, vectors = read_episode_vectors(model="wordllama-l2-supercat-256", ids=[first.pk, plain.pk])
    assert (vectors[0] == vectors[1]).all()
    assert EpisodeEmbedding.objects.count() == 3
