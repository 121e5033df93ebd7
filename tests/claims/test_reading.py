"""E2: by which name a speaker is told of, and that an AI asserts nothing about its user."""

import pytest

from memory.claims import read_episodes_into_claims
from memory.language.third_person import person_of
from memory.models import Claim
from tests import factories


@pytest.mark.parametrize(
    ("user", "speaker", "language", "name"),
    [
        ("mara", "", "en", "Mara"),
        ("mara", "Toma", "en", "Toma"),
        ("user-17", "", "en", "The user"),
        ("admin", "", "en", "The user"),
        ("", "", "de", "Der Nutzer"),
    ],
)
def test_an_id_is_a_name_only_if_it_is_letters_alone(user: str, speaker: str, language: str, name: str) -> None:
    """E2: nothing else is guessed."""
    assert person_of(user=user, speaker=speaker, language=language) == name


@pytest.mark.django_db
def test_what_an_ai_says_of_its_user_is_no_evidence() -> None:
    """E2: it is kept as advice; what it says where there is no user is asserted."""
    workspace = factories.workspace()
    said = [
        factories.episode(workspace=workspace, source="ai", user=user, language="en", text="You should drink tea.")
        for user in ("mara", "")
    ]
    assert read_episodes_into_claims(episodes=[one.pk for one in said], now=factories.NOW) == {}
    assert dict(Claim.objects.for_workspace(workspace).values_list("episode_id", "mode")) == {
        said[0].pk: "advised",
        said[1].pk: "asserted",
    }
